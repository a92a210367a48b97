// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "collect/activity_source.hpp"
#include "collect/runtime.h"

namespace opscope::collect {

/// What the runtime is built with: the functions of activity_source.hpp, or a test's fakes.
struct factories {
  std::unique_ptr<activity_source> (*activity)() = nullptr;
  std::unique_ptr<counter_source> (*counters)() = nullptr;
  std::string (*machine)() = nullptr;
  bool (*touched)() noexcept = nullptr;
  void (*detach)() = nullptr;
};

/// The process's one runtime, made by the first call; later calls return the same.
const opscope_runtime* install_runtime(const factories& with) noexcept;

}  // namespace opscope::collect
