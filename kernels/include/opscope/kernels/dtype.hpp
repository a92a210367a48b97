// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace opscope::kernels {

/// Element type of a buffer. All buffers of one call share it.
enum class dtype : std::uint8_t { fp64, fp32, fp16, bf16 };

/// Which GELU: `none` is x·Φ(x) with the normal distribution's Φ, `tanh` is
/// x·(1 + tanh(√(2/π)·(x + 0.044715·x³)))/2 (Hendrycks and Gimpel, arXiv:1606.08415).
enum class approximate : std::uint8_t { none, tanh };

}  // namespace opscope::kernels
