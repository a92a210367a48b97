// SPDX-License-Identifier: Apache-2.0
//
// Counter ranges on a real GPU: bytes against what a kernel is known to move, and every range back.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>

#include "collect/activity_source.hpp"
#include "cupti/cupti_error.hpp"
#include "device.hpp"
#include "kernels.hpp"
#include "support/collecting_sink.hpp"

namespace opscope::test {
namespace {

constexpr std::size_t large = std::size_t{1} << 28U;
constexpr std::size_t medium = std::size_t{1} << 24U;
constexpr std::size_t small = std::size_t{1} << 16U;

class counter_test : public gpu_test {
 protected:
  /// Skips where counters are not allowed, with the reason that a user would read.
  void start(std::uint32_t capacity = 64) {
    try {
      source_->start(capacity, sink_);
    } catch (const cupti::cupti_error& refused) {
      if (refused.status() == CUPTI_ERROR_INSUFFICIENT_PRIVILEGES ||
          refused.status() == CUPTI_ERROR_HARDWARE_BUSY) {
        GTEST_SKIP() << refused.what();
      }
      throw;
    }
  }

  [[nodiscard]] bool started(std::uint32_t capacity = 64) {
    start(capacity);
    return !IsSkipped();
  }

  template <typename Work>
  void counted(std::string_view name, Work work, std::uint32_t cell = no_cell,
               std::uint32_t contender = 0) {
    const bool open = source_->begin(name, cell, contender);
    work();
    if (open) {
      source_->end();
    }
  }

  std::uint64_t skipped() const { return sink_.losses.count(outcome::skipped, "counter_range"); }

  collecting_sink sink_;
  std::unique_ptr<collect::counter_source> source_ = collect::make_counter_source();
};

/// Relative difference to an ideal value.
double difference(double measured, double ideal) { return std::abs(measured - ideal) / ideal; }

// First in the file: only this test may find the process without a context.
TEST_F(counter_test, a_range_before_the_first_context_is_not_measured_and_counted) {
  if (!started()) {
    return;
  }
  EXPECT_FALSE(source_->begin("too early", no_cell, 0));
  const device_floats from{medium};
  const device_floats to{medium};
  launch_copy(from.data(), to.data(), medium);
  wait();
  counted("copy", [&] { launch_copy(from.data(), to.data(), medium); });
  source_->stop();
  EXPECT_EQ(skipped(), 1U);
  EXPECT_EQ(sink_.counter_ranges.size(), 1U);
}

TEST_F(counter_test, bytes_of_a_large_copy_are_within_a_hundredth_of_the_ideal) {
  const device_floats from{large};
  const device_floats to{large};
  launch_copy(from.data(), to.data(), large);  // the first run loads the module
  wait();
  if (!started()) {
    return;
  }
  const timestamp before = now();
  for (int i = 0; i < 3; ++i) {
    counted("copy", [&] { launch_copy(from.data(), to.data(), large); }, 7, 1);
  }
  const timestamp after = now();
  source_->stop();

  ASSERT_EQ(sink_.counter_ranges.size(), 3U);
  const auto ideal = static_cast<double>(from.bytes());
  for (std::size_t i = 0; i < 3; ++i) {
    const auto& row = sink_.counter_ranges[i];
    EXPECT_LT(difference(row.dram_read_bytes, ideal), 0.01) << row.dram_read_bytes;
    EXPECT_LT(difference(row.dram_write_bytes, ideal), 0.01) << row.dram_write_bytes;
    EXPECT_GE(row.l2_bytes, 2 * ideal * 0.99);
    EXPECT_GT(row.duration_ns, 2 * ideal / 5e12 * 1e9) << "faster than any memory";
    EXPECT_LT(row.duration_ns, 1e8);
    EXPECT_EQ(row.ordinal, i);
    EXPECT_EQ(row.cell, 7U);
    EXPECT_EQ(row.contender, 1U);
    EXPECT_EQ(row.thread, this_thread());
    EXPECT_EQ(sink_.text(row.name), "copy");
    EXPECT_EQ(sink_.text(row.method), "counter:user-range");
    EXPECT_LE(before, row.start);
    EXPECT_LT(row.start, row.end);
    EXPECT_LE(row.end, after);
  }
  EXPECT_EQ(skipped(), 0U);
}

TEST_F(counter_test, more_ranges_than_room_all_come_back) {
  const device_floats from{medium};
  const device_floats to{medium};
  launch_copy(from.data(), to.data(), medium);
  wait();
  if (!started(256)) {
    return;
  }
  for (int i = 0; i < 600; ++i) {
    counted("copy", [&] { launch_copy(from.data(), to.data(), medium); });
  }
  source_->stop();

  ASSERT_EQ(sink_.counter_ranges.size(), 600U);
  EXPECT_EQ(skipped(), 0U);
  std::set<std::uint64_t> ordinals;
  double read = 0;
  double written = 0;
  for (const auto& row : sink_.counter_ranges) {
    ASSERT_TRUE(std::isfinite(row.dram_read_bytes) && std::isfinite(row.dram_write_bytes) &&
                std::isfinite(row.duration_ns) && std::isfinite(row.l2_bytes));
    ordinals.insert(row.ordinal);
    read += row.dram_read_bytes;
    written += row.dram_write_bytes;
  }
  EXPECT_EQ(ordinals.size(), 600U);
  EXPECT_EQ(*ordinals.rbegin(), 599U);
  const double ideal = 600.0 * static_cast<double>(from.bytes());
  EXPECT_LT(difference(read, ideal), 0.01) << read;
  EXPECT_LT(difference(written, ideal), 0.01) << written;
}

TEST_F(counter_test, the_profilers_own_traffic_is_not_in_the_first_range) {
  if (!started()) {
    return;
  }
  const device_floats data{small};
  wait();
  source_->stop();
  start();
  counted("empty", [] {});
  source_->stop();
  ASSERT_EQ(sink_.counter_ranges.size(), 1U);
  EXPECT_LT(sink_.counter_ranges[0].dram_read_bytes, 8192);
  EXPECT_EQ(sink_.counter_ranges[0].flags & counter_range::first_of_pass, 0U);
}

TEST_F(counter_test, a_range_inside_another_threads_range_is_refused_and_counted) {
  const device_floats data{small};
  wait();
  if (!started()) {
    return;
  }
  ASSERT_TRUE(source_->begin("outer", no_cell, 0));
  std::thread{[&] {
    cudaSetDevice(0);
    EXPECT_FALSE(source_->begin("overlapping", no_cell, 0));
    source_->end();  // closes nothing: this thread has no range open
  }}.join();
  launch_add(data.data(), 1, small);
  source_->end();
  counted("next", [&] { launch_add(data.data(), 1, small); });
  source_->stop();
  EXPECT_EQ(skipped(), 1U);
  ASSERT_EQ(sink_.counter_ranges.size(), 2U);
  EXPECT_EQ(sink_.text(sink_.counter_ranges[1].name), "next");
}

TEST_F(counter_test, a_range_that_is_open_at_the_end_is_counted_not_reported) {
  const device_floats data{small};
  wait();
  if (!started()) {
    return;
  }
  counted("closed", [&] { launch_add(data.data(), 1, small); });
  ASSERT_TRUE(source_->begin("left open", no_cell, 0));
  launch_add(data.data(), 1, small);
  source_->stop();
  source_->end();
  ASSERT_EQ(sink_.counter_ranges.size(), 1U);
  EXPECT_EQ(sink_.text(sink_.counter_ranges[0].name), "closed");
  EXPECT_EQ(skipped(), 1U);
}

TEST_F(counter_test, a_thread_that_has_not_used_cuda_yet_is_measured_too) {
  const device_floats from{medium};
  const device_floats to{medium};
  launch_copy(from.data(), to.data(), medium);
  wait();
  if (!started()) {
    return;
  }
  std::thread{[&] {
    counted("worker", [&] { launch_copy(from.data(), to.data(), medium); });
  }}.join();
  source_->stop();
  ASSERT_EQ(sink_.counter_ranges.size(), 1U);
  EXPECT_LT(difference(sink_.counter_ranges[0].dram_read_bytes, static_cast<double>(from.bytes())),
            0.02);
  EXPECT_NE(sink_.counter_ranges[0].thread, this_thread());
}

TEST_F(counter_test, copies_and_fills_are_counted_like_kernels) {
  constexpr std::size_t count = std::size_t{1} << 26U;
  const device_floats from{count};
  const device_floats to{count};
  wait();
  if (!started()) {
    return;
  }
  counted("copy",
          [&] { cudaMemcpyAsync(to.data(), from.data(), to.bytes(), cudaMemcpyDeviceToDevice); });
  counted("fill", [&] { cudaMemsetAsync(to.data(), 1, to.bytes()); });
  source_->stop();
  ASSERT_EQ(sink_.counter_ranges.size(), 2U);
  const auto ideal = static_cast<double>(to.bytes());
  EXPECT_LT(difference(sink_.counter_ranges[0].dram_read_bytes, ideal), 0.02);
  EXPECT_LT(difference(sink_.counter_ranges[1].dram_write_bytes, ideal), 0.25)
      << "a part of the fill may stay in L2";
}

TEST_F(counter_test, beside_activity_records_the_profilers_kernels_are_marked) {
  const device_floats data{medium};
  launch_add(data.data(), 1, medium);
  wait();
  const auto activity = collect::make_activity_source();
  activity->start({}, sink_);
  if (!started()) {
    activity->stop();
    return;
  }
  for (int i = 0; i < 20; ++i) {
    counted("add", [&] { launch_add(data.data(), 1, medium); });
  }
  source_->stop();
  activity->stop();
  EXPECT_EQ(sink_.counter_ranges.size(), 20U);
  const auto own = std::ranges::count_if(
      sink_.kernels, [](const auto& row) { return (row.flags & kernel::profiler_own) != 0; });
  EXPECT_GE(own, 20);
  EXPECT_EQ(sink_.kernels.size() - static_cast<std::size_t>(own), 20U);
  for (const auto& row : sink_.kernels) {
    if ((row.flags & kernel::profiler_own) == 0) {
      EXPECT_NE(sink_.text(row.name).find("add_kernel"), std::string::npos) << sink_.text(row.name);
    }
  }
}

TEST_F(counter_test, work_that_is_being_captured_is_not_measured_and_the_capture_stays_valid) {
  const device_floats data{small};
  const device_stream stream;
  wait();
  const auto activity = collect::make_activity_source();
  activity->start({}, sink_);
  if (!started()) {
    activity->stop();
    return;
  }
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeGlobal), cudaSuccess);
  counted("captured", [&] { launch_add(data.data(), 1, small, stream.get()); });
  EXPECT_EQ(cudaStreamEndCapture(stream.get(), &graph), cudaSuccess);
  counted("after", [&] { launch_add(data.data(), 1, small); });
  source_->stop();
  activity->stop();
  cudaGraphDestroy(graph);
  EXPECT_EQ(skipped(), 1U);
  ASSERT_EQ(sink_.counter_ranges.size(), 1U);
  EXPECT_EQ(sink_.text(sink_.counter_ranges[0].name), "after");
}

TEST_F(counter_test, says_how_it_measured) {
  const device_floats data{small};
  wait();
  if (!started(64)) {
    return;
  }
  counted("add", [&] { launch_add(data.data(), 1, small); });
  source_->stop();
  const auto found = sink_.documents.find("counters");
  ASSERT_NE(found, sink_.documents.end());
  const auto counters = nlohmann::json::parse(found->second);
  EXPECT_EQ(counters.at("method"), "counter:user-range");
  EXPECT_EQ(counters.at("passes"), 1);
  EXPECT_EQ(counters.at("capacity"), 64);
}

TEST_F(counter_test, the_machine_report_agrees) {
  const auto machine = nlohmann::json::parse(collect::describe_machine());
  for (const auto& capability : machine.at("capabilities")) {
    if (capability.at("name") != "counters") {
      EXPECT_TRUE(capability.at("available").get<bool>()) << capability;
    }
  }
  EXPECT_TRUE(collect::activity_touched());
}

}  // namespace
}  // namespace opscope::test
