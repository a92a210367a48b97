// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <iosfwd>
#include <string>

#include "capture/reader.hpp"

namespace opscope::cli {

/// A temporary file without a name: it goes with the object, or however the process ends.
class temporary_file {
 public:
  /// @throws failure with status::file.
  temporary_file();
  ~temporary_file();
  temporary_file(temporary_file&& other) noexcept;
  temporary_file& operator=(temporary_file&&) = delete;

  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }
  /// Where this process can open it as long as the object lives.
  [[nodiscard]] std::filesystem::path path() const;

  /// Fills it by way of `write`.
  /// @throws failure with status::file.
  void fill(const std::function<void(std::ostream&)>& write) const;

 private:
  int descriptor_;
};

/// Opens a capture; `-` is standard input, spooled to a temporary file. A capture that was cut
/// short is read with one warning, or refused when `strict`.
/// @throws failure with status::file.
[[nodiscard]] capture::capture open_capture(const std::string& file, bool strict);

}  // namespace opscope::cli
