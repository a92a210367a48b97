// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <streambuf>
#include <string_view>

#include "export/descriptor_buffer.hpp"
#include "failure.hpp"

namespace opscope::cli {

/// Lines on standard error, each one line whatever is in it: control characters are escaped.
/// `opscope: error: ...`.
/// @return `code` as the program's exit status.
int report(status code, std::string_view line);

/// `opscope: warning: ...`.
void warn(std::string_view line);

/// `opscope: ...`.
void tell(std::string_view line);

/// Standard output, as std::cout while it lives.
class standard_output {
 public:
  standard_output();
  standard_output(const standard_output&) = delete;
  standard_output& operator=(const standard_output&) = delete;
  ~standard_output();

 private:
  exporter::descriptor_buffer buffer_;
  std::streambuf* before_;
};

/// Writes out what is pending of standard_output.
/// @throws failure with status::file when anything so far could not be written.
void finish_output();

}  // namespace opscope::cli
