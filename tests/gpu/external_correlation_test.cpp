// SPDX-License-Identifier: Apache-2.0
//
// The links that correlation finds by time and thread, against an oracle: CUPTI's own record of
// which external id was on the thread's stack when a launch was made.
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "activity_fixture.hpp"
#include "capture/writer.hpp"
#include "cupti/api.hpp"
#include "kernels.hpp"
#include "support/temporary_folder.hpp"
#include "unit/correlate/recorded_links.hpp"

namespace opscope::test {
namespace {

constexpr std::array<std::size_t, 3> launches_by_kind{0, 1, 3};
constexpr std::array<std::string_view, 3> names_by_kind{"no_launch", "one_launch",
                                                        "three_launches"};
constexpr std::uint64_t ops_a_thread = 300;

struct made_op {
  op row;
  std::size_t kind;
};

class external_correlation_test : public activity_test {
 protected:
  void SetUp() override {
    activity_test::SetUp();
    if (IsSkipped()) {
      return;
    }
    cupti_ = cupti::open_api();
    ASSERT_TRUE(cupti_.library.bind(push_, "cuptiActivityPushExternalCorrelationId"));
    ASSERT_TRUE(cupti_.library.bind(pop_, "cuptiActivityPopExternalCorrelationId"));
  }

  /// Ops of all kinds in turn, each with its id pushed around its launches. The host times are
  /// taken inside the pushes, so that an op as seen here is no longer than as CUPTI sees it.
  std::vector<made_op> run_ops(std::uint64_t first_id, const device_floats& data,
                               const device_stream& stream) const {
    std::vector<made_op> made;
    for (std::uint64_t i = 0; i < ops_a_thread; ++i) {
      const std::size_t kind = i % launches_by_kind.size();
      op row{};
      row.id = first_id + i;
      row.sequence = -1;
      row.thread = this_thread();
      row.flags = op::outermost;
      EXPECT_EQ(push_(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, row.id), CUPTI_SUCCESS);
      row.start = now();
      for (std::size_t launch = 0; launch < launches_by_kind[kind]; ++launch) {
        launch_add(data.data(), 1, 256, stream.get());
      }
      row.end = now();
      std::uint64_t popped = 0;
      EXPECT_EQ(pop_(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &popped), CUPTI_SUCCESS);
      EXPECT_EQ(popped, row.id);
      made.push_back({row, kind});
    }
    return made;
  }

  /// The session's rows and the ops as a capture file.
  void write_capture(const std::filesystem::path& path, const std::vector<made_op>& made) {
    capture::writer out{path, false, "{}"};
    std::vector<op> ops;
    for (auto [row, kind] : made) {
      row.name = out.intern(names_by_kind[kind]);
      ops.push_back(row);
    }
    auto calls = sink_.api_calls;
    for (auto& call : calls) {
      call.name = out.intern(sink_.text(call.name));
    }
    auto kernels = sink_.kernels;
    for (auto& row : kernels) {
      row.name = out.intern(sink_.text(row.name));
    }
    out.append(std::span{ops});
    out.append(std::span{calls});
    out.append(std::span{kernels});
    out.close(now(), sink_.losses);
  }

  /// External id by correlation id, as CUPTI recorded it.
  std::map<correlation_id, std::uint64_t> oracle() const {
    std::map<correlation_id, std::uint64_t> external;
    for (const auto& pair : sink_.external_correlations) {
      external[pair.correlation] = pair.external;
    }
    return external;
  }

 private:
  cupti::api cupti_;
  decltype(&cuptiActivityPushExternalCorrelationId) push_ = nullptr;
  decltype(&cuptiActivityPopExternalCorrelationId) pop_ = nullptr;
};

TEST_F(external_correlation_test, correlations_links_equal_cuptis_for_ops_of_two_threads) {
  const device_floats first{small};
  const device_floats second{small};
  const device_stream streams[2];
  launch_add(first.data(), 1, 256);
  wait();

  std::vector<made_op> made;
  std::vector<made_op> others;
  start({.external_correlations = true});
  std::thread one{[&] { made = run_ops(1'000, first, streams[0]); }};
  std::thread two{[&] { others = run_ops(2'000, second, streams[1]); }};
  one.join();
  two.join();
  wait();
  stop();
  made.insert(made.end(), others.begin(), others.end());

  const temporary_folder folder;
  write_capture(folder / "ops.opscope", made);
  const auto opened = capture::capture::open(folder / "ops.opscope");
  ASSERT_TRUE(opened.ok());
  const recorded_links links{opened.value()};

  const auto external = oracle();
  ASSERT_EQ(links.kernels.size(), 2 * ops_a_thread / 3 * (0 + 1 + 3));
  for (const auto& kernel : links.kernels) {
    const auto expected = external.find(kernel.row.correlation);
    ASSERT_NE(expected, external.end()) << "CUPTI has no external id for this kernel";
    EXPECT_EQ(kernel.link.op.outermost, expected->second);
    EXPECT_TRUE(kernel.link.launch.has_value());
  }
  ASSERT_EQ(links.ops.size(), 2 * ops_a_thread);
  for (const auto& each : made) {
    const auto& crossing = links.op_of(each.row.id).crossing;
    ASSERT_TRUE(crossing.has_value());
    EXPECT_EQ(crossing->launches.size(), launches_by_kind[each.kind]) << each.row.id;
  }
  EXPECT_EQ(links.found.count(outcome::unlinked, "kernel"), 0U);
  EXPECT_TRUE(links.in_order);
}

}  // namespace
}  // namespace opscope::test
