// SPDX-License-Identifier: Apache-2.0
//
// Commands that print a capture's data.
#include <sys/ioctl.h>
#include <unistd.h>

#include <iostream>

#include "analyse/verify.hpp"
#include "commands.hpp"
#include "export/count.hpp"
#include "input.hpp"

namespace opscope::cli {
namespace {

constexpr unsigned default_width = 80;

/// Columns of the terminal on standard output; 80 when it is none.
unsigned output_width() {
  winsize size{};
  if (isatty(STDOUT_FILENO) == 0 || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) {
    return default_width;
  }
  return size.ws_col < default_width ? default_width : size.ws_col;
}

std::string formatted(const analyse::summary& table, const std::string& format) {
  if (format == "json") return analyse::to_json(table);
  if (format == "csv") return analyse::to_csv(table);
  if (format == "markdown") return analyse::to_markdown(table);
  return analyse::to_table(table, output_width());
}

void print(const std::string& text) {
  std::cout << text;
  if (!text.ends_with('\n')) std::cout << '\n';
}

}  // namespace

status run(const summary_command& command) {
  const auto source = open_capture(command.file, command.strict);
  print(formatted(analyse::summarise(source, command.options), command.format));
  return status::done;
}

status run(const verify_command& command) {
  const auto source = open_capture(command.file, command.strict);
  const auto report = exporter::verify(source);
  print(command.format == "json" ? analyse::to_json(report) : analyse::to_table(report));
  return report.verdict == analyse::integrity::complete ? status::done : status::no;
}

}  // namespace opscope::cli
