// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "opscope/error.hpp"

namespace opscope::cli {

/// Exit statuses of the program.
enum class status : std::uint8_t {
  done = 0,         ///< and the answer is yes
  no = 1,           ///< done, the answer is no
  usage = 2,        ///< wrong usage
  file = 3,         ///< an input cannot be read, an output cannot be written
  machine = 4,      ///< the machine lacks what was asked for
  not_found = 127,  ///< a program to start does not exist
};

/// An error that ends the program with a status of its own.
class failure : public error {
 public:
  failure(status status, const std::string& line) : error(line), status_{status} {}
  [[nodiscard]] status code() const noexcept { return status_; }

 private:
  status status_;
};

}  // namespace opscope::cli
