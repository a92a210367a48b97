// SPDX-License-Identifier: Apache-2.0
//
// The records of a capture: one plain aggregate a kind, stored as they stand here. Every type is
// trivially copyable, has no padding, and is a multiple of eight bytes, so that a segment is an
// array of them. A changed layout is a new schema number; old ones stay readable.
#pragma once

#include <concepts>
#include <cstdint>
#include <type_traits>

#include "model/ids.hpp"

namespace opscope {

/// Kind of a row segment. Numbers are part of the file format: only append.
enum class record_kind : std::uint16_t {
  python_frame = 1,
  op = 2,
  range = 3,
  api_call = 4,
  kernel = 5,
  memory_copy = 6,
  memory_set = 7,
  synchronization = 8,
  overhead = 9,
  counter_range = 10,
  call_mark = 11,
  sample = 12,
  graph_node = 13,
  external_correlation = 14,
  clock_pair = 15,
  thread_info = 16,
};

/// Flags of host spans (python_frame, op, range).
namespace span_flag {
inline constexpr std::uint32_t open_at_start = 1U << 0;  ///< began before it: start is clamped
inline constexpr std::uint32_t open_at_end = 1U << 1;    ///< had not ended at stop: end is clamped
}  // namespace span_flag

/// A Python function's activation, or (mode `calls`) a call of a C function.
struct python_frame {
  static constexpr record_kind kind = record_kind::python_frame;
  static constexpr std::uint16_t schema = 1;
  /// The callee is a C function; `name` is its qualified name, `file` and `line` are the caller's.
  static constexpr std::uint32_t c_call = 1U << 8;
  /// The code belongs to torch or opscope itself, not to the user.
  static constexpr std::uint32_t library = 1U << 9;
  /// A call of a torch.nn.Module; `name` is `nn.Module: <Class>_<n>`.
  static constexpr std::uint32_t module_call = 1U << 10;

  timestamp start;
  timestamp end;
  span_id id;
  span_id parent;  ///< enclosing frame that is recorded too, or 0
  string_id name;
  string_id file;
  std::uint32_t line;
  thread_id thread;
  std::uint32_t flags;
  std::uint32_t reserved;
  bool operator==(const python_frame&) const = default;
};

/// One call of a dispatcher operator, or a backward node's evaluation.
struct op {
  static constexpr record_kind kind = record_kind::op;
  static constexpr std::uint16_t schema = 1;
  static constexpr std::uint32_t outermost = 1U << 8;   ///< no other op encloses it on its thread
  static constexpr std::uint32_t backward = 1U << 9;    ///< scope BACKWARD_FUNCTION
  static constexpr std::uint32_t counted = 1U << 10;    ///< a counter range was open around it
  static constexpr std::uint32_t has_bytes = 1U << 11;  ///< input_bytes and output_bytes are known
  /// What is written in place counts as written only: the schema does not say whether it is read.
  static constexpr std::uint32_t bytes_at_least = 1U << 12;

  timestamp start;
  timestamp end;
  span_id id;
  span_id python_frame;          ///< innermost Python frame when the op began, or 0
  std::int64_t sequence;         ///< autograd sequence number, -1: none
  std::uint64_t forward_thread;  ///< RecordFunction's logical id of the forward thread (0: none)
  std::uint64_t logical_thread;  ///< RecordFunction's logical id of this thread
  std::uint64_t input_bytes;     ///< distinct tensor arguments that are read, elements x their size
  std::uint64_t output_bytes;    ///< distinct memory written, likewise
  string_id name;
  thread_id thread;
  string_id input_dims;   ///< JSON, e.g. [[8,1024],[]]; empty: not recorded
  string_id input_types;  ///< JSON, e.g. ["float","Scalar"]; empty: not recorded
  std::uint32_t flags;
  std::uint32_t reserved;
  bool operator==(const op&) const = default;
};

/// An NVTX range or mark, whoever emitted it.
struct range {
  static constexpr record_kind kind = record_kind::range;
  static constexpr std::uint16_t schema = 1;
  static constexpr std::uint32_t process_wide = 1U << 8;  ///< start/end range, may cross threads
  static constexpr std::uint32_t mark = 1U << 9;          ///< an instant: end == start
  static constexpr std::uint32_t step = 1U << 10;         ///< written by step(): ProfilerStep#N
  enum class payload_kind : std::uint32_t {
    none = 0,
    unsigned_integer = 1,
    signed_integer = 2,
    floating = 3
  };

  timestamp start;
  timestamp end;
  span_id id;
  std::uint64_t payload;  ///< bits of the payload, read by `payload_type`
  string_id name;
  string_id domain;  ///< empty: NVTX's default domain
  string_id category;
  std::uint32_t color;  ///< ARGB, 0: none
  thread_id thread;
  thread_id end_thread;
  payload_kind payload_type;
  std::uint32_t flags;
  bool operator==(const range&) const = default;
};

/// A CUDA runtime or driver API call.
struct api_call {
  static constexpr record_kind kind = record_kind::api_call;
  static constexpr std::uint16_t schema = 1;
  enum class domain : std::uint32_t { runtime = 0, driver = 1 };

  timestamp start;
  timestamp end;
  string_id name;  ///< CUPTI's full name, e.g. __cudaLaunchKernel_v13000
  correlation_id correlation;
  thread_id thread;
  domain api;
  std::uint32_t callback;  ///< CUPTI callback id within its domain
  std::int32_t result;     ///< the call's return value, 0: success
  bool operator==(const api_call&) const = default;
};

/// A kernel's execution on the GPU.
struct kernel {
  static constexpr record_kind kind = record_kind::kernel;
  static constexpr std::uint16_t schema = 1;
  /// CUPTI's own kernel (WaitNs of a counter range): shown, never counted.
  static constexpr std::uint32_t profiler_own = 1U << 8;

  timestamp start;
  timestamp end;
  std::uint64_t graph_node;  ///< CUPTI graph node id, 0: not from a graph
  string_id name;            ///< demangled
  correlation_id correlation;
  std::uint32_t device;
  std::uint32_t context;
  std::uint32_t stream;
  std::uint32_t graph;
  std::uint32_t grid[3];
  std::uint32_t block[3];
  std::uint32_t registers_per_thread;
  std::uint32_t static_shared_bytes;
  std::uint32_t dynamic_shared_bytes;
  std::uint32_t local_bytes_per_thread;
  std::uint32_t flags;
  std::uint32_t reserved;
  bool operator==(const kernel&) const = default;
};

/// A memory copy on the GPU.
struct memory_copy {
  static constexpr record_kind kind = record_kind::memory_copy;
  static constexpr std::uint16_t schema = 1;

  timestamp start;
  timestamp end;
  std::uint64_t bytes;
  std::uint64_t graph_node;
  correlation_id correlation;
  std::uint32_t device;
  std::uint32_t context;
  std::uint32_t stream;
  std::uint32_t copy_kind;    ///< CUpti_ActivityMemcpyKind
  std::uint32_t source_kind;  ///< CUpti_ActivityMemoryKind
  std::uint32_t target_kind;  ///< CUpti_ActivityMemoryKind
  std::uint32_t flags;
  bool operator==(const memory_copy&) const = default;
};

/// A memory fill on the GPU.
struct memory_set {
  static constexpr record_kind kind = record_kind::memory_set;
  static constexpr std::uint16_t schema = 1;

  timestamp start;
  timestamp end;
  std::uint64_t bytes;
  std::uint64_t graph_node;
  correlation_id correlation;
  std::uint32_t device;
  std::uint32_t context;
  std::uint32_t stream;
  std::uint32_t value;
  std::uint32_t memory_kind;  ///< CUpti_ActivityMemoryKind
  bool operator==(const memory_set&) const = default;
};

/// Host time spent waiting for the GPU.
struct synchronization {
  static constexpr record_kind kind = record_kind::synchronization;
  static constexpr std::uint16_t schema = 1;

  timestamp start;
  timestamp end;
  correlation_id correlation;
  std::uint32_t type;  ///< CUpti_ActivitySynchronizationType
  std::uint32_t context;
  std::uint32_t stream;  ///< 0xFFFFFFFF: not bound to a stream
  std::uint32_t event;
  std::uint32_t reserved;
  bool operator==(const synchronization&) const = default;
};

/// Time that the driver or CUPTI took for itself (instrumentation, buffer flush, lazy loading).
struct overhead {
  static constexpr record_kind kind = record_kind::overhead;
  static constexpr std::uint16_t schema = 1;

  timestamp start;
  timestamp end;
  correlation_id correlation;
  thread_id thread;
  string_id name;
  std::uint32_t reserved;
  bool operator==(const overhead&) const = default;
};

/// Hardware counters over a range of the host's work, read without replay (the device's totals).
struct counter_range {
  static constexpr record_kind kind = record_kind::counter_range;
  static constexpr std::uint16_t schema = 1;
  static constexpr std::uint32_t first_of_pass = 1U << 8;  ///< reads 16-30 KB of the profiler's own

  timestamp start;  ///< host time of the push
  timestamp end;    ///< host time of the pop
  double dram_read_bytes;
  double dram_write_bytes;
  double duration_ns;  ///< gpu__time_duration: first kernel's begin to last kernel's end
  double l2_bytes;
  std::uint64_t ordinal;    ///< n-th counted range of this name in the session, from 0
  string_id name;           ///< op name, or the label that the caller gave
  string_id method;         ///< how it was measured, read from the configuration given to CUPTI
  std::uint32_t cell;       ///< comparison cell, no_cell outside a comparison
  std::uint32_t contender;  ///< index within the cell
  thread_id thread;
  std::uint32_t device;
  std::uint32_t flags;
  std::uint32_t reserved;
  bool operator==(const counter_range&) const = default;
};

inline constexpr std::uint32_t no_cell = 0xFFFFFFFF;

/// t0 of a comparison: the moment just before a contender is called.
struct call_mark {
  static constexpr record_kind kind = record_kind::call_mark;
  static constexpr std::uint16_t schema = 1;

  timestamp start;
  timestamp end;  ///< when the contender returned to the caller
  std::uint32_t cell;
  std::uint32_t contender;
  std::uint32_t ordinal;
  thread_id thread;
  bool operator==(const call_mark&) const = default;
};

/// One raw measurement of a comparison, outside the timeline.
struct sample {
  static constexpr record_kind kind = record_kind::sample;
  static constexpr std::uint16_t schema = 1;
  enum class metric : std::uint32_t {
    host_call = 1,       ///< ns of host time for one call, untraced
    device_warm = 2,     ///< ns by CUDA events for one call, back to back ("batched")
    device_cold = 3,     ///< ns by CUDA events for one call after an L2 flush
    graph_replay = 4,    ///< ns by CUDA events for one call inside a CUDA-graph replay
    copy_bandwidth = 5,  ///< bytes per second of a device copy, as many bytes read + written
    host_call_sync = 6,  ///< ns of host time for one call and the synchronise after it
  };

  std::int64_t value;  ///< in the metric's unit
  std::uint32_t cell;
  std::uint32_t contender;
  std::uint32_t ordinal;  ///< pairs a candidate's sample with the baseline's
  metric what;
  bool operator==(const sample&) const = default;
};

/// A graph node and the op that was being captured when it was created.
struct graph_node {
  static constexpr record_kind kind = record_kind::graph_node;
  static constexpr std::uint16_t schema = 1;

  timestamp start;         ///< when it was created or cloned
  std::uint64_t node;      ///< CUPTI graph node id
  std::uint64_t original;  ///< node it was cloned from, 0: created by capture
  std::uint32_t graph;
  thread_id thread;
  bool operator==(const graph_node&) const = default;
};

/// CUPTI's external correlation, the oracle of the link test.
struct external_correlation {
  static constexpr record_kind kind = record_kind::external_correlation;
  static constexpr std::uint16_t schema = 1;

  timestamp start;  ///< always 0: CUPTI stamps none
  std::uint64_t external;
  correlation_id correlation;
  std::uint32_t external_kind;
  bool operator==(const external_correlation&) const = default;
};

/// One instant on both host clocks; a jump of their difference is a clock step.
struct clock_pair {
  static constexpr record_kind kind = record_kind::clock_pair;
  static constexpr std::uint16_t schema = 1;

  timestamp start;      ///< CLOCK_REALTIME
  timestamp monotonic;  ///< CLOCK_MONOTONIC_RAW
  bool operator==(const clock_pair&) const = default;
};

/// A thread that delivered records.
struct thread_info {
  static constexpr record_kind kind = record_kind::thread_info;
  static constexpr std::uint16_t schema = 1;

  timestamp start;  ///< first seen
  thread_id thread;
  string_id name;
  bool operator==(const thread_info&) const = default;
};

/// What a segment may hold.
template <typename Row>
concept record = std::is_trivially_copyable_v<Row> && std::is_standard_layout_v<Row> &&
                 sizeof(Row) % 8 == 0 && requires {
                   { Row::kind } -> std::convertible_to<record_kind>;
                   { Row::schema } -> std::convertible_to<std::uint16_t>;
                 };

static_assert(record<python_frame> && record<op> && record<range> && record<api_call> &&
              record<kernel> && record<memory_copy> && record<memory_set> &&
              record<synchronization> && record<overhead> && record<counter_range> &&
              record<call_mark> && record<sample> && record<graph_node> &&
              record<external_correlation> && record<clock_pair> && record<thread_info>);

}  // namespace opscope
