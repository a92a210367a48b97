// SPDX-License-Identifier: Apache-2.0
#include "bias_gelu_dropout_launch.cuh"

namespace opscope::kernels {
namespace {

// In 16 bits the issue of instructions is the nearest limit. An element takes, in the machine code
// of the loop for sm_90 (exact form / tanh form): bf16 27 / 22, of which Philox is 5, the mask 2
// and GELU the most; fp32 41 / 37. Two rows in flight are 32 KiB of loads a multiprocessor at 1,024
// resident threads, which hide one another's waits, and the next two are on their way meanwhile.
//
// Time over a copy's of as many bytes, exact / tanh (NVIDIA H200, 8192x4096, p = 0.1;
// bench/fused_shapes.cu; * is the choice):
//
//   bf16   <256, 32, 16, 2, 4, true> 1.255 / 1.156*
//          <128, 32, 16, 2, 8, true> 1.271 / 1.166
//          <256, 32, 16, 2, 4> 1.296 / 1.237
//          <256, 32, 16, 1, 4, true> 1.352 / 1.253
//   fp32   <256, 64, 16, 2, 4, true> 1.085 / 1.082*
//          <128, 64, 16, 2, 8, true> 1.088 / 1.078
//          <256, 64, 16, 4, 4> 1.115 / 1.112
//          <256, 64, 10, 2, 5> 1.159 / 1.180
struct forward_call {
  static constexpr bool backward = false;
  template <class Element>
  using shape =
      std::conditional_t<sizeof(Element) == 4, detail::tile_shape<256, 64, 16, 2, 4, true>,
                         detail::tile_shape<256, 32, 16, 2, 4, true>>;
};

}  // namespace

cudaError_t bias_gelu_dropout_forward(const void* input, const void* bias, void* output,
                                      matrix_size size, const dropout_rule& rule,
                                      const philox_source& source, dtype type, approximate form,
                                      cudaStream_t stream) noexcept {
  if (size.rows == 0 || size.columns == 0) return cudaSuccess;
  if (rule.kind == draw::drop_all) {
    if (source.state != nullptr) {
      const cudaError_t status = cudaMemsetAsync(source.state, 0, 2 * sizeof(std::int64_t), stream);
      if (status != cudaSuccess) return status;
    }
    return detail::clear(output, size, type, stream);
  }
  const detail::untyped_call call{nullptr, input, bias, output, nullptr, size, rule, source, form};
  return detail::launch<forward_call>(call, type, stream);
}

}  // namespace opscope::kernels
