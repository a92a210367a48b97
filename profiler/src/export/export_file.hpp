// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "capture/reader.hpp"
#include "export/chrome.hpp"

namespace opscope::exporter {

/// Exports by suffix: `.json`, or `.json.gz` compressed. Written to a temporary file beside `out`
/// that takes the name when it is whole.
/// @throws opscope::error when the suffix is unknown, `out` exists and `force` is false, or the
///         file cannot be written.
chrome_report export_file(const capture::capture& source, const std::filesystem::path& out,
                          bool force);

/// The suffixes that export_file takes, for messages: ".json or .json.gz".
[[nodiscard]] const char* export_suffixes() noexcept;

}  // namespace opscope::exporter
