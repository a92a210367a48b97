// SPDX-License-Identifier: Apache-2.0
#include "layer_norm_arguments.hpp"

#include <limits>
#include <sstream>

#include "arguments.hpp"

namespace opscope::ops {
namespace {

at::Tensor contiguous(const optional_tensor& tensor) {
  return tensor.has_value() && tensor->defined() ? tensor->contiguous() : at::Tensor();
}

const void* data_of(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.const_data_ptr() : nullptr;
}

void* wanted_data_of(const at::Tensor& tensor, bool wanted) {
  return wanted ? tensor.mutable_data_ptr() : nullptr;
}

void check_same_device(const at::Tensor& input, const at::Tensor& other) {
  TORCH_CHECK(other.device() == input.device(),
              "Expected all tensors to be on the same device, but found at least two devices, ",
              input.device(), " and ", other.device(), "!");
}

void check_parameter(const char* name, const at::Tensor& input, const at::Tensor& parameter,
                     c10::SymIntArrayRef normalized_shape) {
  TORCH_CHECK(parameter.sym_sizes().equals(normalized_shape), "Expected ", name,
              " to be of same shape as normalized_shape, but got ", name, " of shape ",
              parameter.sym_sizes(), " and normalized_shape = ", normalized_shape);
  check_same_device(input, parameter);
  const at::ScalarType type = input.scalar_type();
  const bool narrow = type == at::kHalf || type == at::kBFloat16;
  TORCH_CHECK(parameter.scalar_type() == type || (narrow && parameter.scalar_type() == at::kFloat),
              "mixed dtype: expect parameter to have scalar type of ", type,
              narrow ? " or Float" : "", ", but ", name, " has ", parameter.scalar_type());
}

/// The element type of the parameters of a call that check_parameter has seen.
at::ScalarType parameter_type(const at::Tensor& input, const at::Tensor& weight,
                              const at::Tensor& bias) {
  if (weight.defined()) return weight.scalar_type();
  return bias.defined() ? bias.scalar_type() : input.scalar_type();
}

/// Rows of the leading dimensions, of what the last `dims` dimensions hold.
kernels::layer_norm_size rows_of(const at::Tensor& tensor, std::int64_t dims) {
  kernels::layer_norm_size size{1, 1};
  for (std::int64_t d = 0; d < tensor.dim(); ++d) {
    (d < tensor.dim() - dims ? size.rows : size.hidden) *= tensor.size(d);
  }
  return size;
}

at::Tensor contiguous_statistics(const char* name, const at::Tensor& statistics,
                                 const at::Tensor& sum, std::int64_t rows) {
  check_same_device(sum, statistics);
  TORCH_CHECK(
      statistics.numel() == rows && statistics.scalar_type() == statistics_type(sum.scalar_type()),
      "Expected ", name, " to hold one ", statistics_type(sum.scalar_type()), " for each of the ",
      rows, " rows, but got ", statistics.numel(), " of ", statistics.scalar_type());
  return statistics.contiguous();
}

}  // namespace

void check_layer_norm(std::string_view op, const at::Tensor& input,
                      c10::SymIntArrayRef normalized_shape, const optional_tensor& weight,
                      const optional_tensor& bias) {
  const auto dims = static_cast<std::int64_t>(normalized_shape.size());
  TORCH_CHECK(dims >= 1,
              "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least "
              "one element, but got normalized_shape = ",
              normalized_shape);
  if (weight.has_value() && weight->defined()) {
    check_parameter("weight", input, *weight, normalized_shape);
  }
  if (bias.has_value() && bias->defined()) {
    check_parameter("bias", input, *bias, normalized_shape);
    TORCH_CHECK(
        !weight.has_value() || !weight->defined() || weight->scalar_type() == bias->scalar_type(),
        "mixed dtype: expected weight and bias of one scalar type, but got ", weight->scalar_type(),
        " and ", bias->scalar_type());
  }
  const auto sizes = input.sym_sizes();
  if (input.dim() < dims ||
      !sizes.slice(sizes.size() - normalized_shape.size()).equals(normalized_shape)) {
    std::ostringstream message;
    message << "Given normalized_shape=" << normalized_shape << ", expected input with shape [*";
    for (const c10::SymInt& size : normalized_shape) message << ", " << size;
    message << "], but got input of size" << sizes;
    TORCH_CHECK(false, message.str());
  }
  element_type(op, input.scalar_type());
}

void check_same_rows(const at::Tensor& first, const at::Tensor& second) {
  check_same_device(first, second);
  TORCH_CHECK(
      first.sym_sizes().equals(second.sym_sizes()) && first.scalar_type() == second.scalar_type(),
      "Expected tensors of one shape and type, but got ", first.scalar_type(), first.sym_sizes(),
      " and ", second.scalar_type(), second.sym_sizes());
}

at::ScalarType statistics_type(at::ScalarType element) {
  return element == at::kDouble ? at::kDouble : at::kFloat;
}

layer_norm_forward_tensors prepare_layer_norm_forward(std::string_view op, const at::Tensor& input,
                                                      const at::Tensor& residual,
                                                      c10::SymIntArrayRef normalized_shape,
                                                      const optional_tensor& weight,
                                                      const optional_tensor& bias, double eps) {
  check_layer_norm(op, input, normalized_shape, weight, bias);
  if (residual.defined()) check_same_rows(input, residual);
  const auto dims = static_cast<std::int64_t>(normalized_shape.size());
  layer_norm_forward_tensors made;
  made.input = input.contiguous();
  if (residual.defined()) made.residual = residual.contiguous();
  made.weight = contiguous(weight);
  made.bias = contiguous(bias);
  made.out = allocate(input.sizes(), input.options());
  if (residual.defined()) made.sum = allocate(input.sizes(), input.options());
  at::DimVector sizes(input.sizes());
  for (std::int64_t d = input.dim() - dims; d < input.dim(); ++d) {
    sizes[static_cast<std::size_t>(d)] = 1;
  }
  const auto options = input.options().dtype(statistics_type(input.scalar_type()));
  made.mean = allocate(sizes, options);
  made.rstd = allocate(sizes, options);
  const at::ScalarType parameters = parameter_type(input, made.weight, made.bias);
  made.call = {rows_of(input, dims),
               {element_type(op, input.scalar_type()), element_type(op, parameters)},
               eps,
               data_of(made.input),
               data_of(made.residual),
               data_of(made.weight),
               data_of(made.bias),
               made.out.mutable_data_ptr(),
               residual.defined() ? made.sum.mutable_data_ptr() : nullptr,
               made.mean.mutable_data_ptr(),
               made.rstd.mutable_data_ptr()};
  if (made.call.size.hidden == 0) {  // the mean of nothing
    made.mean.fill_(std::numeric_limits<double>::quiet_NaN());
    made.rstd.fill_(std::numeric_limits<double>::quiet_NaN());
  }
  return made;
}

layer_norm_backward_tensors prepare_layer_norm_backward(
    std::string_view op, const at::Tensor& grad_out, const optional_tensor& grad_sum,
    const at::Tensor& sum, std::int64_t dims, const at::Tensor& mean, const at::Tensor& rstd,
    const optional_tensor& weight, const optional_tensor& bias, const gradient_mask& output_mask) {
  TORCH_CHECK(dims >= 1 && dims <= sum.dim(), "Expected 1 to ", sum.dim(),
              " normalised dimensions, but got ", dims);
  const auto shape = sum.sym_sizes().slice(static_cast<std::size_t>(sum.dim() - dims));
  check_layer_norm(op, sum, shape, weight, bias);
  check_same_rows(sum, grad_out);
  layer_norm_backward_tensors made;
  made.grad_sum = contiguous(grad_sum);
  if (made.grad_sum.defined()) check_same_rows(sum, made.grad_sum);
  const kernels::layer_norm_size size = rows_of(sum, dims);
  made.grad_out = grad_out.contiguous();
  made.sum = sum.contiguous();
  made.mean = contiguous_statistics("mean", mean, sum, size.rows);
  made.rstd = contiguous_statistics("rstd", rstd, sum, size.rows);
  made.weight = contiguous(weight);
  const at::Tensor held_bias = contiguous(bias);
  const at::ScalarType parameters = parameter_type(sum, made.weight, held_bias);
  const bool weight_wanted = output_mask[1] && made.weight.defined();
  const bool bias_wanted = output_mask[2] && held_bias.defined();
  const auto result = [&](bool wanted, at::IntArrayRef sizes, at::ScalarType type) {
    return allocate(wanted ? sizes : at::IntArrayRef{0}, sum.options().dtype(type));
  };
  const at::IntArrayRef columns = sum.sizes().slice(static_cast<std::size_t>(sum.dim() - dims));
  made.grad_input = result(output_mask[0], sum.sizes(), sum.scalar_type());
  made.grad_weight = result(weight_wanted, columns, weight_wanted ? parameters : sum.scalar_type());
  made.grad_bias = result(bias_wanted, columns, bias_wanted ? parameters : sum.scalar_type());
  if (size.rows == 0) {
    made.grad_weight.zero_();
    made.grad_bias.zero_();
  }
  made.call = {size,
               {element_type(op, sum.scalar_type()), element_type(op, parameters)},
               data_of(made.grad_out),
               data_of(made.grad_sum),
               data_of(made.sum),
               data_of(made.mean),
               data_of(made.rstd),
               data_of(made.weight),
               wanted_data_of(made.grad_input, output_mask[0]),
               wanted_data_of(made.grad_weight, weight_wanted),
               wanted_data_of(made.grad_bias, bias_wanted)};
  return made;
}

}  // namespace opscope::ops
