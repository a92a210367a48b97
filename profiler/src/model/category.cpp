// SPDX-License-Identifier: Apache-2.0
#include "model/category.hpp"

namespace opscope {

std::string_view category(record_kind kind) noexcept {
  switch (kind) {
    case record_kind::python_frame:
      return "python_function";
    case record_kind::op:
      return "cpu_op";
    case record_kind::range:
      return "user_annotation";
    case record_kind::api_call:
      return "cuda_runtime";
    case record_kind::kernel:
      return "kernel";
    case record_kind::memory_copy:
      return "gpu_memcpy";
    case record_kind::memory_set:
      return "gpu_memset";
    case record_kind::synchronization:
      return "cuda_sync";
    case record_kind::overhead:
      return "overhead";
    case record_kind::counter_range:
      return "counter_range";
    case record_kind::call_mark:
      return "call_mark";
    case record_kind::sample:
      return "sample";
    case record_kind::graph_node:
      return "graph_node";
    case record_kind::external_correlation:
      return "external_correlation";
    case record_kind::clock_pair:
      return "clock_pair";
    case record_kind::thread_info:
      return "thread_info";
  }
  return "unknown";
}

std::string_view category(const api_call& call) noexcept {
  return call.api == api_call::domain::driver ? "cuda_driver" : "cuda_runtime";
}

}  // namespace opscope
