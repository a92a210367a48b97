// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include "collect/activity_source.hpp"
#include "cupti/api.hpp"
#include "cupti/driver.hpp"
#include "cupti/range_profiler.hpp"

namespace opscope::cupti {

/// One session of counter ranges, by user ranges of one pass without replay.
///
/// The counters are the device's and CUPTI keeps one open range, so ranges are one at a time in the
/// process: a begin while another thread's range is open is refused and counted. Each context that
/// a range is opened in gets counters of its own when first met. A full arming is collected and
/// renewed at the next begin, between ranges; nothing is lost and nothing is merged.
///
/// A failure while ranges run (permission, another tool) is said once; the ranges that it cost are
/// counted as skipped, and the program goes on. Not thread-safe.
class counter_session {
 public:
  /// Takes the counters of the context in use, if there is one.
  /// @param capacity ranges before counters are renewed, 0: the default of 256.
  /// @throws opscope::error when they cannot be taken: what, why, and the remedy.
  counter_session(std::uint32_t capacity, collect::activity_sink& sink, driver_api driver,
                  api cupti);

  /// Delivers what is waiting.
  ~counter_session();
  counter_session(const counter_session&) = delete;
  counter_session& operator=(const counter_session&) = delete;

  /// False where no range could be opened, which is counted as skipped.
  bool begin(std::string_view name, std::uint32_t cell, std::uint32_t contender) noexcept;

  /// Closes the range that this thread opened; without one it does nothing.
  void end() noexcept;

 private:
  struct context_counters;

  context_counters& counters_of(CUcontext context);
  void arm(context_counters& counters);
  void describe(const context_counters& counters, const std::string& chip);
  void renew_if_full(context_counters& counters);
  void push(context_counters& counters, std::string_view name, std::uint32_t cell,
            std::uint32_t contender);
  void deliver(context_counters& counters) noexcept;
  void give_up(const std::exception& failure) noexcept;

  collect::activity_sink& sink_;
  std::uint32_t capacity_;
  driver_api driver_;
  api cupti_;
  std::vector<std::unique_ptr<context_counters>> contexts_;
  std::unordered_map<string_id, std::uint64_t> ordinals_;
  context_counters* open_ = nullptr;  ///< where a range is open
  std::thread::id owner_;             ///< who opened it
  bool broken_ = false;
};

}  // namespace opscope::cupti
