// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cupti.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <cupti_target.h>

#include <cstdint>
#include <string>

#include "cupti/shared_library.hpp"

namespace opscope::cupti {

/// The oldest CUPTI that is used: 13.0.1. The first 13.0 lost records when NVTX came before it.
inline constexpr std::uint32_t oldest_version = 130001;

/// CUPTI's functions, opened at run time: one build runs on machines with and without CUPTI.
struct api {
  shared_library library;
  std::uint32_t version = 0;  ///< e.g. 130001

  decltype(&cuptiGetVersion) get_version = nullptr;
  decltype(&cuptiGetCallbackName) get_callback_name = nullptr;
  decltype(&cuptiSubscribe_v2) subscribe = nullptr;
  decltype(&cuptiUnsubscribe) unsubscribe = nullptr;
  decltype(&cuptiEnableCallback) enable_callback = nullptr;
  decltype(&cuptiGetGraphNodeId) get_graph_node_id = nullptr;
  decltype(&cuptiGetGraphId) get_graph_id = nullptr;
  decltype(&cuptiGetTimestamp) get_timestamp = nullptr;
  decltype(&cuptiFinalize) finalize = nullptr;

  decltype(&cuptiActivityEnable) activity_enable = nullptr;
  decltype(&cuptiActivityDisable) activity_disable = nullptr;
  decltype(&cuptiActivityEnableRuntimeApi) activity_enable_runtime_api = nullptr;
  decltype(&cuptiActivityEnableDriverApi) activity_enable_driver_api = nullptr;
  decltype(&cuptiActivityEnableAllSyncRecords) activity_enable_all_sync_records = nullptr;
  decltype(&cuptiActivityRegisterCallbacks) activity_register_callbacks = nullptr;
  decltype(&cuptiActivitySetAttribute) activity_set_attribute = nullptr;
  decltype(&cuptiActivityFlushAll) activity_flush_all = nullptr;
  decltype(&cuptiActivityGetNextRecord) activity_get_next_record = nullptr;
  decltype(&cuptiActivityGetNumDroppedRecords) activity_get_num_dropped_records = nullptr;
  decltype(&cuptiSetThreadIdType) set_thread_id_type = nullptr;

  decltype(&cuptiProfilerInitialize) profiler_initialize = nullptr;
  decltype(&cuptiProfilerDeviceSupported) profiler_device_supported = nullptr;
  decltype(&cuptiDeviceGetChipName) device_get_chip_name = nullptr;
  decltype(&cuptiProfilerHostInitialize) host_initialize = nullptr;
  decltype(&cuptiProfilerHostDeinitialize) host_deinitialize = nullptr;
  decltype(&cuptiProfilerHostConfigAddMetrics) host_config_add_metrics = nullptr;
  decltype(&cuptiProfilerHostGetConfigImageSize) host_get_config_image_size = nullptr;
  decltype(&cuptiProfilerHostGetConfigImage) host_get_config_image = nullptr;
  decltype(&cuptiProfilerHostGetNumOfPasses) host_get_num_of_passes = nullptr;
  decltype(&cuptiProfilerHostEvaluateToGpuValues) host_evaluate_to_gpu_values = nullptr;
  decltype(&cuptiRangeProfilerEnable) range_enable = nullptr;
  decltype(&cuptiRangeProfilerDisable) range_disable = nullptr;
  decltype(&cuptiRangeProfilerGetCounterDataSize) range_get_counter_data_size = nullptr;
  decltype(&cuptiRangeProfilerCounterDataImageInitialize) range_initialize_image = nullptr;
  decltype(&cuptiRangeProfilerSetConfig) range_set_config = nullptr;
  decltype(&cuptiRangeProfilerStart) range_start = nullptr;
  decltype(&cuptiRangeProfilerStop) range_stop = nullptr;
  decltype(&cuptiRangeProfilerPushRange) range_push = nullptr;
  decltype(&cuptiRangeProfilerPopRange) range_pop = nullptr;
  decltype(&cuptiRangeProfilerDecodeData) range_decode_data = nullptr;
  decltype(&cuptiRangeProfilerGetCounterDataInfo) range_get_counter_data_info = nullptr;
  decltype(&cuptiRangeProfilerCounterDataGetRangeInfo) range_get_range_info = nullptr;
};

/// Opens CUPTI: the copy that the process has loaded already, else `libcupti.so.13` from the
/// loader's path, `$OPSCOPE_CUPTI` (a full path), or the copy beside the CUDA runtime, libtorch or
/// the CUDA home. Does not need a driver and does not touch the GPU.
/// @throws opscope::error when there is none, or it is older than 13.0.1.
[[nodiscard]] api open_api();

/// "13.0.1"-like text of a CUPTI version number.
[[nodiscard]] std::string version_text(std::uint32_t version);

}  // namespace opscope::cupti
