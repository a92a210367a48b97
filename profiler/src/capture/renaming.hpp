// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace opscope::capture {

/// Renames `from`, replacing a file that has the name `to`.
/// @return 0 or the error number.
[[nodiscard]] int rename_over(const char* from, const char* to) noexcept;

/// Renames `from` in one step that never replaces what has the name `to`, a link included. A file
/// system that knows neither such a rename nor hard links is asked for the name first.
/// @return 0 or the error number, EEXIST for a name that is taken.
[[nodiscard]] int rename_new(const char* from, const char* to) noexcept;

}  // namespace opscope::capture
