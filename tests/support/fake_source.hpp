// SPDX-License-Identifier: Apache-2.0
//
// A GPU that does what the test says: an activity source and a counter source under the runtime.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "collect/activity_source.hpp"
#include "collect/factories.hpp"
#include "opscope/error.hpp"

namespace opscope::test {

/// What the fakes did and shall do; one for the process, reset by each test.
struct fake_gpu {
  std::string activity_fails;  ///< reason that start() gives; empty: it starts
  bool absent = false;         ///< the reason is that there is no GPU
  std::string counters_fail;
  /// Runs inside activity_source::stop(), as CUPTI delivers its last buffers there.
  std::function<void(collect::activity_sink&)> at_stop;
  std::atomic<int> starts{0};
  std::atomic<int> stops{0};
  std::atomic<int> flushes{0};
  std::atomic<int> counter_starts{0};
  std::atomic<int> counter_stops{0};
  std::atomic<int> detached{0};
  std::atomic<bool> touched{false};
  std::atomic<collect::activity_sink*> sink{nullptr};  ///< of the running session

  void reset() {
    activity_fails.clear();
    absent = false;
    counters_fail.clear();
    at_stop = nullptr;
    starts = stops = flushes = counter_starts = counter_stops = detached = 0;
    touched = false;
  }
};

inline fake_gpu& gpu() {
  static fake_gpu the_gpu;
  return the_gpu;
}

class fake_source final : public collect::activity_source {
 public:
  void start(const collect::activity_config& /*config*/, collect::activity_sink& sink) override {
    if (gpu().absent) throw collect::no_gpu(gpu().activity_fails);
    if (!gpu().activity_fails.empty()) throw error(gpu().activity_fails);
    ++gpu().starts;
    gpu().sink = &sink;
  }
  void flush() noexcept override { ++gpu().flushes; }
  void stop() noexcept override {
    ++gpu().stops;
    if (gpu().at_stop) gpu().at_stop(*gpu().sink);
    gpu().sink = nullptr;
  }
};

class fake_counters final : public collect::counter_source {
 public:
  void start(std::uint32_t /*capacity*/, collect::activity_sink& sink) override {
    if (!gpu().counters_fail.empty()) throw error(gpu().counters_fail);
    ++gpu().counter_starts;
    sink_ = &sink;
  }
  bool begin(std::string_view name, std::uint32_t cell, std::uint32_t contender) noexcept override {
    if (open_) return false;
    open_ = true;
    row_ = {};
    row_.name = sink_->intern(name);
    row_.method = sink_->intern("counter:user-range");
    row_.cell = cell;
    row_.contender = contender;
    return true;
  }
  void end() noexcept override {
    open_ = false;
    sink_->deliver(std::span<const counter_range>{&row_, 1});
  }
  void stop() noexcept override { ++gpu().counter_stops; }

 private:
  collect::activity_sink* sink_ = nullptr;
  bool open_ = false;
  counter_range row_{};
};

/// The process's runtime over the fakes.
inline const opscope_runtime& fake_runtime() {
  static const opscope_runtime* const runtime = collect::install_runtime(
      {[]() -> std::unique_ptr<collect::activity_source> {
         return std::make_unique<fake_source>();
       },
       []() -> std::unique_ptr<collect::counter_source> {
         return std::make_unique<fake_counters>();
       },
       [] { return std::string{R"({"gpu":"fake"})"}; },
       []() noexcept { return gpu().touched.load(); }, [] { ++gpu().detached; }});
  return *runtime;
}

}  // namespace opscope::test
