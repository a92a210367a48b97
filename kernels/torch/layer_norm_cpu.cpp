// SPDX-License-Identifier: Apache-2.0
#include <torch/library.h>

#include <algorithm>
#include <opscope/kernels/layer_norm_host.hpp>

#include "arguments.hpp"
#include "layer_norm_arguments.hpp"
#include "nvtx_range.hpp"
#include "parallel_tasks.hpp"

namespace opscope::ops {
namespace {

// Elements below which one thread does the work.
constexpr std::int64_t grain_size = 32768;

/// Calls `work(first, last)` for parts of the range from 0 to `count`, on torch's threads, each of
/// which gets at least `grain`.
template <class Work>
void for_each_part(std::int64_t count, std::int64_t grain, const Work& work) {
  for_each_task((count + grain - 1) / grain, [&](std::int64_t first, std::int64_t last) {
    work(first * grain, std::min(count, last * grain));
  });
}

void run(const kernels::layer_norm_forward_call& call) {
  if (call.size.hidden == 0) return;
  for_each_part(call.size.rows, std::max<std::int64_t>(1, grain_size / call.size.hidden),
                [&](std::int64_t first, std::int64_t last) {
                  kernels::host::layer_norm_forward(call, first, last);
                });
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> layer_norm_forward(
    const at::Tensor& input, c10::SymIntArrayRef normalized_shape, const optional_tensor& weight,
    const optional_tensor& bias, double eps) {
  static const nvtx_name name("opscope::layer_norm");
  const nvtx_range range(name, input.numel());
  const layer_norm_forward_tensors made = prepare_layer_norm_forward(
      "layer_norm", input, at::Tensor(), normalized_shape, weight, bias, eps);
  run(made.call);
  return {made.out, made.mean, made.rstd};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> add_layer_norm_forward(
    const at::Tensor& input, const at::Tensor& residual, c10::SymIntArrayRef normalized_shape,
    const optional_tensor& weight, const optional_tensor& bias, double eps) {
  static const nvtx_name name("opscope::add_layer_norm");
  const nvtx_range range(name, input.numel());
  const layer_norm_forward_tensors made = prepare_layer_norm_forward(
      "add_layer_norm", input, residual, normalized_shape, weight, bias, eps);
  run(made.call);
  return {made.out, made.sum, made.mean, made.rstd};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> layer_norm_backward(
    const at::Tensor& grad_out, const optional_tensor& grad_sum, const at::Tensor& sum,
    std::int64_t dims, const at::Tensor& mean, const at::Tensor& rstd,
    const optional_tensor& weight, const optional_tensor& bias, gradient_mask output_mask) {
  static const nvtx_name name("opscope::layer_norm_backward");
  const nvtx_range range(name, sum.numel());
  const layer_norm_backward_tensors made = prepare_layer_norm_backward(
      "layer_norm_backward", grad_out, grad_sum, sum, dims, mean, rstd, weight, bias, output_mask);
  const kernels::layer_norm_size size = made.call.size;
  const bool sums_wanted = made.call.grad_weight != nullptr || made.call.grad_bias != nullptr;
  if (size.rows > 0 && size.hidden > 0) {
    constexpr std::int64_t group_rows = kernels::host::layer_norm_group_rows;
    const std::int64_t groups = (size.rows + group_rows - 1) / group_rows;
    const at::Tensor partials = allocate({sums_wanted ? groups : 0, 2, size.hidden},
                                         at::TensorOptions(statistics_type(sum.scalar_type())));
    void* const sums = sums_wanted ? partials.mutable_data_ptr() : nullptr;
    const std::int64_t grain = std::max<std::int64_t>(1, grain_size / (group_rows * size.hidden));
    for_each_part(groups, grain, [&](std::int64_t first, std::int64_t last) {
      kernels::host::layer_norm_backward(made.call, sums, first, last);
    });
    if (sums_wanted) kernels::host::layer_norm_add_partials(made.call, sums);
  }
  return {made.grad_input, made.grad_weight, made.grad_bias};
}

}  // namespace

void register_layer_norm_cpu(torch::Library& library) {
  library.impl("layer_norm_forward", TORCH_FN(layer_norm_forward));
  library.impl("add_layer_norm_forward", TORCH_FN(add_layer_norm_forward));
  library.impl("layer_norm_backward", TORCH_FN(layer_norm_backward));
}

}  // namespace opscope::ops
