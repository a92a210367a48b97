// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <iostream>

#include "commands.hpp"
#include "export/export_file.hpp"
#include "input.hpp"

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
  const auto source = open_capture(command.file, command.strict);
  if (command.output == "-") {
    exporter::write_chrome(source, std::cout);
    if (!std::cout) {
      throw failure(status::file, "export to standard output: it was closed (keep the pipe open)");
    }
    return status::done;
  }
  try {
    const auto report = exporter::export_file(source, command.output, command.force);
    std::cerr << fmt::format("opscope: wrote {}: {} slices, {} arrows\n", command.output,
                             total(report.slices), total(report.arrows));
  } catch (const error& refused) {
    throw failure(status::file, refused.what());
  }
  return status::done;
}

}  // namespace opscope::cli
