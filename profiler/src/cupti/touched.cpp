// SPDX-License-Identifier: Apache-2.0
#include "cupti/touched.hpp"

#include <atomic>

#include "collect/activity_source.hpp"

namespace opscope::cupti {
namespace {

std::atomic<bool> touched{false};

}  // namespace

void mark_touched() noexcept { touched.store(true, std::memory_order_relaxed); }

void forget_touched() noexcept { touched.store(false, std::memory_order_relaxed); }

}  // namespace opscope::cupti

namespace opscope::collect {

bool activity_touched() noexcept { return cupti::touched.load(std::memory_order_relaxed); }

}  // namespace opscope::collect
