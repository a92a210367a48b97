// SPDX-License-Identifier: Apache-2.0
#include "cupti/cupti_error.hpp"

#include <algorithm>
#include <array>

namespace opscope::cupti {
namespace {

struct explanation {
  CUptiResult status;
  std::string_view name;  ///< without the prefix CUPTI_ERROR_
  std::string_view meaning;
  std::string_view remedy;
};

constexpr std::string_view general_meaning = "CUPTI refused the call";
constexpr std::string_view general_remedy = "run `opscope doctor`";
constexpr std::string_view bare_metal =
    "counters need a GPU that is not shared this way; timelines work";

constexpr std::array explanations{
    explanation{CUPTI_ERROR_INVALID_PARAMETER, "INVALID_PARAMETER", "an argument was not accepted",
                general_remedy},
    explanation{CUPTI_ERROR_INVALID_DEVICE, "INVALID_DEVICE", "there is no such GPU",
                "check CUDA_VISIBLE_DEVICES"},
    explanation{CUPTI_ERROR_INVALID_CONTEXT, "INVALID_CONTEXT", "the CUDA context is not valid",
                "use the GPU once before profiling"},
    explanation{CUPTI_ERROR_INVALID_OPERATION, "INVALID_OPERATION",
                "the call is not allowed at this point",
                "end other profilers of this process first"},
    explanation{CUPTI_ERROR_OUT_OF_MEMORY, "OUT_OF_MEMORY", "memory ran out",
                "free host or GPU memory, or lower --memory"},
    explanation{CUPTI_ERROR_HARDWARE, "HARDWARE", "the GPU reported a fault",
                "look into the kernel log for Xid messages"},
    explanation{CUPTI_ERROR_API_NOT_IMPLEMENTED, "API_NOT_IMPLEMENTED",
                "this CUPTI lacks the function", "use CUPTI 13.0.1 or later"},
    explanation{CUPTI_ERROR_MAX_LIMIT_REACHED, "MAX_LIMIT_REACHED", "a limit was reached",
                general_remedy},
    explanation{CUPTI_ERROR_NOT_READY, "NOT_READY", "the GPU is not ready", "try again"},
    explanation{CUPTI_ERROR_NOT_COMPATIBLE, "NOT_COMPATIBLE",
                "it cannot be combined with what is already on",
                "end other profilers of this process first"},
    explanation{CUPTI_ERROR_NOT_INITIALIZED, "NOT_INITIALIZED",
                "CUPTI could not initialise, or libnvperf_host.so is not beside libcupti",
                "install the whole nvidia-cuda-cupti package and the NVIDIA driver"},
    explanation{CUPTI_ERROR_INVALID_METRIC_NAME, "INVALID_METRIC_NAME",
                "this GPU has no such metric", "use a GPU of compute capability 7.5 or later"},
    explanation{CUPTI_ERROR_HARDWARE_BUSY, "HARDWARE_BUSY",
                "another client holds the GPU's counters",
                "pause DCGM with `dcgmi profile --pause`, or end the other profiler"},
    explanation{CUPTI_ERROR_NOT_SUPPORTED, "NOT_SUPPORTED",
                "this system or configuration cannot do it", general_remedy},
    explanation{CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED, "VIRTUALIZED_DEVICE_NOT_SUPPORTED",
                "the GPU is virtualised",
                "ask the host's administrator to allow profiling in the vGPU"},
    explanation{CUPTI_ERROR_INSUFFICIENT_PRIVILEGES, "INSUFFICIENT_PRIVILEGES",
                "reading hardware counters is restricted to administrators",
                "run with CAP_SYS_ADMIN, or load the driver with "
                "NVreg_RestrictProfilingToAdminUsers=0"},
    explanation{CUPTI_ERROR_OLD_PROFILER_API_INITIALIZED, "OLD_PROFILER_API_INITIALIZED",
                "an older profiling interface is in use in this process",
                "end the other profiler first"},
    explanation{CUPTI_ERROR_LEGACY_PROFILER_NOT_SUPPORTED, "LEGACY_PROFILER_NOT_SUPPORTED",
                "this GPU is served by the newer interfaces only", general_remedy},
    explanation{CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED,
                "MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED", "another tool owns CUPTI in this process",
                "run without nsys, ncu, compute-sanitizer or torch.profiler"},
    explanation{CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES,
                "VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES",
                "the virtual GPU does not allow profiling",
                "ask the host's administrator to allow profiling in the vGPU"},
    explanation{CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED,
                "CONFIDENTIAL_COMPUTING_NOT_SUPPORTED", "confidential computing is on",
                "switch it off, or do without counters"},
    explanation{CUPTI_ERROR_CMP_DEVICE_NOT_SUPPORTED, "CMP_DEVICE_NOT_SUPPORTED",
                "mining processors cannot be profiled", "use another GPU"},
    explanation{CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED, "MIG_DEVICE_NOT_SUPPORTED",
                "the GPU is split into MIG instances", bare_metal},
    explanation{CUPTI_ERROR_SLI_DEVICE_NOT_SUPPORTED, "SLI_DEVICE_NOT_SUPPORTED", "SLI is on",
                bare_metal},
    explanation{CUPTI_ERROR_WSL_DEVICE_NOT_SUPPORTED, "WSL_DEVICE_NOT_SUPPORTED",
                "WSL does not offer it", "use Linux itself for counters"},
    explanation{CUPTI_ERROR_INVALID_CHIP_NAME, "INVALID_CHIP_NAME", "CUPTI does not know this GPU",
                "use a newer CUPTI"},
    explanation{CUPTI_ERROR_UNKNOWN, "UNKNOWN", "CUPTI could not start on this machine",
                "check the NVIDIA driver with `nvidia-smi`"},
};

const explanation* find(CUptiResult status) noexcept {
  const auto* found = std::ranges::find(explanations, status, &explanation::status);
  return found == explanations.end() ? nullptr : found;
}

std::string describe(CUptiResult status, std::string_view operation, std::string_view owner) {
  std::string line{operation};
  line += ": " + symbolic_name(status) + ", ";
  line += meaning(status);
  if (!owner.empty()) {
    line += ": ";
    line += owner;
  }
  line += " (";
  line += remedy(status);
  line += ')';
  return line;
}

}  // namespace

std::string symbolic_name(CUptiResult status) {
  if (status == CUPTI_SUCCESS) {
    return "CUPTI_SUCCESS";
  }
  const auto* known = find(status);
  return "CUPTI_ERROR_" +
         (known != nullptr ? std::string{known->name} : std::to_string(static_cast<int>(status)));
}

std::string_view meaning(CUptiResult status) noexcept {
  const auto* known = find(status);
  return known != nullptr ? known->meaning : general_meaning;
}

std::string_view remedy(CUptiResult status) noexcept {
  const auto* known = find(status);
  return known != nullptr ? known->remedy : general_remedy;
}

cupti_error::cupti_error(CUptiResult status, std::string_view operation, std::string_view owner,
                         std::source_location where)
    : opscope::error(describe(status, operation, owner)), status_(status), where_(where) {}

void check(CUptiResult status, std::string_view operation, std::source_location where) {
  if (status != CUPTI_SUCCESS) {
    throw cupti_error(status, operation, {}, where);
  }
}

}  // namespace opscope::cupti
