// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "opscope/error.hpp"
#include "opscope/visibility.hpp"

namespace opscope {

/// Writes a capture as a Chrome trace, to be opened in Perfetto.
/// @param capture path of a complete or recovered `.opscope` file.
/// @param out `.json` or `.json.gz`; appears under this name once it is complete.
/// @param force replace an existing file.
/// @throws opscope::error when the capture cannot be read, the output exists, has another suffix or
/// cannot be written.
OPSCOPE_PUBLIC void export_trace(const std::filesystem::path& capture,
                                 const std::filesystem::path& out, bool force = false);

}  // namespace opscope
