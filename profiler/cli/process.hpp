// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace opscope::cli {

/// Folder of this executable.
[[nodiscard]] std::filesystem::path program_folder();

/// The Python to start: $OPSCOPE_PYTHON, that of the environment this program lies in, or python3.
[[nodiscard]] std::string python_interpreter();

/// Replaces this program by `command`; arguments are passed as they are, no shell reads them.
/// @throws failure with status::not_found when it does not exist.
[[noreturn]] void replace_by(const std::vector<std::string>& command);

/// Standard output of `command`, or nothing when it failed. Its standard error is dropped.
[[nodiscard]] std::string output_of(const std::vector<std::string>& command);

/// Starts `command` and does not wait for it.
/// @return false when it could not be started.
bool start_detached(const std::vector<std::string>& command);

}  // namespace opscope::cli
