// SPDX-License-Identifier: Apache-2.0
//
// Two copies of CUPTI in a process do not work, so a loaded one is the only candidate, whatever its
// version. Without one, the places are tried in order and the first that is new enough is taken.
#include "cupti/api.hpp"

#include <cstdlib>
#include <vector>

#include "opscope/error.hpp"

namespace opscope::cupti {
namespace {

constexpr const char* file_name = "libcupti.so.13";

bool bind_activity(api& table) {
  const auto& lib = table.library;
  bool ok = lib.bind(table.get_version, "cuptiGetVersion");
  ok &= lib.bind(table.get_callback_name, "cuptiGetCallbackName");
  ok &= lib.bind(table.subscribe, "cuptiSubscribe_v2");
  ok &= lib.bind(table.unsubscribe, "cuptiUnsubscribe");
  ok &= lib.bind(table.enable_callback, "cuptiEnableCallback");
  ok &= lib.bind(table.get_graph_node_id, "cuptiGetGraphNodeId");
  ok &= lib.bind(table.get_graph_id, "cuptiGetGraphId");
  ok &= lib.bind(table.get_timestamp, "cuptiGetTimestamp");
  ok &= lib.bind(table.finalize, "cuptiFinalize");
  ok &= lib.bind(table.activity_enable, "cuptiActivityEnable");
  ok &= lib.bind(table.activity_disable, "cuptiActivityDisable");
  ok &= lib.bind(table.activity_enable_runtime_api, "cuptiActivityEnableRuntimeApi");
  ok &= lib.bind(table.activity_enable_driver_api, "cuptiActivityEnableDriverApi");
  ok &= lib.bind(table.activity_enable_all_sync_records, "cuptiActivityEnableAllSyncRecords");
  ok &= lib.bind(table.activity_register_callbacks, "cuptiActivityRegisterCallbacks");
  ok &= lib.bind(table.activity_set_attribute, "cuptiActivitySetAttribute");
  ok &= lib.bind(table.activity_flush_all, "cuptiActivityFlushAll");
  ok &= lib.bind(table.activity_get_next_record, "cuptiActivityGetNextRecord");
  ok &= lib.bind(table.activity_get_num_dropped_records, "cuptiActivityGetNumDroppedRecords");
  ok &= lib.bind(table.set_thread_id_type, "cuptiSetThreadIdType");
  return ok;
}

bool bind_counters(api& table) {
  const auto& lib = table.library;
  bool ok = lib.bind(table.profiler_initialize, "cuptiProfilerInitialize");
  ok &= lib.bind(table.profiler_device_supported, "cuptiProfilerDeviceSupported");
  ok &= lib.bind(table.device_get_chip_name, "cuptiDeviceGetChipName");
  ok &= lib.bind(table.host_initialize, "cuptiProfilerHostInitialize");
  ok &= lib.bind(table.host_deinitialize, "cuptiProfilerHostDeinitialize");
  ok &= lib.bind(table.host_config_add_metrics, "cuptiProfilerHostConfigAddMetrics");
  ok &= lib.bind(table.host_get_config_image_size, "cuptiProfilerHostGetConfigImageSize");
  ok &= lib.bind(table.host_get_config_image, "cuptiProfilerHostGetConfigImage");
  ok &= lib.bind(table.host_get_num_of_passes, "cuptiProfilerHostGetNumOfPasses");
  ok &= lib.bind(table.host_evaluate_to_gpu_values, "cuptiProfilerHostEvaluateToGpuValues");
  ok &= lib.bind(table.range_enable, "cuptiRangeProfilerEnable");
  ok &= lib.bind(table.range_disable, "cuptiRangeProfilerDisable");
  ok &= lib.bind(table.range_get_counter_data_size, "cuptiRangeProfilerGetCounterDataSize");
  ok &= lib.bind(table.range_initialize_image, "cuptiRangeProfilerCounterDataImageInitialize");
  ok &= lib.bind(table.range_set_config, "cuptiRangeProfilerSetConfig");
  ok &= lib.bind(table.range_start, "cuptiRangeProfilerStart");
  ok &= lib.bind(table.range_stop, "cuptiRangeProfilerStop");
  ok &= lib.bind(table.range_push, "cuptiRangeProfilerPushRange");
  ok &= lib.bind(table.range_pop, "cuptiRangeProfilerPopRange");
  ok &= lib.bind(table.range_decode_data, "cuptiRangeProfilerDecodeData");
  ok &= lib.bind(table.range_get_counter_data_info, "cuptiRangeProfilerGetCounterDataInfo");
  ok &= lib.bind(table.range_get_range_info, "cuptiRangeProfilerCounterDataGetRangeInfo");
  return ok;
}

std::string folder_of(const std::string& path) { return path.substr(0, path.rfind('/') + 1); }

/// Candidates in the order of open_api's promise, without the copy that is loaded already.
std::vector<std::string> candidates() {
  std::vector<std::string> paths{file_name};
  if (const char* given = std::getenv("OPSCOPE_CUPTI"); given != nullptr && *given != '\0') {
    paths.emplace_back(given);
  }
  for (const auto& runtime : loaded_paths("libcudart.so")) {
    // Pip packages put both into one folder; a toolkit keeps CUPTI in extras.
    paths.push_back(folder_of(runtime) + file_name);
    paths.push_back(folder_of(runtime) + "../extras/CUPTI/lib64/" + file_name);
    paths.push_back(folder_of(runtime) + "../../../extras/CUPTI/lib64/" + file_name);
  }
  for (const auto& torch : loaded_paths("libtorch")) {
    paths.push_back(folder_of(torch) + "../../nvidia/cu13/lib/" + file_name);
  }
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const char* home = std::getenv(variable); home != nullptr && *home != '\0') {
      paths.push_back(std::string{home} + "/lib64/" + file_name);
      paths.push_back(std::string{home} + "/extras/CUPTI/lib64/" + file_name);
    }
  }
  paths.push_back(std::string{"/usr/local/cuda/lib64/"} + file_name);
  paths.push_back(std::string{"/usr/local/cuda/extras/CUPTI/lib64/"} + file_name);
  return paths;
}

/// Binds the functions; false when the library is too old to have or to do them right.
bool bind(api& table) {
  if (!table.library.bind(table.get_version, "cuptiGetVersion") ||
      table.get_version(&table.version) != CUPTI_SUCCESS) {
    return false;
  }
  return table.version >= oldest_version && bind_activity(table) && bind_counters(table);
}

opscope::error too_old(const api& table) {
  return opscope::error{"open CUPTI: " + table.library.path() + " is version " +
                        version_text(table.version) + ", older than " +
                        version_text(oldest_version) +
                        " (use torch 2.11 or later, or pip install 'nvidia-cuda-cupti>=13.0.85')"};
}

}  // namespace

std::string version_text(std::uint32_t version) {
  // Since 12.6 the number is major * 10000 + minor * 100 + patch; earlier ones count releases.
  if (version < 100000) {
    return std::to_string(version);
  }
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

api open_api() {
  for (const auto& path : loaded_paths("libcupti.so")) {
    api table;
    table.library = shared_library::loaded(path);
    if (!table.library) {
      continue;
    }
    if (!bind(table)) {
      throw too_old(table);
    }
    return table;
  }
  api seen;
  for (const auto& path : candidates()) {
    api table;
    table.library = shared_library::open(path);
    if (!table.library) {
      continue;
    }
    if (bind(table)) {
      return table;
    }
    seen = std::move(table);
  }
  if (seen.library) {
    throw too_old(seen);
  }
  throw opscope::error(
      "open CUPTI: libcupti.so.13 was not found (pip install nvidia-cuda-cupti, or set "
      "OPSCOPE_CUPTI to its path)");
}

}  // namespace opscope::cupti
