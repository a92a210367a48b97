// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "analyse/summary.hpp"
#include "failure.hpp"

namespace opscope::cli {

struct summary_command {
  std::string file;
  std::string format = "table";
  bool strict = false;
  analyse::summary_options options;
};
/// Prints tables of a capture.
status run(const summary_command& command);

struct verify_command {
  std::string file;
  std::string format = "table";
  bool strict = false;
};
/// Prints what was delivered and lost; `no` unless everything is there.
status run(const verify_command& command);

struct export_command {
  std::string file;
  std::string output;
  std::string to;
  bool force = false;
  bool strict = false;
};
/// Writes a capture in another format.
status run(const export_command& command);

struct doctor_command {
  std::string format = "table";
};
/// Prints what this machine can record and how to mend what it cannot; `no` for a blocker.
status run(const doctor_command& command);

struct view_command {
  std::string file;
  unsigned port = 0;
  bool no_browser = false;
  bool strict = false;
};
/// Serves the capture's timeline in the Perfetto UI on loopback until it is interrupted.
status run(const view_command& command);

/// `python -m opscope.<module> ARGUMENTS`, in place of this program.
[[noreturn]] void run_python(const std::string& module, const std::vector<std::string>& arguments);

}  // namespace opscope::cli
