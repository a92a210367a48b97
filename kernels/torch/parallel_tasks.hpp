// SPDX-License-Identifier: Apache-2.0
// Torch's threads without OpenMP: torch's own library starts them (`at::parallel_for` is serial
// where its header is compiled without OpenMP, and an OpenMP of our own could be a second one in
// the process).
#pragma once

#include <c10/util/FunctionRef.h>

#include <cstdint>

namespace opscope::ops {

/// Calls `work(first, last)` for ranges that together are the tasks 0 … count − 1, on torch's
/// threads where there are at least two tasks. Returns when all are done.
void for_each_task(std::int64_t count,
                   c10::function_ref<void(std::int64_t first, std::int64_t last)> work);

}  // namespace opscope::ops
