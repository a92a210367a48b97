// SPDX-License-Identifier: Apache-2.0
//
// The opscope program: what each command takes, and what its failure ends with.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <exception>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <string>

#include "commands.hpp"
#include "messages.hpp"

namespace opscope::cli {
namespace {

constexpr std::size_t help_column = 30;  ///< where the help of an option begins
constexpr std::size_t help_width = 80 - help_column;

void take_file(CLI::App& command, std::string& file) {
  command.add_option("FILE", file, "a .opscope capture, or - for standard input")
      ->required()
      ->type_name("");
}

/// "a|b|c", as help shows a choice.
std::string joined(const std::vector<std::string>& choices) {
  std::string all;
  for (const auto& choice : choices) all += (all.empty() ? "" : "|") + choice;
  return all;
}

void take_choice(CLI::App& command, const std::string& option, std::string& chosen,
                 const std::vector<std::string>& known) {
  const auto one_of = [known](const std::string& given) {
    return std::ranges::find(known, given) != known.end()
               ? std::string{}
               : given + " is not one of " + joined(known);
  };
  auto shown = joined(known) + (chosen.empty() ? "" : " (" + chosen + ")");
  if (const auto middle = shown.find('|', shown.size() / 2); shown.size() > help_width) {
    shown.insert(middle + 1, "\n");
  }
  command.add_option(option, chosen, shown)
      ->check(CLI::Validator(one_of, ""))
      ->type_name(option == "--by" ? "GROUP" : "FORMAT");
}

void take_format(CLI::App& command, std::string& format) {
  take_choice(command, "--format", format, {"table", "json", "csv", "markdown"});
}

void take_strict(CLI::App& command, bool& strict) {
  command.add_flag("--strict", strict, "refuse a capture that was cut short");
}

class program {
 public:
  program() {
    app_.set_version_flag("--version", std::string{"opscope "} + OPSCOPE_VERSION);
    app_.require_subcommand(1);
    app_.get_formatter()->column_width(help_column);
    add_python("demo", "measure a custom GELU against the builtin");
    add_python("bench", "the same for your op: CANDIDATE --against BASELINE");
    add_summary();
    add_export();
    add_verify();
    add_view();
    add_doctor();
  }

  int run(int argc, char** argv) {
    // Commands of Python parse their own arguments, --help included.
    if (argc > 1 && python_.contains(argv[1])) {
      run_python(argv[1], std::vector<std::string>(argv + 2, argv + argc));
    }
    try {
      app_.parse(argc, argv);
    } catch (const CLI::CallForHelp& help) {
      return app_.exit(help, std::cout, std::cerr);
    } catch (const CLI::CallForVersion& version) {
      return app_.exit(version, std::cout, std::cerr);
    } catch (const CLI::ParseError& wrong) {
      return report(status::usage, wrong_usage(argc > 1 ? argv[1] : "", wrong.what()));
    }
    return static_cast<int>(chosen_());
  }

 private:
  /// What is wrong with the arguments, and whose help tells the right ones.
  [[nodiscard]] std::string wrong_usage(const std::string& first, const std::string& why) const {
    if (first.empty()) return "usage: no command was given (see opscope --help)";
    const auto is_first = [&](const CLI::App* command) { return command->check_name(first); };
    if (std::ranges::any_of(app_.get_subcommands({}), is_first)) {
      return first + ": " + why + " (see opscope " + first + " --help)";
    }
    if (first.starts_with('-')) return "usage: " + why + " (see opscope --help)";
    return "usage: there is no command " + first + " (see opscope --help)";
  }

  template <typename Command>
  CLI::App* add(const std::string& name, const std::string& help, Command*& command) {
    auto owned = std::make_shared<Command>();
    command = owned.get();
    auto* parser = app_.add_subcommand(name, help);
    parser->callback([this, owned] { chosen_ = [owned] { return cli::run(*owned); }; });
    return parser;
  }

  void add_python(const std::string& name, const std::string& help) {
    app_.add_subcommand(name, help);
    python_.emplace(name, help);
  }

  void add_summary() {
    summary_command* command = nullptr;
    auto* parser = add("summary", "tables from a capture", command);
    take_file(*parser, command->file);
    auto& options = command->options;
    const std::vector<std::string> groupings(analyse::groupings.begin(), analyse::groupings.end());
    take_choice(*parser, "--by", options.by, groupings);
    parser->add_flag("--group-by-shape", options.group_by_shape, "a row a set of input shapes");
    const auto is_count = [](const std::string& given) {
      return given.find_first_not_of("0123456789") == std::string::npos
                 ? std::string{}
                 : given + " is no number of rows (0 for all)";
    };
    parser->add_option("--top", options.top, "rows to keep (0: all)")
        ->check(CLI::Validator(is_count, ""))
        ->type_name("N");
    parser->add_option("--sort", options.sort, "column to sort by, its key or title")
        ->type_name("KEY");
    parser->add_flag("--full", options.full, "all columns, whole names");
    take_format(*parser, command->format);
    take_strict(*parser, command->strict);
  }

  void add_export() {
    export_command* command = nullptr;
    auto* parser = add("export", "write a Chrome trace, which Perfetto opens", command);
    take_file(*parser, command->file);
    parser->add_option("-o,--output", command->output, "OUT.json, OUT.json.gz; any or - with --to")
        ->required()
        ->type_name("OUT");
    take_choice(*parser, "--to", command->to, {"chrome"});
    parser->add_flag("--force", command->force, "replace OUT");
    take_strict(*parser, command->strict);
  }

  void add_verify() {
    verify_command* command = nullptr;
    auto* parser = add("verify", "what a capture holds and lost (exit 1 for a loss)", command);
    take_file(*parser, command->file);
    take_format(*parser, command->format);
    take_strict(*parser, command->strict);
  }

  void add_view();

  void add_doctor() {
    doctor_command* command = nullptr;
    auto* parser = add("doctor", "what this machine can record; how to mend the rest", command);
    take_format(*parser, command->format);
  }

  CLI::App app_{"opscope shows an op's whole way from the Python call to the DRAM byte", "opscope"};
  std::map<std::string, std::string, std::less<>> python_;
  std::function<status()> chosen_;
};

#ifdef OPSCOPE_HAS_VIEWER
void program::add_view() {
  view_command* command = nullptr;
  auto* parser = add("view", "open a capture in the Perfetto UI, offline", command);
  take_file(*parser, command->file);
  constexpr unsigned largest_port = 65535;
  auto in_range = CLI::Range(0U, largest_port);
  parser->add_option("--port", command->port, "port to listen on (any)")
      ->check(in_range.description(""))
      ->type_name("P");
  parser->add_flag("--no-browser", command->no_browser, "print the address only");
  take_strict(*parser, command->strict);
}
#else
void program::add_view() {}
#endif

}  // namespace
}  // namespace opscope::cli

int main(int argc, char** argv) {
  using opscope::cli::status;
  try {
    const opscope::cli::standard_output output;
    const int code = opscope::cli::program{}.run(argc, argv);
    opscope::cli::finish_output();
    return code;
  } catch (const opscope::cli::failure& failed) {
    return opscope::cli::report(failed.code(), failed.what());
  } catch (const opscope::error& refused) {
    return opscope::cli::report(status::usage, refused.what());
  } catch (const std::exception& unexpected) {
    return opscope::cli::report(status::file, std::string{"unexpected: "} + unexpected.what());
  }
}
