// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <opscope/kernels/dtype.hpp>

namespace opscope::kernels::host {

/// Has this processor what gelu_forward_avx512 needs?
bool has_avx512() noexcept;

/// gelu_forward of the exact form, not of fp64.
void gelu_forward_avx512(const void* input, void* output, std::int64_t count, dtype type) noexcept;

}  // namespace opscope::kernels::host
