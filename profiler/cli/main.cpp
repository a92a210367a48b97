// SPDX-License-Identifier: Apache-2.0
//
// The opscope program: what each command takes, and what its failure ends with.
#include <CLI/CLI.hpp>
#include <exception>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <string>

#include "commands.hpp"

namespace opscope::cli {
namespace {

/// One line, whatever was thrown.
int report(status code, const std::string& line) {
  std::cerr << "opscope: error: " << line << '\n';
  return static_cast<int>(code);
}

void take_file(CLI::App& command, std::string& file) {
  command.add_option("FILE", file, "a .opscope capture, or - for standard input")->required();
}

void take_format(CLI::App& command, std::string& format, const std::vector<std::string>& known) {
  std::string all;
  for (const auto& name : known) all += (all.empty() ? "" : "|") + name;
  command.add_option("--format", format, all)
      ->check(CLI::IsMember(known))
      ->type_name("FORMAT")
      ->capture_default_str();
}

void take_strict(CLI::App& command, bool& strict) {
  command.add_flag("--strict", strict, "refuse a capture that was cut short");
}

class program {
 public:
  program() {
    app_.set_version_flag("--version", std::string{"opscope "} + OPSCOPE_VERSION);
    app_.require_subcommand(1);
    app_.get_formatter()->column_width(30);
    add_python("demo", "measure a custom GELU against the builtin, and show the receipt");
    add_python("bench", "the same receipt for your own op: CANDIDATE --against BASELINE");
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
      return report(status::usage, std::string{wrong.what()} + " (see opscope --help)");
    }
    return static_cast<int>(chosen_());
  }

 private:
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
    std::string all;
    for (const auto& name : groupings) all += (all.empty() ? "" : "|") + name;
    parser->add_option("--by", options.by, all)
        ->check(CLI::IsMember(groupings))
        ->type_name("GROUP")
        ->capture_default_str();
    parser->add_flag("--group-by-shape", options.group_by_shape, "a row a set of input shapes");
    parser->add_option("--top", options.top, "rows to keep (all)")->type_name("N");
    parser->add_option("--sort", options.sort, "column to sort by")->type_name("KEY");
    parser->add_flag("--full", options.full, "all columns, whole names");
    take_format(*parser, command->format, {"table", "json", "csv", "markdown"});
    take_strict(*parser, command->strict);
  }

  void add_export() {
    export_command* command = nullptr;
    auto* parser = add("export", "write a capture as a Chrome trace for Perfetto", command);
    take_file(*parser, command->file);
    parser->add_option("-o,--output", command->output, "OUT.json, OUT.json.gz, or - with --to")
        ->required()
        ->type_name("OUT");
    parser->add_option("--to", command->to, "chrome")
        ->check(CLI::IsMember(std::vector<std::string>{"chrome"}))
        ->type_name("KIND");
    parser->add_flag("--force", command->force, "replace OUT");
    take_strict(*parser, command->strict);
  }

  void add_verify() {
    verify_command* command = nullptr;
    auto* parser = add("verify", "what a capture holds and what it lost; 1 for a loss", command);
    take_file(*parser, command->file);
    take_format(*parser, command->format, {"table", "json"});
    take_strict(*parser, command->strict);
  }

  void add_view();

  void add_doctor() {
    doctor_command* command = nullptr;
    auto* parser = add("doctor", "what this machine can record, and how to mend the rest", command);
    take_format(*parser, command->format, {"table", "json"});
  }

  CLI::App app_{"opscope shows an op's whole way from the Python call to the DRAM byte", "opscope"};
  std::map<std::string, std::string, std::less<>> python_;
  std::function<status()> chosen_;
};

#ifdef OPSCOPE_HAS_VIEWER
void program::add_view() {
  view_command* command = nullptr;
  auto* parser = add("view", "open a capture in the Perfetto UI, served on loopback", command);
  take_file(*parser, command->file);
  constexpr unsigned largest_port = 65535;
  parser->add_option("--port", command->port, "port to listen on (any)")
      ->check(CLI::Range(0U, largest_port))
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
    return opscope::cli::program{}.run(argc, argv);
  } catch (const opscope::cli::failure& failed) {
    return opscope::cli::report(failed.code(), failed.what());
  } catch (const opscope::error& refused) {
    return opscope::cli::report(status::usage, refused.what());
  } catch (const std::exception& unexpected) {
    return opscope::cli::report(status::file, std::string{"unexpected: "} + unexpected.what());
  }
}
