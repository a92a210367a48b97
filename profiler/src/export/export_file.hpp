// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "capture/reader.hpp"
#include "export/chrome.hpp"

namespace opscope::exporter {

/// What is written: told by the suffix, or a Chrome trace under any name (compressed for `.gz`).
enum class file_form : std::uint8_t { by_suffix, chrome };

/// Exports by suffix: `.json`, or `.json.gz` compressed. Written to a temporary file beside `out`
/// that takes the name when it is whole; a device or a pipe is written to as it is.
/// @throws opscope::error when the suffix is unknown, `out` exists and `force` is false, or the
///         file cannot be written.
chrome_report export_file(const capture::capture& source, const std::filesystem::path& out,
                          bool force, file_form form = file_form::by_suffix);

/// The suffixes that export_file takes, for messages: ".json or .json.gz".
[[nodiscard]] const char* export_suffixes() noexcept;

/// What to do about a write that failed with this error number.
[[nodiscard]] std::string_view remedy_of_write(int error_number) noexcept;

}  // namespace opscope::exporter
