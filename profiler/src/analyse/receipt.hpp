// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyse/statistics.hpp"
#include "capture/reader.hpp"
#include "model/ledger.hpp"

namespace opscope::analyse {

/// A quantity with the way it was obtained, or why it is missing.
template <typename Value>
struct measured {
  std::optional<Value> value;
  std::string method;  ///< counter:user-range, cuda-events, cupti-record, host-clock, ...
  std::string why;     ///< "not measured: <why>", when there is no value

  explicit operator bool() const noexcept { return value.has_value(); }
  const Value& operator*() const { return *value; }
  const Value* operator->() const { return &*value; }
};

/// A duration over calls, in ns (nearest rank).
struct timing {
  std::int64_t median = 0;
  std::int64_t p95 = 0;
  std::uint64_t count = 0;
  bool operator==(const timing&) const = default;
};

/// A boundary stage: as recorded, and with the collector's own cost taken off where it is known.
struct stage_timing {
  std::string_view name;  ///< python, dispatch, launch, between, return, op, queue, kernel, ...
  timing raw;
  std::optional<timing> corrected;

  [[nodiscard]] bool corrected_known() const noexcept { return corrected.has_value(); }
};

/// Memory traffic of one call by hardware counters (medians over the ranges).
struct traffic {
  std::int64_t read_bytes = 0;
  std::int64_t write_bytes = 0;
  std::int64_t l2_bytes = 0;
  std::int64_t duration_ns = 0;
  std::uint64_t count = 0;
  bool operator==(const traffic&) const = default;
};

/// Bytes over time, beside the copy of the same run.
struct bandwidth {
  double bytes_per_second = 0;
  std::optional<double> share_of_copy;  ///< 1.0: as fast as the copy
};

/// How whole the chain from Python to the GPU is over the calls of the timeline pass.
struct chain {
  std::uint64_t calls = 0;
  std::uint64_t without_op = 0;  ///< calls in which no op began
  std::uint64_t launches = 0;
  std::uint64_t gpu_activities = 0;  ///< kernels, copies and fills
  std::uint64_t kernels = 0;
  std::uint64_t unlinked = 0;      ///< launches without GPU activity
  std::uint64_t out_of_order = 0;  ///< calls that break t0 <= t1 <= t2 <= t3, t2 <= t4 < t5
  std::uint64_t sums_broken = 0;   ///< calls whose stages do not sum
};

struct contender_receipt {
  std::string name;
  std::uint32_t index = 0;
  std::uint32_t baseline = 0;  ///< index of the contender that the ratios are against
  std::optional<bool> correct;
  std::optional<double> max_abs_error;
  std::optional<double> max_rel_error;
  std::optional<double> absolute_tolerance;  ///< allowed: this + relative * |expected|
  std::optional<double> relative_tolerance;
  std::optional<std::int64_t> compared;  ///< elements
  std::string correctness;               ///< the reason, when wrong or unchecked

  measured<timing> host_call;
  measured<timing> host_call_sync;
  measured<timing> device_warm;  ///< back to back
  measured<timing> device_cold;
  measured<timing> graph_replay;
  measured<timing> kernel_record;       ///< kernels of one call, summed, as CUPTI recorded them
  measured<ratio_estimate> host_ratio;  ///< of the baseline's; a baseline has none
  measured<ratio_estimate> device_ratio;
  measured<ratio_estimate> record_ratio;  ///< CUPTI record over CUDA events, of this contender

  std::vector<stage_timing> stages;
  std::string stages_why;  ///< when there are none
  measured<traffic> warm;
  measured<traffic> cold;
  measured<bandwidth> achieved;
  chain links;

  /// baseline, faster, slower, no difference shown, unstable, too few pairs, wrong, skipped, not
  /// measured
  std::string verdict;
  std::vector<std::string> reasons;
};

struct cell_receipt {
  std::uint32_t cell = 0;
  std::string label;
  std::string dtype;
  std::vector<std::int64_t> shape;
  std::int64_t elements = 0;
  std::int64_t read_bytes_ideal = 0;
  std::int64_t write_bytes_ideal = 0;
  bool backward = false;
  std::optional<std::string> skipped;  ///< why
  measured<double> copy_bytes_per_second;
  std::vector<contender_receipt> contenders;
};

/// A comparison, recomputed from the capture alone.
struct receipt {
  std::string title;
  std::string device;
  std::string approximate;
  bool on_gpu = false;
  std::vector<std::string> contenders;  ///< names; 0 is the baseline
  std::vector<cell_receipt> cells;
  std::vector<std::string>
      notes;  ///< what a reader must know: CUPTI touched before timing, recovered
  opscope::ledger ledger;

  [[nodiscard]] bool any_wrong() const;  ///< some contender's result differs: exit status 1
};

/// Links `source` once and evaluates its comparison.
/// @throws opscope::error when the capture holds no comparison, or one that cannot be read.
[[nodiscard]] receipt make_receipt(const capture::capture& source);

/// {"schema": "opscope.receipt/1", ...}: a method beside every number, null and why where missing.
[[nodiscard]] std::string to_json(const receipt& what);

/// A row a quantity of an input and contender: value, percentile or interval, count, and the method
/// or why it is missing. Raw units; RFC 4180.
[[nodiscard]] std::string to_csv(const receipt& what);

/// What matters most as a GitHub table, a row an input and contender, and how to read it.
[[nodiscard]] std::string to_markdown(const receipt& what);

/// For a terminal of `width` columns (at least 80): a line a size and contender, and the stages of
/// the middle size.
[[nodiscard]] std::string to_brief(const receipt& what, unsigned width = 80);

/// All there is: one block a size, one column a contender; the lines of `to_brief` follow.
[[nodiscard]] std::string to_table(const receipt& what, unsigned width = 80);

}  // namespace opscope::analyse
