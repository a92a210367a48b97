// SPDX-License-Identifier: Apache-2.0
// Work is cut into tasks by the sizes alone, so that sums come out the same with any number of
// threads.
#include <ATen/CPUGeneratorImpl.h>
#include <torch/library.h>

#include <algorithm>
#include <mutex>
#include <opscope/kernels/bias_gelu_dropout_host.hpp>

#include "arguments.hpp"
#include "bias_gelu_dropout_arguments.hpp"
#include "bias_gelu_dropout_ops.hpp"
#include "nvtx_range.hpp"
#include "parallel_tasks.hpp"

namespace opscope::ops {
namespace {

using kernels::host::dropout_draws;
using kernels::host::matrix_run;

constexpr std::int64_t task_elements = 16384;
constexpr std::int64_t least_rows = 64;  // of a task: what its partial sums are a share of

dropout_draws draws_of(const dropout_options& options, const std::int64_t* state) {
  TORCH_CHECK(options.layout == mask_layout::element,
              "rng='aten' is the layout of ATen's CUDA kernel: it needs a CUDA tensor");
  return {kernels::make_dropout_rule(options.p), static_cast<std::uint64_t>(state[0]),
          static_cast<std::uint64_t>(state[1])};
}

std::uint64_t take_seed(const std::optional<at::Generator>& generator) {
  auto* const source = at::get_generator_or_default<at::CPUGeneratorImpl>(
      generator, at::detail::getDefaultCPUGenerator());
  const std::scoped_lock lock(source->mutex_);
  return source->random64();
}

at::Tensor forward(const at::Tensor& self, const std::optional<at::Tensor>& bias,
                   const dropout_draws& draws, kernels::dtype type, kernels::approximate form) {
  const at::Tensor input = dense(self);
  const at::Tensor addend = dense_bias(bias);
  at::Tensor output = allocate(self.sizes(), self.options());
  const std::int64_t columns = matrix_of(self).columns;
  const std::int64_t count = self.numel();
  void* const out = output.mutable_data_ptr();
  for_each_task((count + task_elements - 1) / task_elements, [&](std::int64_t first_task,
                                                                 std::int64_t last_task) {
    const std::int64_t first = first_task * task_elements;
    const std::int64_t last = std::min(last_task * task_elements, count);
    kernels::host::bias_gelu_dropout_forward(input.const_data_ptr(), data_or_null(addend), out,
                                             {first, last - first, columns}, draws, type, form);
  });
  return output;
}

std::tuple<at::Tensor, at::Tensor> bias_gelu_dropout(
    const at::Tensor& self, const std::optional<at::Tensor>& bias, double p, bool training,
    std::string_view approximate, std::optional<at::Generator> generator, std::string_view rng) {
  dropout_options options = parse_options(p, approximate, rng);
  if (!training) options.p = 0.0;
  const kernels::dtype type = check_input("bias_gelu_dropout", self, bias);
  static const nvtx_name name("opscope::bias_gelu_dropout");
  const nvtx_range range(name, self.numel());
  at::Tensor state = allocate({2}, self.options().dtype(at::kLong));
  auto* const numbers = state.mutable_data_ptr<std::int64_t>();
  std::fill_n(numbers, 2, std::int64_t{0});
  if (options.draws() && self.numel() > 0) {
    numbers[0] = static_cast<std::int64_t>(take_seed(generator));
  }
  return {forward(self, bias, draws_of(options, numbers), type, options.form), state};
}

at::Tensor bias_gelu_dropout_from_state(const at::Tensor& self,
                                        const std::optional<at::Tensor>& bias,
                                        const at::Tensor& rng_state, double p,
                                        std::string_view approximate, std::string_view rng) {
  const dropout_options options = parse_options(p, approximate, rng);
  const kernels::dtype type = check_input("bias_gelu_dropout_from_state", self, bias);
  check_state(self, rng_state);
  static const nvtx_name name("opscope::bias_gelu_dropout_from_state");
  const nvtx_range range(name, self.numel());
  const at::Tensor state = dense(rng_state);
  const dropout_draws draws = draws_of(options, state.const_data_ptr<std::int64_t>());
  return forward(self, bias, draws, type, options.form);
}

/// How a backward pass is cut: `rows` rows by `columns` columns a task, whole rows where they are
/// short. Every chunk of rows has partial sums of its own.
struct task_grid {
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t chunks;
  std::int64_t strips;
};

task_grid cut(kernels::matrix_size size) {
  const std::int64_t columns = std::min(size.columns, task_elements / least_rows * 4);
  const std::int64_t rows =
      std::max(least_rows, task_elements / std::max<std::int64_t>(columns, 1));
  const auto pieces = [](std::int64_t whole, std::int64_t piece) {
    return piece == 0 ? 0 : (whole + piece - 1) / piece;
  };
  return {rows, columns, pieces(size.rows, rows), pieces(size.columns, columns)};
}

/// Calls `work(run)` for the runs of consecutive elements of one task.
template <class Work>
void for_each_run(const task_grid& grid, kernels::matrix_size size, std::int64_t task,
                  const Work& work) {
  const std::int64_t first_row = task / grid.strips * grid.rows;
  const std::int64_t first_column = task % grid.strips * grid.columns;
  const std::int64_t rows = std::min(grid.rows, size.rows - first_row);
  const std::int64_t columns = std::min(grid.columns, size.columns - first_column);
  const std::int64_t first = first_row * size.columns + first_column;
  if (grid.strips == 1) return work(matrix_run{first, rows * columns, size.columns});
  for (std::int64_t row = 0; row < rows; ++row) {
    work(matrix_run{first + row * size.columns, columns, size.columns});
  }
}

std::tuple<at::Tensor, at::Tensor> bias_gelu_dropout_backward(
    const at::Tensor& grad_output, const at::Tensor& self, const std::optional<at::Tensor>& bias,
    const at::Tensor& rng_state, double p, std::string_view approximate, std::string_view rng) {
  const dropout_options options = parse_options(p, approximate, rng);
  const kernels::dtype type = check_input("bias_gelu_dropout_backward", self, bias);
  check_state(self, rng_state);
  check_gradient(self, grad_output);
  static const nvtx_name name("opscope::bias_gelu_dropout_backward");
  const nvtx_range range(name, self.numel());
  const at::Tensor state = dense(rng_state);
  const dropout_draws draws = draws_of(options, state.const_data_ptr<std::int64_t>());
  const at::Tensor gradient = dense(grad_output);
  const at::Tensor input = dense(self);
  const at::Tensor addend = dense_bias(bias);
  const kernels::matrix_size size = matrix_of(self);
  const task_grid grid = cut(size);
  at::Tensor grad_self = allocate(self.sizes(), self.options());
  at::Tensor grad_bias = allocate({addend.defined() ? size.columns : 0}, self.options());
  at::Tensor sums;
  if (addend.defined()) {
    const at::ScalarType value = self.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
    sums = allocate({grid.chunks, size.columns}, self.options().dtype(value)).zero_();
  }
  void* const out = grad_self.mutable_data_ptr();
  char* const partial = sums.defined() ? static_cast<char*>(sums.mutable_data_ptr()) : nullptr;
  for_each_task(grid.chunks * grid.strips, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t task = first; task < last; ++task) {
      void* const row = partial == nullptr
                            ? nullptr
                            : partial + task / grid.strips * size.columns * sums.element_size();
      for_each_run(grid, size, task, [&](const matrix_run& run) {
        kernels::host::bias_gelu_dropout_backward(gradient.const_data_ptr(), input.const_data_ptr(),
                                                  data_or_null(addend), out, row, run, draws, type,
                                                  options.form);
      });
    }
  });
  if (sums.defined()) {
    kernels::host::sum_rows(partial, grid.chunks, size.columns, grad_bias.mutable_data_ptr(), type);
  }
  return {grad_self, grad_bias};
}

}  // namespace

void register_bias_gelu_dropout_cpu(torch::Library& library) {
  library.impl("bias_gelu_dropout", TORCH_FN(bias_gelu_dropout));
  library.impl("bias_gelu_dropout_from_state", TORCH_FN(bias_gelu_dropout_from_state));
  library.impl("bias_gelu_dropout_backward", TORCH_FN(bias_gelu_dropout_backward));
}

}  // namespace opscope::ops
