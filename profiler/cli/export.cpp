// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <iostream>

#include "commands.hpp"
#include "export/export_file.hpp"
#include "input.hpp"
#include "messages.hpp"

namespace opscope::cli {
namespace {

std::uint64_t total(const exporter::chrome_report::counts& counts) {
  std::uint64_t sum = 0;
  for (const auto& [category, count] : counts) sum += count;
  return sum;
}

}  // namespace

status run(const export_command& command) {
  if (command.output == "-" && command.to.empty()) {
    throw failure(status::usage, "export to standard output: the format is not given (add --to)");
  }
  if (command.output.empty()) {
    throw failure(status::usage, "export: the name of the output is empty (give a path)");
  }
  const auto source = open_capture(command.file, command.strict);
  if (command.output == "-") {
    exporter::write_chrome(source, std::cout);
    return status::done;
  }
  try {
    const auto form =
        command.to.empty() ? exporter::file_form::by_suffix : exporter::file_form::chrome;
    const auto report = exporter::export_file(source, command.output, command.force, form);
    tell(fmt::format("wrote {}: {} slices, {} arrows", command.output, total(report.slices),
                     total(report.arrows)));
  } catch (const error& refused) {
    throw failure(status::file, refused.what());
  }
  return status::done;
}

}  // namespace opscope::cli
