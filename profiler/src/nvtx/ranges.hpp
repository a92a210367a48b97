// SPDX-License-Identifier: Apache-2.0
//
// Open NVTX ranges. They are kept whether a session is on or not (a name is copied, no clock is
// read), so that a range that was open when the session started is in the capture, clamped.
#pragma once

#include <nvtx3/nvToolsExt.h>

#include <cstdint>

#include "collect/runtime.h"
#include "nvtx/names.hpp"

namespace opscope::nvtx {

/// A range from its begin to its end.
struct open_range {
  static constexpr std::uint32_t name_capacity = 440;

  std::uint64_t start_ns;
  std::uint64_t id;
  std::uint64_t payload;
  const domain* where;
  std::uint32_t epoch;  ///< recording period in which it began; 0: none was on
  std::uint32_t thread;
  std::uint32_t color;
  std::uint32_t payload_type;
  std::uint32_t category;
  std::uint32_t level;  ///< pushed ones of its domain below it, on its thread
  std::uint32_t name_handle;
  std::uint32_t name_size;
  char name[name_capacity];
};

/// Describes a range that begins now. `Text` is an attribute block, narrow or wide text; any may be
/// nullptr.
template <typename Text>
void describe(open_range& range, nvtxDomainHandle_t where, const Text* text) noexcept;

/// push/pop: a stack for each (thread, domain). Both return the nesting level, from 0, or -1.
template <typename Text>
int push(nvtxDomainHandle_t where, const Text* text) noexcept;
int pop(nvtxDomainHandle_t where) noexcept;

/// start/end: process-wide by id, may end on another thread. 0: no room.
template <typename Text>
nvtxRangeId_t start(nvtxDomainHandle_t where, const Text* text) noexcept;
void end(nvtxRangeId_t id) noexcept;

template <typename Text>
void mark(nvtxDomainHandle_t where, const Text* text) noexcept;

/// Marks since the library was loaded, recorded or not.
[[nodiscard]] std::uint64_t marks_received() noexcept;

/// Starts and stops with the session; what is open at the stop is written, flagged.
[[nodiscard]] const opscope_layer& layer() noexcept;

}  // namespace opscope::nvtx
