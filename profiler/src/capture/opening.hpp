// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

namespace opscope::capture {

/// As open(2), closed on exec, and never under the number of a standard stream: in a program that
/// closed one, what is written to that number would go into the file.
/// @return the descriptor, or -1 with errno set.
[[nodiscard]] int open_file(const char* path, int flags, mode_t mode = 0) noexcept;

}  // namespace opscope::capture
