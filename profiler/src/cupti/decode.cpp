// SPDX-License-Identifier: Apache-2.0
//
// A record without usable timestamps (start 0, or an end before its start) is no row: it would sit
// at the wrong place of the timeline. It is counted as untimed under its category.
#include "cupti/decode.hpp"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>

namespace opscope::cupti {
namespace {

timestamp time_of(std::uint64_t nanoseconds) noexcept {
  return timestamp{static_cast<std::int64_t>(nanoseconds)};
}

template <typename Row>
bool timed(const Row& row) noexcept {
  return row.start.count() > 0 && row.end >= row.start;
}

template <typename Row>
void append(Row row, std::vector<Row>& rows, std::string_view category, ledger& losses) {
  if (timed(row)) {
    rows.push_back(row);
  } else {
    losses.add(outcome::untimed, category);
  }
}

/// Bytes of a record as CUPTI 13.0 writes it; 0 for a kind that is never enabled here.
std::size_t size_of(CUpti_ActivityKind kind) noexcept {
  switch (kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
    case CUPTI_ACTIVITY_KIND_KERNEL:
      return sizeof(CUpti_ActivityKernel10);
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      return sizeof(CUpti_ActivityMemcpy6);
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
      return sizeof(CUpti_ActivityMemcpyPtoP4);
    case CUPTI_ACTIVITY_KIND_MEMSET:
      return sizeof(CUpti_ActivityMemset4);
    case CUPTI_ACTIVITY_KIND_DRIVER:
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_INTERNAL_LAUNCH_API:
      return sizeof(CUpti_ActivityAPI);
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
      return sizeof(CUpti_ActivitySynchronization2);
    case CUPTI_ACTIVITY_KIND_OVERHEAD:
      return sizeof(CUpti_ActivityOverhead3);
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION:
      return sizeof(CUpti_ActivityExternalCorrelation);
    default:
      return 0;
  }
}

template <typename Record>
const Record& as(const CUpti_Activity& record) noexcept {
  return reinterpret_cast<const Record&>(record);
}

/// Copies within a device and between two: what both records hold has the same names in both.
template <typename Record>
memory_copy copy_of(const Record& record) {
  return {
      .start = time_of(record.start),
      .end = time_of(record.end),
      .bytes = record.bytes,
      .graph_node = record.graphNodeId,
      .correlation = correlation_id{record.correlationId},
      .device = record.deviceId,
      .context = record.contextId,
      .stream = record.streamId,
      .copy_kind = record.copyKind,
      .source_kind = record.srcKind,
      .target_kind = record.dstKind,
      .flags = record.flags,
  };
}

}  // namespace

name_cache::kernel_name name_cache::kernel(const char* mangled) {
  const std::string_view key{mangled != nullptr ? mangled : "(unnamed kernel)"};
  if (const auto known = kernels_.find(key); known != kernels_.end()) {
    return known->second;
  }
  std::string owned{key};
  const std::string plain = demangle(owned.c_str());
  const kernel_name name{.id = sink_.intern(plain), .profiler_own = is_profiler_kernel(plain)};
  kernels_.emplace(std::move(owned), name);
  return name;
}

string_id name_cache::api_function(CUpti_CallbackDomain domain, CUpti_CallbackId id) {
  const auto key = (static_cast<std::uint64_t>(domain) << 32U) | id;
  if (const auto known = functions_.find(key); known != functions_.end()) {
    return known->second;
  }
  const char* name = nullptr;
  const bool found =
      cupti_.get_callback_name(domain, id, &name) == CUPTI_SUCCESS && name != nullptr;
  const string_id interned =
      sink_.intern(found ? std::string{name} : "CUDA function " + std::to_string(id));
  functions_.emplace(key, interned);
  return interned;
}

void batch::clear() {
  api_calls.clear();
  kernels.clear();
  memory_copies.clear();
  memory_sets.clear();
  synchronizations.clear();
  overheads.clear();
  external_correlations.clear();
  losses = {};
}

std::string demangle(const char* name) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> plain{
      abi::__cxa_demangle(name, nullptr, nullptr, &status), &std::free};
  return status == 0 && plain != nullptr ? std::string{plain.get()} : std::string{name};
}

bool is_profiler_kernel(std::string_view demangled) noexcept {
  return demangled == "WaitNs" || demangled.starts_with("WaitNs(");
}

std::string_view overhead_name(CUpti_ActivityOverheadKind kind) noexcept {
  switch (kind) {
    case CUPTI_ACTIVITY_OVERHEAD_DRIVER_COMPILER:
      return "Driver Compiler";
    case CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH:
      return "Buffer Flush";
    case CUPTI_ACTIVITY_OVERHEAD_CUPTI_INSTRUMENTATION:
      return "Instrumentation";
    case CUPTI_ACTIVITY_OVERHEAD_CUPTI_RESOURCE:
      return "Resource";
    case CUPTI_ACTIVITY_OVERHEAD_RUNTIME_TRIGGERED_MODULE_LOADING:
      return "Runtime Triggered Module Loading";
    case CUPTI_ACTIVITY_OVERHEAD_LAZY_FUNCTION_LOADING:
      return "Lazy Function Loading";
    case CUPTI_ACTIVITY_OVERHEAD_COMMAND_BUFFER_FULL:
      return "Command Buffer Full";
    case CUPTI_ACTIVITY_OVERHEAD_ACTIVITY_BUFFER_REQUEST:
      return "Activity Buffer Request";
    case CUPTI_ACTIVITY_OVERHEAD_UVM_ACTIVITY_INIT:
      return "UVM Activity Init";
    default:
      return "Unknown Overhead";
  }
}

api_call decode(const CUpti_ActivityAPI& record, name_cache& names) {
  // An internal launch happens outside any public function and its id names none.
  const bool internal = record.kind == CUPTI_ACTIVITY_KIND_INTERNAL_LAUNCH_API;
  const bool runtime = record.kind == CUPTI_ACTIVITY_KIND_RUNTIME;
  const auto domain = runtime ? CUPTI_CB_DOMAIN_RUNTIME_API : CUPTI_CB_DOMAIN_DRIVER_API;
  return {
      .start = time_of(record.start),
      .end = time_of(record.end),
      .name = internal ? names.text("internal launch") : names.api_function(domain, record.cbid),
      .correlation = correlation_id{record.correlationId},
      .thread = thread_id{record.threadId},
      .api = runtime ? api_call::domain::runtime : api_call::domain::driver,
      .callback = internal ? 0 : record.cbid,
      .result = internal ? 0 : static_cast<std::int32_t>(record.returnValue),
  };
}

kernel decode(const CUpti_ActivityKernel10& record, name_cache& names) {
  const auto dimension = [](std::int32_t value) { return static_cast<std::uint32_t>(value); };
  const auto name = names.kernel(record.name);
  return {
      .start = time_of(record.start),
      .end = time_of(record.end),
      .graph_node = record.graphNodeId,
      .name = name.id,
      .correlation = correlation_id{record.correlationId},
      .device = record.deviceId,
      .context = record.contextId,
      .stream = record.streamId,
      .graph = record.graphId,
      .grid = {dimension(record.gridX), dimension(record.gridY), dimension(record.gridZ)},
      .block = {dimension(record.blockX), dimension(record.blockY), dimension(record.blockZ)},
      .registers_per_thread = record.registersPerThread,
      .static_shared_bytes = dimension(record.staticSharedMemory),
      .dynamic_shared_bytes = dimension(record.dynamicSharedMemory),
      .local_bytes_per_thread = record.localMemoryPerThread,
      .flags = name.profiler_own ? kernel::profiler_own : 0,
      .reserved = 0,
  };
}

memory_copy decode(const CUpti_ActivityMemcpy6& record) { return copy_of(record); }

memory_copy decode(const CUpti_ActivityMemcpyPtoP4& record) { return copy_of(record); }

memory_set decode(const CUpti_ActivityMemset4& record) {
  return {
      .start = time_of(record.start),
      .end = time_of(record.end),
      .bytes = record.bytes,
      .graph_node = record.graphNodeId,
      .correlation = correlation_id{record.correlationId},
      .device = record.deviceId,
      .context = record.contextId,
      .stream = record.streamId,
      .value = record.value,
      .memory_kind = record.memoryKind,
  };
}

synchronization decode(const CUpti_ActivitySynchronization2& record) {
  return {
      .start = time_of(record.start),
      .end = time_of(record.end),
      .correlation = correlation_id{record.correlationId},
      .type = static_cast<std::uint32_t>(record.type),
      .context = record.contextId,
      .stream = record.streamId,
      .event = record.cudaEventId,
      .reserved = 0,
  };
}

overhead decode(const CUpti_ActivityOverhead3& record, name_cache& names) {
  const bool has_thread = record.objectKind == CUPTI_ACTIVITY_OBJECT_THREAD;
  return {
      .start = time_of(record.start),
      .end = time_of(record.end),
      .correlation = correlation_id{record.correlationId},
      .thread = thread_id{has_thread ? record.objectId.pt.threadId : 0},
      .name = names.text(overhead_name(record.overheadKind)),
      .reserved = 0,
  };
}

external_correlation decode(const CUpti_ActivityExternalCorrelation& record) {
  return {
      .start = timestamp{0},
      .external = record.externalId,
      .correlation = correlation_id{record.correlationId},
      .external_kind = static_cast<std::uint32_t>(record.externalKind),
  };
}

void decode_record(const CUpti_Activity& record, name_cache& names, batch& out) {
  switch (record.kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
    case CUPTI_ACTIVITY_KIND_KERNEL:
      append(decode(as<CUpti_ActivityKernel10>(record), names), out.kernels, "kernel", out.losses);
      break;
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      append(decode(as<CUpti_ActivityMemcpy6>(record)), out.memory_copies, "gpu_memcpy",
             out.losses);
      break;
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
      append(decode(as<CUpti_ActivityMemcpyPtoP4>(record)), out.memory_copies, "gpu_memcpy",
             out.losses);
      break;
    case CUPTI_ACTIVITY_KIND_MEMSET:
      append(decode(as<CUpti_ActivityMemset4>(record)), out.memory_sets, "gpu_memset", out.losses);
      break;
    case CUPTI_ACTIVITY_KIND_RUNTIME:
      append(decode(as<CUpti_ActivityAPI>(record), names), out.api_calls, "cuda_runtime",
             out.losses);
      break;
    case CUPTI_ACTIVITY_KIND_DRIVER:
    case CUPTI_ACTIVITY_KIND_INTERNAL_LAUNCH_API:
      append(decode(as<CUpti_ActivityAPI>(record), names), out.api_calls, "cuda_driver",
             out.losses);
      break;
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
      append(decode(as<CUpti_ActivitySynchronization2>(record)), out.synchronizations, "cuda_sync",
             out.losses);
      break;
    case CUPTI_ACTIVITY_KIND_OVERHEAD:
      append(decode(as<CUpti_ActivityOverhead3>(record), names), out.overheads, "overhead",
             out.losses);
      break;
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION:
      out.external_correlations.push_back(decode(as<CUpti_ActivityExternalCorrelation>(record)));
      break;
    default:
      break;
  }
}

void decode_buffer(const api& cupti, std::uint8_t* buffer, std::size_t valid_bytes,
                   name_cache& names, batch& out) {
  CUpti_Activity* record = nullptr;
  std::size_t consumed = 0;
  bool sized = true;
  CUptiResult status = CUPTI_SUCCESS;
  while ((status = cupti.activity_get_next_record(buffer, valid_bytes, &record)) == CUPTI_SUCCESS) {
    decode_record(*record, names, out);
    const std::size_t size = size_of(record->kind);
    sized = size != 0;
    consumed = static_cast<std::size_t>(reinterpret_cast<std::uint8_t*>(record) - buffer) + size;
  }
  if (status != CUPTI_ERROR_MAX_LIMIT_REACHED || (sized && consumed < valid_bytes)) {
    out.losses.add(outcome::skipped, "gpu_activity");
  }
}

void deliver(batch& rows, collect::activity_sink& sink) noexcept {
  const auto hand_over = [&sink]<typename Row>(const std::vector<Row>& some) {
    if (!some.empty()) {
      sink.deliver(std::span<const Row>{some});
    }
  };
  hand_over(rows.api_calls);
  hand_over(rows.kernels);
  hand_over(rows.memory_copies);
  hand_over(rows.memory_sets);
  hand_over(rows.synchronizations);
  hand_over(rows.overheads);
  hand_over(rows.external_correlations);
  for (const outcome what : outcomes) {
    for (const auto& [kind, count] : rows.losses.of(what)) {
      sink.account(what, kind, count);
    }
  }
  rows.clear();
}

}  // namespace opscope::cupti
