// SPDX-License-Identifier: Apache-2.0
//
// The life of an arming of the counters, against a stand-in for CUPTI that behaves as the real one
// was measured to: ranges of equal name are merged, and an open range has no numbers.
#include "cupti/range_profiler.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "cupti/cupti_error.hpp"

namespace opscope::cupti {
namespace {

/// What the stand-in knows; CUPTI's functions carry no user data.
struct device_state {
  std::vector<std::string> names;
  bool enabled = false;
  bool started = false;
  bool open = false;
  std::size_t capacity = 0;
  CUptiResult enable_status = CUPTI_SUCCESS;
  std::uint8_t all_passes = 1;
};
device_state device;

api make_host_side() {
  api fake;
  fake.host_initialize = [](CUpti_Profiler_Host_Initialize_Params* params) {
    params->pHostObject = reinterpret_cast<CUpti_Profiler_Host_Object*>(&device);
    return CUPTI_SUCCESS;
  };
  fake.host_deinitialize = [](CUpti_Profiler_Host_Deinitialize_Params*) { return CUPTI_SUCCESS; };
  fake.host_config_add_metrics = [](CUpti_Profiler_Host_ConfigAddMetrics_Params*) {
    return CUPTI_SUCCESS;
  };
  fake.host_get_config_image_size = [](CUpti_Profiler_Host_GetConfigImageSize_Params* params) {
    params->configImageSize = 16;
    return CUPTI_SUCCESS;
  };
  fake.host_get_config_image = [](CUpti_Profiler_Host_GetConfigImage_Params*) {
    return CUPTI_SUCCESS;
  };
  fake.host_get_num_of_passes = [](CUpti_Profiler_Host_GetNumOfPasses_Params* params) {
    params->numOfPasses = 1;
    return CUPTI_SUCCESS;
  };
  fake.host_evaluate_to_gpu_values = [](CUpti_Profiler_Host_EvaluateToGpuValues_Params* params) {
    const bool left_open = device.open && params->rangeIndex + 1 == device.names.size();
    for (std::size_t i = 0; i < params->numMetrics; ++i) {
      params->pMetricValues[i] = left_open ? std::numeric_limits<double>::quiet_NaN()
                                           : static_cast<double>(100 * params->rangeIndex + i);
    }
    return CUPTI_SUCCESS;
  };
  return fake;
}

void add_configuration(api& fake) {
  fake.range_enable = [](CUpti_RangeProfiler_Enable_Params* params) {
    device.enabled = device.enable_status == CUPTI_SUCCESS;
    params->pRangeProfilerObject = reinterpret_cast<CUpti_RangeProfiler_Object*>(&device);
    return device.enable_status;
  };
  fake.range_disable = [](CUpti_RangeProfiler_Disable_Params*) {
    device.enabled = false;
    return CUPTI_SUCCESS;
  };
  fake.range_get_counter_data_size = [](CUpti_RangeProfiler_GetCounterDataSize_Params* params) {
    params->counterDataSize = 64;
    return CUPTI_SUCCESS;
  };
  fake.range_initialize_image = [](CUpti_RangeProfiler_CounterDataImage_Initialize_Params*) {
    return CUPTI_SUCCESS;
  };
  fake.range_set_config = [](CUpti_RangeProfiler_SetConfig_Params* params) {
    device.capacity = params->maxRangesPerPass;
    return CUPTI_SUCCESS;
  };
}

void add_ranges(api& fake) {
  fake.range_start = [](CUpti_RangeProfiler_Start_Params*) {
    device.started = true;
    return CUPTI_SUCCESS;
  };
  fake.range_stop = [](CUpti_RangeProfiler_Stop_Params* params) {
    device.started = false;
    params->isAllPassSubmitted = device.all_passes;
    return CUPTI_SUCCESS;
  };
  fake.range_push = [](CUpti_RangeProfiler_PushRange_Params* params) {
    device.open = true;
    const std::string name = params->pRangeName;
    const bool merged =
        std::find(device.names.begin(), device.names.end(), name) != device.names.end();
    if (!merged && device.names.size() < device.capacity) {
      device.names.push_back(name);
    }
    return CUPTI_SUCCESS;
  };
  fake.range_pop = [](CUpti_RangeProfiler_PopRange_Params*) {
    device.open = false;
    return CUPTI_SUCCESS;
  };
  fake.range_decode_data = [](CUpti_RangeProfiler_DecodeData_Params* params) {
    params->numOfRangeDropped = 0;  // also when ranges were lost
    return CUPTI_SUCCESS;
  };
  fake.range_get_counter_data_info = [](CUpti_RangeProfiler_GetCounterDataInfo_Params* params) {
    params->numTotalRanges = device.names.size();
    return CUPTI_SUCCESS;
  };
  fake.range_get_range_info = [](CUpti_RangeProfiler_CounterData_GetRangeInfo_Params* params) {
    params->rangeName = device.names[params->rangeIndex].c_str();
    return CUPTI_SUCCESS;
  };
}

driver_api make_driver() {
  driver_api fake;
  fake.context_get_current = [](CUcontext* context) {
    *context = nullptr;
    return CUDA_SUCCESS;
  };
  fake.context_push = [](CUcontext) { return CUDA_SUCCESS; };
  fake.context_pop = [](CUcontext*) { return CUDA_SUCCESS; };
  fake.context_synchronize = [] { return CUDA_SUCCESS; };
  return fake;
}

class range_profiler_test : public testing::Test {
 protected:
  void SetUp() override {
    device = {};
    cupti_ = make_host_side();
    add_configuration(cupti_);
    add_ranges(cupti_);
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
