// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

namespace opscope::test {

/// out[i] = in[i], four floats a thread: moves 4 * count bytes in and as many out.
void launch_copy(const float* in, float* out, std::size_t count, cudaStream_t stream = nullptr);

/// data[i] += value.
void launch_add(float* data, float value, std::size_t count, cudaStream_t stream = nullptr);

/// The kernel of launch_add, for the driver API: parameters float*, float, std::size_t.
cudaFunction_t add_function();

}  // namespace opscope::test
