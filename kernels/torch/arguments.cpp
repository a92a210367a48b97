// SPDX-License-Identifier: Apache-2.0
#include "arguments.hpp"

#include <ATen/EmptyTensor.h>
#include <ATen/TensorIterator.h>
#include <ATen/ops/empty_strided.h>
#ifdef OPSCOPE_WITH_CUDA
#include <ATen/cuda/EmptyTensor.h>
#endif

namespace opscope::ops {
namespace {

bool same_layout(const at::Tensor& tensor, const at::Tensor& output) {
  if (tensor.scalar_type() != output.scalar_type() || tensor.sizes() != output.sizes()) {
    return false;
  }
  for (std::int64_t d = 0; d < tensor.dim(); ++d) {
    if (tensor.size(d) > 1 && tensor.stride(d) != output.stride(d)) return false;
  }
  return true;
}

at::Tensor with_layout_of(const at::Tensor& tensor, const at::Tensor& output) {
  if (same_layout(tensor, output)) return tensor;
  at::Tensor copy = at::empty_strided(output.sizes(), output.strides(), output.options());
  return copy.copy_(tensor);
}

at::Tensor allocate_contiguous(const at::Tensor& like) {
  return allocate(like.sizes(), like.options());
}

}  // namespace

at::Tensor allocate(at::IntArrayRef sizes, const at::TensorOptions& options) {
#ifdef OPSCOPE_WITH_CUDA
  if (options.device().is_cuda()) return at::detail::empty_cuda(sizes, options);
#endif
  return at::detail::empty_cpu(sizes, options);
}

kernels::approximate parse_approximate(std::string_view text) {
  if (text == "none") return kernels::approximate::none;
  TORCH_CHECK(text == "tanh", "approximate argument must be either none or tanh.");
  return kernels::approximate::tanh;
}

kernels::dtype element_type(std::string_view op, at::ScalarType type) {
  switch (type) {
    case at::kDouble:
      return kernels::dtype::fp64;
    case at::kFloat:
      return kernels::dtype::fp32;
    case at::kHalf:
      return kernels::dtype::fp16;
    case at::kBFloat16:
      return kernels::dtype::bf16;
    default:
      TORCH_CHECK_NOT_IMPLEMENTED(false, "\"opscope::", op, "\" not implemented for '",
                                  c10::toString(type),
                                  "' (use float64, float32, float16 or bfloat16)");
  }
}

unary_call lay_out(const at::Tensor& input) {
  if (input.is_contiguous()) return {input, allocate_contiguous(input)};
  at::Tensor output;
  at::TensorIterator iterator = at::TensorIterator::unary_op(output, input);
  output = iterator.output();
  return {with_layout_of(input, output), output};
}

void prepare_output(const at::Tensor& input, const at::Tensor& out) {
  at::Tensor output = out;
  at::TensorIterator::unary_op(output, input);
}

unary_call lay_out_into(const at::Tensor& input, const at::Tensor& out) {
  if (out.is_non_overlapping_and_dense()) return {with_layout_of(input, out), out};
  return lay_out(input);
}

void store(const unary_call& call, const at::Tensor& out) {
  if (!call.output.is_same(out)) out.copy_(call.output);
}

binary_call lay_out(const at::Tensor& first, const at::Tensor& second) {
  TORCH_CHECK(first.device() == second.device(),
              "expected all tensors to be on the same device, but found ", first.device(), " and ",
              second.device());
  if (first.is_contiguous() && second.is_contiguous() && first.sizes() == second.sizes() &&
      first.scalar_type() == second.scalar_type()) {
    return {first, second, allocate_contiguous(first)};
  }
  at::Tensor output;
  at::TensorIterator iterator = at::TensorIterator::binary_op(output, first, second);
  output = iterator.output();
  const auto prepared = [&output](const at::Tensor& tensor) {
    return with_layout_of(tensor.expand_as(output), output);
  };
  return {prepared(first), prepared(second), output};
}

}  // namespace opscope::ops
