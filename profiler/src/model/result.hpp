// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>

namespace opscope {

/// Why a file could not be read: one line, and where.
struct read_error {
  std::string message;
  std::uint64_t offset = 0;  ///< byte offset in the file
};

/// A value, or the reason there is none. For untrusted input, which never throws.
template <typename Value>
class [[nodiscard]] result {
 public:
  result(Value value) : state_(std::move(value)) {}       // NOLINT(google-explicit-constructor)
  result(read_error error) : state_(std::move(error)) {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] bool ok() const noexcept { return std::holds_alternative<Value>(state_); }
  explicit operator bool() const noexcept { return ok(); }

  [[nodiscard]] Value& value() & { return std::get<Value>(state_); }
  [[nodiscard]] const Value& value() const& { return std::get<Value>(state_); }
  [[nodiscard]] Value&& value() && { return std::get<Value>(std::move(state_)); }
  [[nodiscard]] const read_error& error() const { return std::get<read_error>(state_); }

 private:
  std::variant<Value, read_error> state_;
};

}  // namespace opscope
