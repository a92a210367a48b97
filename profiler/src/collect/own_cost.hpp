// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "collect/thread_log.hpp"

namespace opscope::collect {

/// Measures what the collector itself adds to a program: `{"clock_ns", "op_ns", "range_ns",
/// "frame_ns", "method"}`, nanoseconds of one clock read and of storing one event, on the calling
/// thread. Takes well under a millisecond. What a layer's hooks cost besides is for the layer to
/// say.
[[nodiscard]] std::string measure_own_cost(chunk_pool& pool);

}  // namespace opscope::collect
