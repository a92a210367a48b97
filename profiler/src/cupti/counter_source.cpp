// SPDX-License-Identifier: Apache-2.0
//
// Hardware counters around the host's work, by user ranges of one pass without replay.
//
// The counters are the device's and CUPTI keeps one open range, so ranges are one at a time in the
// process: a begin while another thread's range is open is refused and counted. Each context that
// a range is opened in gets counters of its own when first met. A full arming is collected and
// renewed at the next begin, between ranges; nothing is lost and nothing is merged.
//
// A failure while ranges run (permission, another tool) is said once; the ranges that it cost are
// counted as skipped, and the program goes on.
#include <unistd.h>

#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>
#include <unordered_map>
#include <vector>

#include "collect/activity_source.hpp"
#include "cupti/captures.hpp"
#include "cupti/clock.hpp"
#include "cupti/counter_support.hpp"
#include "cupti/cupti_error.hpp"
#include "cupti/range_profiler.hpp"
#include "cupti/touched.hpp"

namespace opscope::cupti {
namespace {

constexpr std::string_view row_kind = "counter_range";

/// The counters of one context and the rows that wait for their values.
struct context_counters {
  CUcontext context;
  CUdevice device;
  std::unique_ptr<profiler_host> host;
  std::unique_ptr<range_profiler> profiler;
  std::vector<counter_range> waiting;  ///< by range number
};

/// Not thread-safe: the source's mutex guards it.
class counter_session {
 public:
  counter_session(std::uint32_t capacity, collect::activity_sink& sink)
      : sink_(sink),
        capacity_(capacity != 0 ? capacity : default_capacity),
        driver_(open_driver()),
        cupti_(open_api()) {
    mark_touched();
    initialize_counters(cupti_);
    if (const auto context = context_in_use(driver_)) {
      counters_of(*context);
    }
  }

  ~counter_session() {
    for (auto& counters : contexts_) {
      collect(*counters);
    }
  }
  counter_session(const counter_session&) = delete;
  counter_session& operator=(const counter_session&) = delete;

  bool begin(std::string_view name, std::uint32_t cell, std::uint32_t contender) noexcept {
    // Work that is being captured does not run, and a range would invalidate the capture.
    const bool closed = broken_ || open_ != nullptr || capture_in_progress();
    const auto context = closed ? std::nullopt : context_in_use(driver_);
    if (!context) {
      sink_.account(outcome::skipped, row_kind, 1);
      return false;
    }
    try {
      auto& counters = counters_of(*context);
      renew_if_full(counters);
      push(counters, name, cell, contender);
      return true;
    } catch (const std::exception& failure) {
      give_up(failure);
      sink_.account(outcome::skipped, row_kind, 1);
      return false;
    }
  }

  void end() noexcept {
    if (open_ == nullptr || owner_ != std::this_thread::get_id()) {
      return;
    }
    auto& counters = *std::exchange(open_, nullptr);
    try {
      counters.profiler->pop();
    } catch (const std::exception& failure) {
      give_up(failure);
    }
    counters.waiting.back().end = realtime_now();
  }

 private:
  static constexpr std::uint32_t default_capacity = 256;

  /// @throws cupti_error when the counters cannot be taken.
  context_counters& counters_of(CUcontext context) {
    for (auto& known : contexts_) {
      if (known->context == context) {
        return *known;
      }
    }
    auto fresh = std::make_unique<context_counters>();
    fresh->context = context;
    fresh->device = device_of(driver_, context);
    const std::string chip = chip_name(cupti_, fresh->device);
    fresh->host = make_one_pass_host(cupti_, chip);
    arm(*fresh);
    describe(*fresh, chip);
    contexts_.push_back(std::move(fresh));
    return *contexts_.back();
  }

  void arm(context_counters& counters) {
    counters.profiler = std::make_unique<range_profiler>(cupti_, driver_, *counters.host,
                                                         counters.context, capacity_);
  }

  void describe(const context_counters& counters, const std::string& chip) {
    const nlohmann::json facts{{"method", counters.profiler->method()},
                               {"metrics", counter_metrics},
                               {"passes", counters.host->passes()},
                               {"capacity", capacity_},
                               {"chip", chip},
                               {"device", counters.device}};
    sink_.document("counters", facts.dump());
  }

  void renew_if_full(context_counters& counters) {
    if (counters.profiler == nullptr || counters.profiler->full()) {
      collect(counters);
      arm(counters);
    }
  }

  void push(context_counters& counters, std::string_view name, std::uint32_t cell,
            std::uint32_t contender) {
    counter_range row{};
    row.name = sink_.intern(name);
    row.method = sink_.intern(counters.profiler->method());
    row.cell = cell;
    row.contender = contender;
    row.thread = thread_id{static_cast<std::uint32_t>(gettid())};
    row.device = static_cast<std::uint32_t>(counters.device);
    const bool unclean = counters.waiting.empty() && counters.profiler->first_is_unclean();
    row.flags = unclean ? counter_range::first_of_pass : 0;
    counters.waiting.reserve(capacity_);
    row.start = realtime_now();
    counters.profiler->push();
    row.ordinal = ordinals_[row.name]++;
    counters.waiting.push_back(row);
    open_ = &counters;
    owner_ = std::this_thread::get_id();
  }

  /// Delivers the waiting rows that got values; counts the others.
  void collect(context_counters& counters) noexcept {
    std::vector<counter_range> rows;
    try {
      if (counters.profiler != nullptr) {
        rows.reserve(counters.waiting.size());
        for (const auto& [number, values] : counters.profiler->collect()) {
          if (number < counters.waiting.size() && values.complete()) {
            rows.push_back(with(counters.waiting[number], values));
          }
        }
      }
    } catch (const std::exception& failure) {
      give_up(failure);
    }
    counters.profiler.reset();
    if (rows.size() < counters.waiting.size()) {
      sink_.account(outcome::skipped, row_kind, counters.waiting.size() - rows.size());
    }
    if (!rows.empty()) {
      sink_.deliver(std::span<const counter_range>{rows});
    }
    counters.waiting.clear();
  }

  static counter_range with(counter_range row, const counter_values& values) noexcept {
    row.dram_read_bytes = values.dram_read_bytes;
    row.dram_write_bytes = values.dram_write_bytes;
    row.duration_ns = values.duration_ns;
    row.l2_bytes = values.l2_bytes;
    return row;
  }

  void give_up(const std::exception& failure) noexcept {
    if (std::exchange(broken_, true)) {
      return;
    }
    try {
      sink_.document(
          "warning",
          nlohmann::json{{"text", "counters stopped: " + std::string{failure.what()}}}.dump(
              -1, ' ', false, nlohmann::json::error_handler_t::replace));
    } catch (const std::exception&) {
      sink_.account(outcome::dropped, "document", 1);
    }
  }

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

class cupti_counter_source final : public collect::counter_source {
 public:
  void start(std::uint32_t capacity, collect::activity_sink& sink) override {
    const std::scoped_lock lock{mutex_};
    session_.reset();
    session_.emplace(capacity, sink);
  }

  bool begin(std::string_view name, std::uint32_t cell, std::uint32_t contender) noexcept override {
    const std::scoped_lock lock{mutex_};
    return session_ && session_->begin(name, cell, contender);
  }

  void end() noexcept override {
    const std::scoped_lock lock{mutex_};
    if (session_) {
      session_->end();
    }
  }

  void stop() noexcept override {
    const std::scoped_lock lock{mutex_};
    session_.reset();
  }

 private:
  std::mutex mutex_;
  std::optional<counter_session> session_;
};

}  // namespace
}  // namespace opscope::cupti

namespace opscope::collect {

std::unique_ptr<counter_source> make_counter_source() {
  return std::make_unique<cupti::cupti_counter_source>();
}

}  // namespace opscope::collect
