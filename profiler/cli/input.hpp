// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "capture/reader.hpp"

namespace opscope::cli {

/// A temporary file, removed with the object.
class temporary_file {
 public:
  explicit temporary_file(const std::string& suffix);
  ~temporary_file();
  temporary_file(temporary_file&& other) noexcept;
  temporary_file& operator=(temporary_file&&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

 private:
  std::filesystem::path path_;
};

/// Opens a capture; `-` is standard input, spooled to a temporary file. A capture that was cut
/// short is read with one warning, or refused when `strict`.
/// @throws failure with status::file.
[[nodiscard]] capture::capture open_capture(const std::string& file, bool strict);

}  // namespace opscope::cli
