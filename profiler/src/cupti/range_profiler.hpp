// SPDX-License-Identifier: Apache-2.0
//
// Counters over user ranges of one context, one pass, no replay. An object is one arming of the
// counters: enable, configure, start; then ranges; then collect. Room is renewed by a new object.
//
// CUPTI's traps that this class takes care of: ranges of equal name are merged, so it numbers them;
// ranges beyond the capacity vanish while "dropped" says 0, so it counts them; the first range of
// an arming carries 16-30 KB of the profiler's own traffic, so it spends that one on nothing; the
// images must outlive the arming, so it owns them; calls need the context current, so it pushes it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cupti/api.hpp"
#include "cupti/driver.hpp"
#include "cupti/profiler_host.hpp"

namespace opscope::cupti {

/// How a configuration measures: "counter:user-range" for user ranges without replay,
/// "counter:kernel-replay" for a range a kernel with replay.
[[nodiscard]] std::string_view method_of(
    const CUpti_RangeProfiler_SetConfig_Params& config) noexcept;

/// A range's number, as `push` gave it, and what was counted in it.
struct measured_range {
  std::size_t number;
  counter_values values;
};

/// Not thread-safe; ranges may be pushed by one thread and popped by another, one at a time.
class range_profiler {
 public:
  /// Takes the counters of the context's device. Takes about a millisecond a range of capacity.
  /// @param capacity ranges that can be pushed before `collect`.
  /// @throws cupti_error: permission, hardware busy, not supported.
  range_profiler(const api& cupti, const driver_api& driver, const profiler_host& host,
                 CUcontext context, std::size_t capacity);
  ~range_profiler();
  range_profiler(const range_profiler&) = delete;
  range_profiler& operator=(const range_profiler&) = delete;

  [[nodiscard]] bool full() const noexcept { return pushed_ >= capacity_; }
  [[nodiscard]] std::size_t pushed() const noexcept { return pushed_; }
  [[nodiscard]] std::string_view method() const noexcept { return method_of(config_); }

  /// The first range may hold the profiler's own traffic: the one spent on it could not be opened.
  [[nodiscard]] bool first_is_unclean() const noexcept { return !warmed_; }

  /// Opens a range; returns its number, counted from 0.
  /// @throws cupti_error
  std::size_t push();

  /// Closes the open range. Leaves a wait of some 40 us in the GPU's queue.
  /// @throws cupti_error
  void pop();

  /// Waits for the context, stops, and evaluates every range. A range that is still open has no
  /// finite values. Nothing can be pushed afterwards.
  /// @throws cupti_error; opscope::error when the pass was not complete.
  [[nodiscard]] std::vector<measured_range> collect();

 private:
  void enable();
  void configure();
  void warm_up() noexcept;
  void stop();

  const api& cupti_;
  const driver_api& driver_;
  const profiler_host& host_;
  CUcontext context_;
  std::size_t capacity_;
  std::size_t pushed_ = 0;
  bool warmed_ = false;
  bool started_ = false;
  std::string open_name_;
  std::vector<std::uint8_t> config_image_;
  std::vector<std::uint8_t> counter_data_;
  CUpti_RangeProfiler_SetConfig_Params config_{};
  CUpti_RangeProfiler_Object* profiler_ = nullptr;
};

}  // namespace opscope::cupti
