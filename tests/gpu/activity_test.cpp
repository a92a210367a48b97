// SPDX-License-Identifier: Apache-2.0
//
// The activity source on a real GPU: what is delivered equals what was launched.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "collect/activity_source.hpp"
#include "cupti/api.hpp"
#include "cupti/cupti_error.hpp"
#include "device.hpp"
#include "kernels.hpp"
#include "support/collecting_sink.hpp"

namespace opscope::test {
namespace {

constexpr std::size_t small = 1U << 16U;

class activity_test : public gpu_test {
 protected:
  void start(const collect::activity_config& config = {}) { source_->start(config, sink_); }
  void stop() { source_->stop(); }

  /// The outermost API call of a correlation id: the one that encloses the others.
  std::optional<api_call> call_of(correlation_id correlation) const {
    std::optional<api_call> outermost;
    for (const auto& call : sink_.api_calls) {
      if (call.correlation == correlation && (!outermost || call.start < outermost->start)) {
        outermost = call;
      }
    }
    return outermost;
  }

  std::size_t calls_named(std::string_view part) const {
    return static_cast<std::size_t>(std::ranges::count_if(sink_.api_calls, [&](const auto& call) {
      return sink_.text(call.name).find(part) != std::string::npos;
    }));
  }

  std::size_t kernels_named(std::string_view part) const {
    return static_cast<std::size_t>(std::ranges::count_if(sink_.kernels, [&](const auto& row) {
      return sink_.text(row.name).find(part) != std::string::npos;
    }));
  }

  nlohmann::json document(std::string_view name) const {
    const auto found = sink_.documents.find(name);
    return found == sink_.documents.end() ? nlohmann::json{} : nlohmann::json::parse(found->second);
  }

  collecting_sink sink_;
  std::unique_ptr<collect::activity_source> source_ = collect::make_activity_source();
};

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

/// Three kernels and a fill, captured into a graph.
class captured_graph {
 public:
  captured_graph(const device_floats& data, const device_stream& stream) {
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal), cudaSuccess);
    cudaMemsetAsync(data.data(), 0, data.bytes(), stream.get());
    for (int i = 0; i < 3; ++i) {
      launch_add(data.data(), 1, data.count(), stream.get());
    }
    EXPECT_EQ(cudaStreamEndCapture(stream.get(), &graph), cudaSuccess);
    EXPECT_EQ(cudaGraphInstantiate(&executable_, graph, 0), cudaSuccess);
    cudaGraphDestroy(graph);
  }
  ~captured_graph() { cudaGraphExecDestroy(executable_); }
  captured_graph(const captured_graph&) = delete;
  captured_graph& operator=(const captured_graph&) = delete;

  void launch(const device_stream& stream) const {
    EXPECT_EQ(cudaGraphLaunch(executable_, stream.get()), cudaSuccess);
  }

 private:
  cudaGraphExec_t executable_ = nullptr;
};

TEST_F(activity_test, a_graph_replay_has_one_launch_and_its_kernels_lead_to_the_captured_nodes) {
  const device_floats data{small};
  const device_stream stream;
  wait();
  start();
  const captured_graph graph{data, stream};
  for (int i = 0; i < 10; ++i) {
    graph.launch(stream);
  }
  wait();
  stop();

  EXPECT_EQ(sink_.kernels.size(), 30U);
  EXPECT_EQ(sink_.memory_sets.size(), 10U);
  std::map<correlation_id, int> kernels_by_launch;
  for (const auto& row : sink_.kernels) {
    ++kernels_by_launch[row.correlation];
  }
  ASSERT_EQ(kernels_by_launch.size(), 10U);
  for (const auto& [correlation, kernels] : kernels_by_launch) {
    EXPECT_EQ(kernels, 3);
    const auto launch = call_of(correlation);
    ASSERT_TRUE(launch.has_value());
    EXPECT_NE(sink_.text(launch->name).find("cudaGraphLaunch"), std::string::npos);
  }

  std::map<std::uint64_t, graph_node> nodes;
  for (const auto& node : sink_.graph_nodes) {
    nodes.emplace(node.node, node);
  }
  for (const auto& row : sink_.kernels) {
    ASSERT_TRUE(nodes.contains(row.graph_node));
    const auto& clone = nodes.at(row.graph_node);
    EXPECT_EQ(clone.thread, this_thread());
    ASSERT_TRUE(nodes.contains(clone.original));
    EXPECT_LE(nodes.at(clone.original).start, clone.start);
  }
}

TEST_F(activity_test, a_graph_captured_before_the_session_still_gives_its_kernels) {
  const device_floats data{small};
  const device_stream stream;
  const captured_graph graph{data, stream};
  graph.launch(stream);
  wait();
  start();
  graph.launch(stream);
  wait();
  stop();
  EXPECT_EQ(sink_.kernels.size(), 3U);
  EXPECT_TRUE(sink_.graph_nodes.empty());
  for (const auto& row : sink_.kernels) {
    EXPECT_NE(row.graph_node, 0U);
  }
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

TEST_F(activity_test, links_by_time_and_thread_equal_cuptis_external_correlation) {
  const auto cupti = cupti::open_api();
  decltype(&cuptiActivityPushExternalCorrelationId) push = nullptr;
  decltype(&cuptiActivityPopExternalCorrelationId) pop = nullptr;
  ASSERT_TRUE(cupti.library.bind(push, "cuptiActivityPushExternalCorrelationId"));
  ASSERT_TRUE(cupti.library.bind(pop, "cuptiActivityPopExternalCorrelationId"));

  struct span {
    std::uint64_t id;
    thread_id thread;
    timestamp start;
    timestamp end;
    std::size_t kernels;
  };
  std::vector<span> spans[2];
  const device_floats data{small};
  wait();
  start({.external_correlations = true});
  const auto work = [&](int which) {
    for (std::uint64_t i = 0; i < 30; ++i) {
      const std::size_t kernels = std::array{0U, 1U, 3U}[i % 3];
      const std::uint64_t id = 1000 * static_cast<std::uint64_t>(which + 1) + i;
      const timestamp begin = now();
      push(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, id);
      for (std::size_t k = 0; k < kernels; ++k) {
        launch_add(data.data(), 1, 256);
      }
      std::uint64_t popped = 0;
      pop(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &popped);
      spans[which].push_back({id, this_thread(), begin, now(), kernels});
    }
  };
  std::thread one{work, 0};
  std::thread two{work, 1};
  one.join();
  two.join();
  wait();
  stop();

  std::map<correlation_id, std::uint64_t> external;
  for (const auto& pair : sink_.external_correlations) {
    external[pair.correlation] = pair.external;
  }
  EXPECT_EQ(sink_.kernels.size(), 2U * 10U * (0U + 1U + 3U));
  std::map<std::uint64_t, std::size_t> linked;
  for (const auto& row : sink_.kernels) {
    const auto launch = call_of(row.correlation);
    ASSERT_TRUE(launch.has_value());
    for (const auto& thread_spans : spans) {
      for (const auto& each : thread_spans) {
        if (each.thread == launch->thread && each.start <= launch->start &&
            launch->end <= each.end) {
          EXPECT_EQ(external.at(row.correlation), each.id);
          ++linked[each.id];
        }
      }
    }
  }
  for (const auto& thread_spans : spans) {
    for (const auto& each : thread_spans) {
      EXPECT_EQ(linked[each.id], each.kernels) << each.id;
    }
  }
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
