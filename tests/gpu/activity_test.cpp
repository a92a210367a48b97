// SPDX-License-Identifier: Apache-2.0
//
// The activity source on a real GPU: what is delivered equals what was launched.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "activity_fixture.hpp"
#include "cupti/cupti_error.hpp"
#include "kernels.hpp"

namespace opscope::test {
namespace {

// First in the file: only this test may find the process without a context.
TEST_F(activity_test, sessions_without_work_and_without_a_context_do_not_spoil_the_next) {
  for (int empty = 0; empty < 3; ++empty) {
    start();
    stop();
  }
  EXPECT_TRUE(sink_.kernels.empty());
  start();
  const device_floats data{small};
  launch_add(data.data(), 1, data.count());
  wait();
  stop();
  EXPECT_EQ(kernels_named("add_kernel"), 1U);
  EXPECT_TRUE(sink_.losses.complete()) << to_json(sink_.losses);
}

TEST_F(activity_test, delivers_as_many_kernels_copies_and_fills_as_were_launched) {
  const device_floats from{small};
  const device_floats to{small};
  std::vector<float> host(small);
  wait();

  start();
  const timestamp before = now();
  for (int i = 0; i < 100; ++i) {
    launch_copy(from.data(), to.data(), small);
  }
  for (int i = 0; i < 3; ++i) {
    cudaMemcpy(to.data(), host.data(), to.bytes(), cudaMemcpyHostToDevice);
  }
  cudaMemset(to.data(), 1, to.bytes());
  cudaMemset(from.data(), 2, from.bytes());
  wait();
  const timestamp after = now();
  stop();

  EXPECT_EQ(sink_.kernels.size(), 100U);
  EXPECT_EQ(kernels_named("opscope::test::copy_kernel(float4 const*, float4*, unsigned long)"),
            100U);
  EXPECT_EQ(sink_.memory_copies.size(), 3U);
  EXPECT_EQ(sink_.memory_sets.size(), 2U);
  EXPECT_EQ(sink_.memory_copies.at(0).bytes, to.bytes());
  EXPECT_EQ(sink_.memory_sets.at(0).bytes, to.bytes());
  EXPECT_TRUE(sink_.losses.complete()) << to_json(sink_.losses);

  std::set<correlation_id> launches;
  for (const auto& row : sink_.kernels) {
    const auto launch = call_of(row.correlation);
    ASSERT_TRUE(launch.has_value());
    EXPECT_EQ(launch->thread, this_thread());
    EXPECT_EQ(launch->result, 0);
    EXPECT_NE(sink_.text(launch->name).find("cudaLaunchKernel"), std::string::npos);
    // One clock: the host's marks enclose the launch, the launch precedes its kernel.
    EXPECT_LE(before, launch->start);
    EXPECT_LE(launch->start, launch->end);
    EXPECT_LE(launch->start, row.start);
    EXPECT_LT(row.start, row.end);
    EXPECT_LE(row.end, after);
    EXPECT_EQ(row.block[0], 256U);
    EXPECT_EQ(row.grid[0], small / 4 / 256);
    launches.insert(row.correlation);
  }
  EXPECT_EQ(launches.size(), 100U);
}

TEST_F(activity_test, a_driver_call_inside_a_runtime_call_shares_its_correlation_and_lies_within) {
  const device_floats data{small};
  start();
  for (int i = 0; i < 10; ++i) {
    launch_add(data.data(), 1, small);
  }
  wait();
  stop();
  for (const auto& row : sink_.kernels) {
    const auto outer = call_of(row.correlation);
    ASSERT_TRUE(outer.has_value());
    EXPECT_EQ(outer->api, api_call::domain::runtime);
    for (const auto& call : sink_.api_calls) {
      if (call.correlation == row.correlation) {
        EXPECT_GE(call.start, outer->start);
        EXPECT_LE(call.end, outer->end);
      }
    }
  }
}

TEST_F(activity_test, two_threads_with_a_stream_each_keep_their_launches_apart) {
  const device_floats first{small};
  const device_floats second{small};
  const device_stream streams[2];
  wait();
  start();
  thread_id ids[2]{};
  const auto work = [&](int which, const device_floats& data) {
    ids[which] = this_thread();
    for (int i = 0; i < 50; ++i) {
      launch_add(data.data(), 1, small, streams[which].get());
    }
    cudaStreamSynchronize(streams[which].get());
  };
  std::thread one{work, 0, std::cref(first)};
  std::thread two{work, 1, std::cref(second)};
  one.join();
  two.join();
  stop();

  EXPECT_EQ(sink_.kernels.size(), 100U);
  std::map<std::uint32_t, std::set<thread_id>> threads_by_stream;
  for (const auto& row : sink_.kernels) {
    const auto launch = call_of(row.correlation);
    ASSERT_TRUE(launch.has_value());
    threads_by_stream[row.stream].insert(launch->thread);
  }
  ASSERT_EQ(threads_by_stream.size(), 2U);
  std::set<thread_id> seen;
  for (const auto& [stream, threads] : threads_by_stream) {
    ASSERT_EQ(threads.size(), 1U) << "stream " << stream;
    seen.insert(*threads.begin());
  }
  EXPECT_EQ(seen, (std::set<thread_id>{ids[0], ids[1]}));
  EXPECT_EQ(calls_named("cudaStreamSynchronize"), 2U);
  EXPECT_GE(sink_.synchronizations.size(), 2U);
}

TEST_F(activity_test, many_launches_all_arrive) {
  const device_floats data{small};
  wait();
  start();
  constexpr std::size_t launches = 200'000;
  for (std::size_t i = 0; i < launches; ++i) {
    launch_add(data.data(), 1, 256);
  }
  stop();  // waits for the device itself
  EXPECT_EQ(sink_.kernels.size(), launches);
  EXPECT_TRUE(sink_.losses.complete()) << to_json(sink_.losses);
}

TEST_F(activity_test, a_flush_delivers_what_is_complete_before_the_end) {
  const device_floats data{small};
  start();
  launch_add(data.data(), 1, small);
  wait();
  const auto delivered = [this] {
    const auto lock = sink_.hold();
    return sink_.kernels.size();
  };
  for (int attempt = 0; attempt < 20 && delivered() == 0; ++attempt) {
    source_->flush();
    std::this_thread::sleep_for(std::chrono::milliseconds{50});
  }
  EXPECT_EQ(delivered(), 1U);
  stop();
  EXPECT_EQ(sink_.kernels.size(), 1U);
}

TEST_F(activity_test, the_collectors_own_waiting_is_not_in_the_timeline) {
  const device_floats data{small};
  wait();
  start();
  launch_add(data.data(), 1, small);
  stop();
  EXPECT_EQ(sink_.kernels.size(), 1U);
  EXPECT_EQ(calls_named("Synchronize"), 0U);
  EXPECT_TRUE(sink_.synchronizations.empty());
}

TEST_F(activity_test, without_api_records_kernels_come_alone) {
  const device_floats data{small};
  start({.api = false, .synchronization = false});
  launch_add(data.data(), 1, small);
  wait();
  stop();
  EXPECT_EQ(sink_.kernels.size(), 1U);
  EXPECT_TRUE(sink_.api_calls.empty());
}

TEST_F(activity_test, a_second_subscriber_is_refused_with_the_owners_name) {
  const device_floats data{small};
  start();
  collecting_sink other_sink;
  const auto other = collect::make_activity_source();
  try {
    other->start({}, other_sink);
    FAIL() << "two sources watched at once";
  } catch (const cupti::cupti_error& refused) {
    EXPECT_EQ(refused.status(), CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
    EXPECT_NE(std::string{refused.what()}.find("opscope"), std::string::npos) << refused.what();
  }
  launch_add(data.data(), 1, small);
  wait();
  stop();
  EXPECT_EQ(sink_.kernels.size(), 1U) << "the refusal disturbed the owner";
}

TEST_F(activity_test, records_that_found_no_room_are_counted) {
  const device_floats data{small};
  wait();
  start({.buffer_bytes = 2U << 20U});
  auto held = sink_.hold();  // the decoding thread waits
  for (int i = 0; i < 50'000; ++i) {
    launch_add(data.data(), 1, 256);
  }
  wait();
  held.unlock();
  stop();
  EXPECT_LT(sink_.kernels.size(), 50'000U);
  EXPECT_GT(sink_.losses.count(outcome::dropped, "gpu_activity"), 0U);
  EXPECT_GE(sink_.kernels.size() + sink_.losses.count(outcome::dropped, "gpu_activity"), 50'000U);
}

TEST_F(activity_test, says_what_machine_and_clock_the_records_are_from) {
  const device_floats data{small};
  start();
  launch_add(data.data(), 1, small);
  stop();
  const auto device = document("device");
  cudaDeviceProp properties{};
  ASSERT_EQ(cudaGetDeviceProperties(&properties, 0), cudaSuccess);
  EXPECT_EQ(device.at("devices").at(0).at("name"), properties.name);
  EXPECT_EQ(device.at("devices").at(0).at("multiprocessors"), properties.multiProcessorCount);
  EXPECT_EQ(device.at("devices").at(0).at("l2_bytes"), properties.l2CacheSize);
  EXPECT_EQ(document("deviceProperties").at(0).at("totalGlobalMem"), properties.totalGlobalMem);
  EXPECT_EQ(document("cupti").at("clock"), "CLOCK_REALTIME");
  EXPECT_FALSE(sink_.documents.contains("warning"));
}

}  // namespace
}  // namespace opscope::test
