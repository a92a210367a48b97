// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>

namespace opscope {

/// A point in time: nanoseconds since the Unix epoch on the session's one clock (CLOCK_REALTIME
/// on Linux, which is what CUPTI stamps with).
using timestamp = std::chrono::nanoseconds;

/// Index into a capture's string table; `string_id{0}` is the empty string.
enum class string_id : std::uint32_t {};

/// Kernel thread id, as gettid() returns it.
enum class thread_id : std::uint32_t {};

/// CUPTI's correlation id: one per API call, shared by the GPU activities that it started. 0: none.
enum class correlation_id : std::uint32_t {};

/// Session-unique id of an op call, a Python frame or an NVTX range. 0: none.
using span_id = std::uint64_t;

}  // namespace opscope
