// SPDX-License-Identifier: Apache-2.0
#include "bias_gelu_dropout_launch.cuh"

namespace opscope::kernels {
namespace {

// In 16 bits the issue of instructions is the limit. An element takes, in the machine code of the
// loop for sm_90 (exact form / tanh form): bf16 31 / 24 forward, of which Philox is 5, the mask 2
// and GELU the most; bf16 35 backward in the exact form; fp32 55 forward in the exact form. Two
// rows in flight are 16 KiB of loads a multiprocessor at 512 resident threads.
struct forward_call {
  static constexpr bool backward = false;
  template <class Element>
  using shape = detail::tile_shape<256, 32, 8, 2, 2>;
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
