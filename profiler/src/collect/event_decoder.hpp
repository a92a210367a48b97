// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "collect/output.hpp"
#include "collect/stored_event.hpp"

namespace opscope::collect {

/// Turns stored events into rows: interns names, writes shapes and types as JSON, moves an end that
/// lies before its start (a clock step) and counts it as clamped.
class event_decoder {
 public:
  explicit event_decoder(output& to) : to_{to} {}

  void decode(const event_header& header, const std::byte* body);

 private:
  /// What frames, ops and ranges have in common.
  template <typename Row, typename Stored>
  Row begin(const event_header& header, const Stored& stored);
  void frame(const event_header& header, const std::byte* body);
  void op_call(const event_header& header, const std::byte* body);
  void nvtx_range(const event_header& header, const std::byte* body);
  void mark(const event_header& header, const std::byte* body);
  void measured(const std::byte* body);

  /// The id of a name whose bytes, if any, lie at `at`; moves `at` behind them.
  string_id name(const stored_name& name, const std::byte*& at);
  void format_arguments(const std::byte* at, std::uint32_t count);
  timestamp end_after(std::uint64_t start_ns, std::uint64_t end_ns, std::string_view category);

  output& to_;
  std::string dims_;   ///< reused
  std::string types_;  ///< reused
};

}  // namespace opscope::collect
