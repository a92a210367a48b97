// SPDX-License-Identifier: Apache-2.0
#include "cupti/captures.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>

namespace opscope::cupti {
namespace {

/// Captures at a time that are told apart; more than one is rare.
constexpr std::size_t most = 64;

std::mutex mutex;
std::array<CUstream, most> streams{};
std::size_t known = 0;
std::atomic<bool> any{false};

CUstream* find(CUstream stream) noexcept {
  auto* const end = streams.data() + known;
  return std::find(streams.data(), end, stream);
}

}  // namespace

void note_capture_begun(CUstream stream) noexcept {
  const std::scoped_lock lock{mutex};
  if (known < most && find(stream) == streams.data() + known) {
    streams[known++] = stream;
  }
  any.store(known != 0, std::memory_order_relaxed);
}

void note_capture_ended(CUstream stream) noexcept {
  const std::scoped_lock lock{mutex};
  auto* const place = find(stream);
  if (place != streams.data() + known) {
    *place = streams[--known];
  }
  any.store(known != 0, std::memory_order_relaxed);
}

void forget_captures() noexcept {
  const std::scoped_lock lock{mutex};
  known = 0;
  any.store(false, std::memory_order_relaxed);
}

bool capture_in_progress() noexcept { return any.load(std::memory_order_relaxed); }

}  // namespace opscope::cupti
