// SPDX-License-Identifier: Apache-2.0
#include "cupti/counter_support.hpp"

#include "cupti/cupti_error.hpp"

namespace opscope::cupti {
namespace {

/// Which part of the configuration stands against profiling; empty when none does.
std::string obstacle(const CUpti_Profiler_DeviceSupported_Params& support) {
  const auto against = [](CUpti_Profiler_Support_Level level) {
    return level == CUPTI_PROFILER_CONFIGURATION_UNSUPPORTED ||
           level == CUPTI_PROFILER_CONFIGURATION_DISABLED;
  };
  if (!against(support.isSupported)) {
    return {};
  }
  if (against(support.architecture)) {
    return "its architecture is too old (use compute capability 7.5 or later)";
  }
  if (against(support.vGpu)) {
    return "the virtual GPU does not allow profiling (ask the host's administrator to allow it)";
  }
  if (against(support.confidentialCompute)) {
    return "confidential computing is on (switch it off, or do without counters)";
  }
  if (against(support.wsl)) {
    return "WSL does not offer counters (use Linux itself)";
  }
  if (against(support.sli) || against(support.cmp)) {
    return "SLI or a mining processor cannot be profiled (use another GPU)";
  }
  return "CUPTI does not support it (run `opscope doctor`)";
}

}  // namespace

void initialize_counters(const api& cupti) {
  open_counter_libraries(cupti);
  CUpti_Profiler_Initialize_Params params{};
  params.structSize = CUpti_Profiler_Initialize_Params_STRUCT_SIZE;
  check(cupti.profiler_initialize(&params), "cuptiProfilerInitialize");
}

std::string chip_name(const api& cupti, CUdevice device) {
  CUpti_Profiler_DeviceSupported_Params support{};
  support.structSize = CUpti_Profiler_DeviceSupported_Params_STRUCT_SIZE;
  support.cuDevice = device;
  support.api = CUPTI_PROFILER_RANGE_PROFILING;
  check(cupti.profiler_device_supported(&support), "cuptiProfilerDeviceSupported");
  if (const auto why = obstacle(support); !why.empty()) {
    throw opscope::error("read counters of GPU " + std::to_string(device) + ": " + why);
  }
  CUpti_Device_GetChipName_Params chip{};
  chip.structSize = CUpti_Device_GetChipName_Params_STRUCT_SIZE;
  chip.deviceIndex = static_cast<std::size_t>(device);
  check(cupti.device_get_chip_name(&chip), "cuptiDeviceGetChipName");
  return chip.pChipName;
}

std::unique_ptr<profiler_host> make_one_pass_host(const api& cupti, const std::string& chip) {
  auto host = std::make_unique<profiler_host>(cupti, chip);
  if (host->passes() != 1) {
    throw opscope::error("read counters: the metrics need " + std::to_string(host->passes()) +
                         " passes on " + chip +
                         ", so ranges without replay are impossible (use a Hopper GPU)");
  }
  return host;
}

}  // namespace opscope::cupti
