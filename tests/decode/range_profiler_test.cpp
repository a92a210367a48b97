// SPDX-License-Identifier: Apache-2.0
//
// The life of an arming of the counters, against a stand-in for CUPTI.
#include "cupti/range_profiler.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "cupti/cupti_error.hpp"
#include "fake_counters.hpp"

namespace opscope::cupti {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace): the stand-ins

class range_profiler_test : public testing::Test {
 protected:
  void SetUp() override {
    device = {};
    cupti_ = make_cupti();
    host_.emplace(cupti_, "GH100");
    context_ = reinterpret_cast<CUcontext>(&device);
  }

  api cupti_;
  driver_api driver_ = make_driver();
  std::optional<profiler_host> host_;
  CUcontext context_ = nullptr;
};

TEST_F(range_profiler_test, every_range_comes_back_under_its_number_and_the_warm_up_does_not) {
  range_profiler profiler{cupti_, driver_, *host_, context_, 3};
  EXPECT_EQ(profiler.method(), "counter:user-range");
  EXPECT_FALSE(profiler.first_is_unclean());
  for (std::size_t number = 0; number < 3; ++number) {
    EXPECT_FALSE(profiler.full());
    EXPECT_EQ(profiler.push(), number);
    profiler.pop();
  }
  EXPECT_TRUE(profiler.full());
  EXPECT_EQ(device.names.size(), device.capacity) << "room for the warm-up as well";

  const auto ranges = profiler.collect();
  ASSERT_EQ(ranges.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(ranges[i].number, i);
    EXPECT_EQ(ranges[i].values.dram_read_bytes, static_cast<double>(100 * (i + 1)));
    EXPECT_EQ(ranges[i].values.l2_bytes, static_cast<double>(100 * (i + 1) + 3));
    EXPECT_TRUE(ranges[i].values.complete());
  }
}

TEST_F(range_profiler_test, an_open_range_has_no_complete_values) {
  range_profiler profiler{cupti_, driver_, *host_, context_, 4};
  profiler.push();
  profiler.pop();
  profiler.push();
  const auto ranges = profiler.collect();
  ASSERT_EQ(ranges.size(), 2U);
  EXPECT_TRUE(ranges[0].values.complete());
  EXPECT_FALSE(ranges[1].values.complete());
}

TEST_F(range_profiler_test, gives_the_counters_back_in_every_case) {
  {
    const range_profiler unused{cupti_, driver_, *host_, context_, 1};
    EXPECT_TRUE(device.enabled && device.started);
  }
  EXPECT_FALSE(device.enabled || device.started);

  cupti_.range_start = [](CUpti_RangeProfiler_Start_Params*) { return CUPTI_ERROR_UNKNOWN; };
  EXPECT_THROW((range_profiler{cupti_, driver_, *host_, context_, 1}), cupti_error);
  EXPECT_FALSE(device.enabled);
}

TEST_F(range_profiler_test, a_missing_permission_is_said_with_its_remedy) {
  device.enable_status = CUPTI_ERROR_INSUFFICIENT_PRIVILEGES;
  try {
    const range_profiler refused{cupti_, driver_, *host_, context_, 1};
    FAIL() << "counters were taken without permission";
  } catch (const cupti_error& failure) {
    EXPECT_EQ(failure.status(), CUPTI_ERROR_INSUFFICIENT_PRIVILEGES);
    EXPECT_NE(std::string{failure.what()}.find("NVreg_RestrictProfilingToAdminUsers=0"),
              std::string::npos);
  }
}

TEST_F(range_profiler_test, a_pass_that_is_not_complete_is_no_measurement) {
  device.all_passes = 0;
  range_profiler profiler{cupti_, driver_, *host_, context_, 1};
  profiler.push();
  profiler.pop();
  EXPECT_THROW(static_cast<void>(profiler.collect()), opscope::error);
}

}  // namespace
}  // namespace opscope::cupti
