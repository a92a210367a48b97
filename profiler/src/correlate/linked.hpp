// SPDX-License-Identifier: Apache-2.0
//
// What correlation hands on: every event of a capture in time order, each with its links.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "correlate/counted.hpp"
#include "model/ledger.hpp"
#include "model/records.hpp"

namespace opscope::correlate {

/// A launch made by an op: one API call that starts GPU work (kernel, copy, fill, graph), the
/// outermost record of its correlation id.
struct launch {
  timestamp start;  ///< t2
  timestamp end;    ///< t3
  correlation_id correlation;
};

/// Where an outermost op's time goes, in whole nanoseconds; they sum to `total` exactly.
/// With a launch: python + dispatch + launch + between + return_ = t6 - t0 (t1 when t0 is missing,
/// then without python). Without one: python and op = t6 - t1 only.
struct stages {
  std::optional<std::chrono::nanoseconds> python;    ///< t1 - t0; absent without t0
  std::optional<std::chrono::nanoseconds> dispatch;  ///< t2 - t1 of the first launch
  std::optional<std::chrono::nanoseconds> launch;    ///< t3 - t2 of the first launch
  std::optional<std::chrono::nanoseconds> between;   ///< first launch's end to last launch's end
  std::optional<std::chrono::nanoseconds> return_;   ///< t6 - last t3
  std::optional<std::chrono::nanoseconds> op;        ///< t6 - t1, only of an op without a launch
  std::chrono::nanoseconds total{};
};

/// How the call into an op was seen, or why it was not.
enum class call_source : std::uint8_t {
  no_frame,        ///< no Python frame and no range around the op
  no_event,        ///< CPython told of none: an operator, or a builtin in the mode `entry`
  earlier_op,      ///< the call had begun another op before
  before_session,  ///< the call had begun when the session did
  call_mark,
  python_call,
  user_range,
};

/// The crossing of one outermost op.
struct crossing {
  std::optional<timestamp> called;  ///< t0
  call_source source = call_source::no_frame;
  span_id caller = 0;      ///< the Python frame or C call that is innermost around the op, 0: none
  span_id user_frame = 0;  ///< innermost Python frame outside torch and opscope, 0: none
  const call_mark* mark = nullptr;          ///< comparison call that the op belongs to
  std::vector<correlate::launch> launches;  ///< by start
  correlate::stages stages;
  const counted* counters = nullptr;  ///< null also where other work in its call launched too
};

/// The op that a piece of GPU work or an API call belongs to.
struct op_link {
  span_id outermost = 0;  ///< 0: made outside any op
  span_id innermost = 0;
  string_id name{};  ///< of the outermost op
};

/// One GPU activity's partner on the host.
struct gpu_link {
  op_link op;
  std::optional<correlate::launch> launch;        ///< absent: unlinked
  std::optional<std::chrono::nanoseconds> queue;  ///< t4 - t3, negative when it began before t3
  const counted* counters = nullptr;              ///< of its op, when that op launched only this
  bool captured_earlier = false;                  ///< a graph node whose capture was not seen
};

/// Receives a capture's events, each kind and all kinds together in order of (start, -end): link()
/// holds events back while an outermost op is open, so that its crossing is whole when it is handed
/// on. References live for the call only. Default implementations ignore.
class linked_sink {
 public:
  virtual ~linked_sink() = default;
  virtual void on(const python_frame&) {}
  /// An op's own link: `outermost` is the outermost op around it (itself, when nothing is), and
  /// `innermost` the op directly around it, or 0.
  virtual void on(const op&, const crossing* /*null for inner ops*/, const op_link&) {}
  virtual void on(const range&) {}
  virtual void on(const api_call&, const op_link&, bool /*outermost of its correlation id*/) {}
  virtual void on(const kernel&, const gpu_link&) {}
  virtual void on(const memory_copy&, const gpu_link&) {}
  virtual void on(const memory_set&, const gpu_link&) {}
  virtual void on(const synchronization&) {}
  virtual void on(const overhead&) {}
  virtual void on(const call_mark&, const counted* /*null: not counted*/) {}
  virtual void on(const counter_range&) {}  ///< those that are of no op of the timeline
};

}  // namespace opscope::correlate
