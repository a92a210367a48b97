// SPDX-License-Identifier: Apache-2.0
//
// A stand-in for CUPTI's counters that behaves as the real ones were measured to: ranges of equal
// name are merged, what finds no room is lost in silence, and an open range has no numbers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "cupti/api.hpp"
#include "cupti/driver.hpp"

namespace opscope::cupti::test {

/// What the stand-in knows; CUPTI's functions carry no user data.
struct device_state {
  std::vector<std::string> names;
  bool enabled = false;
  bool started = false;
  bool open = false;
  std::size_t capacity = 0;
  CUptiResult enable_status = CUPTI_SUCCESS;
  CUcontext current = nullptr;  ///< what the driver says is current
  std::size_t armings = 0;
  std::uint8_t all_passes = 1;
};
inline device_state device;

inline api make_host_side() {
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

inline void add_configuration(api& fake) {
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
    device.names.clear();
    ++device.armings;
    return CUPTI_SUCCESS;
  };
}

inline void add_ranges(api& fake) {
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
    const bool merged = std::ranges::find(device.names, name) != device.names.end();
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

inline driver_api make_driver() {
  driver_api fake;
  fake.context_get_current = [](CUcontext* context) {
    *context = device.current;
    return CUDA_SUCCESS;
  };
  fake.context_get_device = [](CUdevice* ordinal) {
    *ordinal = 0;
    return CUDA_SUCCESS;
  };
  fake.device_get_count = [](int* count) {
    *count = 0;
    return CUDA_SUCCESS;
  };
  fake.context_push = [](CUcontext) { return CUDA_SUCCESS; };
  fake.context_pop = [](CUcontext*) { return CUDA_SUCCESS; };
  fake.context_synchronize = [] { return CUDA_SUCCESS; };
  return fake;
}

/// A Hopper GPU that may be profiled.
inline void add_device(api& fake) {
  fake.profiler_device_supported = [](CUpti_Profiler_DeviceSupported_Params* params) {
    params->isSupported = CUPTI_PROFILER_CONFIGURATION_SUPPORTED;
    return CUPTI_SUCCESS;
  };
  fake.device_get_chip_name = [](CUpti_Device_GetChipName_Params* params) {
    params->pChipName = "GH100";
    return CUPTI_SUCCESS;
  };
}

inline api make_cupti() {
  api fake = make_host_side();
  add_configuration(fake);
  add_ranges(fake);
  add_device(fake);
  return fake;
}

}  // namespace opscope::cupti::test
