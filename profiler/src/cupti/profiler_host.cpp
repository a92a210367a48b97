// SPDX-License-Identifier: Apache-2.0
#include "cupti/profiler_host.hpp"

#include <cmath>

#include "cupti/cupti_error.hpp"

namespace opscope::cupti {

bool counter_values::complete() const noexcept {
  return std::isfinite(dram_read_bytes) && std::isfinite(dram_write_bytes) &&
         std::isfinite(duration_ns) && std::isfinite(l2_bytes);
}

void open_counter_libraries(const api& cupti) noexcept {
  const auto& path = cupti.library.path();
  const std::string folder = path.substr(0, path.rfind('/') + 1);
  for (const char* name : {"libnvperf_host.so", "libnvperf_target.so"}) {
    // A missing one shows up as an error of the call that needs it.
    static_cast<void>(shared_library::open(folder + name));
  }
}

profiler_host::profiler_host(const api& cupti, const std::string& chip)
    : cupti_(cupti), host_(nullptr, deinitialize{&cupti}) {
  open_counter_libraries(cupti);
  CUpti_Profiler_Host_Initialize_Params params{};
  params.structSize = CUpti_Profiler_Host_Initialize_Params_STRUCT_SIZE;
  params.profilerType = CUPTI_PROFILER_TYPE_RANGE_PROFILER;
  params.pChipName = chip.c_str();
  check(cupti_.host_initialize(&params), "cuptiProfilerHostInitialize(" + chip + ")");
  host_.reset(params.pHostObject);
  schedule();
}

void profiler_host::deinitialize::operator()(CUpti_Profiler_Host_Object* host) const noexcept {
  CUpti_Profiler_Host_Deinitialize_Params params{};
  params.structSize = CUpti_Profiler_Host_Deinitialize_Params_STRUCT_SIZE;
  params.pHostObject = host;
  cupti->host_deinitialize(&params);
}

void profiler_host::schedule() {
  auto metrics = counter_metrics;
  CUpti_Profiler_Host_ConfigAddMetrics_Params add{};
  add.structSize = CUpti_Profiler_Host_ConfigAddMetrics_Params_STRUCT_SIZE;
  add.pHostObject = host_.get();
  add.ppMetricNames = metrics.data();
  add.numMetrics = metrics.size();
  check(cupti_.host_config_add_metrics(&add), "cuptiProfilerHostConfigAddMetrics");

  CUpti_Profiler_Host_GetConfigImageSize_Params size{};
  size.structSize = CUpti_Profiler_Host_GetConfigImageSize_Params_STRUCT_SIZE;
  size.pHostObject = host_.get();
  check(cupti_.host_get_config_image_size(&size), "cuptiProfilerHostGetConfigImageSize");
  image_.resize(size.configImageSize);

  CUpti_Profiler_Host_GetConfigImage_Params image{};
  image.structSize = CUpti_Profiler_Host_GetConfigImage_Params_STRUCT_SIZE;
  image.pHostObject = host_.get();
  image.configImageSize = image_.size();
  image.pConfigImage = image_.data();
  check(cupti_.host_get_config_image(&image), "cuptiProfilerHostGetConfigImage");

  CUpti_Profiler_Host_GetNumOfPasses_Params passes{};
  passes.structSize = CUpti_Profiler_Host_GetNumOfPasses_Params_STRUCT_SIZE;
  passes.configImageSize = image_.size();
  passes.pConfigImage = image_.data();
  check(cupti_.host_get_num_of_passes(&passes), "cuptiProfilerHostGetNumOfPasses");
  passes_ = passes.numOfPasses;
}

counter_values profiler_host::evaluate(const std::vector<std::uint8_t>& counter_data,
                                       std::size_t index) const {
  auto metrics = counter_metrics;
  std::array<double, counter_metrics.size()> values{};
  CUpti_Profiler_Host_EvaluateToGpuValues_Params params{};
  params.structSize = CUpti_Profiler_Host_EvaluateToGpuValues_Params_STRUCT_SIZE;
  params.pHostObject = host_.get();
  params.pCounterDataImage = counter_data.data();
  params.counterDataImageSize = counter_data.size();
  params.rangeIndex = index;
  params.ppMetricNames = metrics.data();
  params.numMetrics = metrics.size();
  params.pMetricValues = values.data();
  check(cupti_.host_evaluate_to_gpu_values(&params), "cuptiProfilerHostEvaluateToGpuValues");
  return {values[0], values[1], values[2], values[3]};
}

}  // namespace opscope::cupti
