// SPDX-License-Identifier: Apache-2.0
//
// Hot path: copies one event into the calling thread's log. No lock, no allocation, no system call.
#pragma once

#include "collect/thread_log.hpp"

namespace opscope::collect {

/// Where an emission goes.
struct emission_target {
  thread_log& log;
  chunk_pool& pool;
  const hot_state& hot;
};

/// Each appends its event while `gate` is non-zero; without room it is counted as dropped.
void emit(const emission_target& to, const std::atomic<std::uint32_t>& gate,
          const opscope_frame_event& event) noexcept;
void emit(const emission_target& to, const std::atomic<std::uint32_t>& gate,
          const opscope_op_event& event) noexcept;
void emit(const emission_target& to, const std::atomic<std::uint32_t>& gate,
          const opscope_range_event& event) noexcept;
void emit(const emission_target& to, const std::atomic<std::uint32_t>& gate,
          const stored_mark& event) noexcept;
void emit(const emission_target& to, const std::atomic<std::uint32_t>& gate,
          const stored_sample& event) noexcept;

}  // namespace opscope::collect
