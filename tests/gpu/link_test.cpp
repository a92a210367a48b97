// SPDX-License-Identifier: Apache-2.0
//
// What leads from a kernel back to the host: graph nodes to their capture.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "activity_fixture.hpp"
#include "kernels.hpp"

namespace opscope::test {
namespace {

class link_test : public activity_test {};

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

TEST_F(link_test, a_graph_replay_has_one_launch_and_its_kernels_lead_to_the_captured_nodes) {
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

  // CUPTI reports a clone as a created node first and as a clone of another next.
  std::map<std::uint64_t, graph_node> nodes;
  for (const auto& node : sink_.graph_nodes) {
    if (node.original != 0 || !nodes.contains(node.node)) {
      nodes.insert_or_assign(node.node, node);
    }
  }
  for (const auto& row : sink_.kernels) {
    ASSERT_TRUE(nodes.contains(row.graph_node));
    const auto& clone = nodes.at(row.graph_node);
    EXPECT_EQ(clone.thread, this_thread());
    ASSERT_TRUE(nodes.contains(clone.original)) << clone.node << " of " << clone.original;
    EXPECT_LE(nodes.at(clone.original).start, clone.start);
  }
}

TEST_F(link_test, a_graph_captured_before_the_session_still_gives_its_kernels) {
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

TEST_F(link_test, a_session_that_ends_during_a_capture_leaves_the_capture_valid) {
  const device_floats data{small};
  const device_stream stream;
  wait();
  start();
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeGlobal), cudaSuccess);
  launch_add(data.data(), 1, data.count(), stream.get());
  stop();
  EXPECT_EQ(cudaStreamEndCapture(stream.get(), &graph), cudaSuccess);
  cudaGraphExec_t executable = nullptr;
  ASSERT_EQ(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
  EXPECT_EQ(cudaGraphLaunch(executable, stream.get()), cudaSuccess);
  wait();
  float first = 0;
  cudaMemcpy(&first, data.data(), sizeof(first), cudaMemcpyDeviceToHost);
  EXPECT_EQ(first, 1.0F);
  cudaGraphExecDestroy(executable);
  cudaGraphDestroy(graph);
}

}  // namespace
}  // namespace opscope::test
