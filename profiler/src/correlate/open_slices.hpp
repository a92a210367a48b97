// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "correlate/linked.hpp"
#include "model/records.hpp"

namespace opscope::correlate {

/// A slice that is open on a thread. `begun` says that an op began inside it.
struct open_slice {
  timestamp start;
  timestamp end;
  span_id id = 0;
  std::uint32_t flags = 0;
  bool begun = false;

  [[nodiscard]] bool contains(timestamp from, timestamp to) const noexcept {
    return start <= from && to <= end && end > from;
  }
};

struct open_op : open_slice {
  string_id name{};
  span_id outermost = 0;
  correlate::crossing* crossing = nullptr;  ///< of the outermost op around it, or its own
};

struct open_mark : open_slice {
  call_mark row;
};

struct open_call : open_slice {
  correlation_id correlation{};
  correlate::crossing* crossing = nullptr;  ///< that counts this call as a launch
};

/// The slices open on one thread, by layer, outermost first. Slices of a layer normally nest; one
/// that crosses another is skipped where it does not contain what is asked for.
class open_slices {
 public:
  std::vector<open_mark> marks;
  std::vector<open_slice> frames;
  std::vector<open_slice> ranges;
  std::vector<open_op> ops;
  std::vector<open_call> calls;

  /// Closes what ended by `now`.
  void advance(timestamp now);

  /// The innermost op that contains the span, or nullptr.
  [[nodiscard]] const open_op* op_around(timestamp from, timestamp to) const noexcept;

  /// Whether an API call of that correlation id is open: a driver call within a runtime call.
  [[nodiscard]] bool has_call(correlation_id id) const noexcept;

  /// Writes how the call into an outermost op was seen, and notes that an op began here.
  void see_call(const op& row, crossing& out);

 private:
  bool see_mark(const op& row, crossing& out);
  void see_frames(const op& row, crossing& out);
  void see_range(const op& row, crossing& out);
  void note_begun() noexcept;
};

}  // namespace opscope::correlate
