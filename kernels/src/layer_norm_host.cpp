// SPDX-License-Identifier: Apache-2.0
// Every loop over a row vectorises. Sums over a row are fp64: no overflow, and rounding is far
// below the statistics' own; the rows' traffic, not the arithmetic, sets the speed.
#include <algorithm>
#include <cmath>
#include <limits>
#include <opscope/kernels/layer_norm_host.hpp>
#include <type_traits>

#include "host_elements.hpp"

namespace opscope::kernels::host {
namespace {

using detail::bf16_elements;
using detail::fp16_elements;
using detail::fp32_elements;
using detail::fp64_elements;
using detail::fused;

template <class Elements>
using value_of = decltype(Elements::load({}));

/// A row of weights or biases; `missing` without data.
template <class Parameters, class Value>
struct parameters {
  const Parameters::storage* data;
  Value missing;

  OPSCOPE_MATH Value at(std::int64_t j) const {
    return data != nullptr ? Parameters::load(data[j]) : missing;
  }
};

template <class Parameters, class Value>
OPSCOPE_MATH parameters<Parameters, Value> read_parameters(const void* data, Value missing) {
  return {static_cast<const Parameters::storage*>(data), missing};
}

/// Stores s = input + residual and returns Σ s.
template <class Elements>
OPSCOPE_MATH double add_residual(const typename Elements::storage* input,
                                 const typename Elements::storage* residual,
                                 typename Elements::storage* sum, std::int64_t hidden) {
  double total = 0;
#pragma omp simd reduction(+ : total)
  for (std::int64_t j = 0; j < hidden; ++j) {
    sum[j] = Elements::store(Elements::load(input[j]) + Elements::load(residual[j]));
    total += Elements::load(sum[j]);
  }
  return total;
}

template <class Elements>
OPSCOPE_MATH double total_of(const typename Elements::storage* row, std::int64_t hidden) {
  double total = 0;
#pragma omp simd reduction(+ : total)
  for (std::int64_t j = 0; j < hidden; ++j) total += Elements::load(row[j]);
  return total;
}

/// Variance by the corrected second pass.
template <class Elements>
OPSCOPE_MATH double variance_of(const typename Elements::storage* row, std::int64_t hidden,
                                double mean) {
  double rest = 0;
  double squares = 0;
#pragma omp simd reduction(+ : rest, squares)
  for (std::int64_t j = 0; j < hidden; ++j) {
    const double centred = Elements::load(row[j]) - mean;
    rest += centred;
    squares += centred * centred;
  }
  const auto count = static_cast<double>(hidden);
  const double variance = (squares - rest * rest / count) / count;
  return variance < 0 ? 0 : variance;  // NaN passes
}

template <class Elements, class Parameters>
OPSCOPE_MATH void forward_row(const layer_norm_forward_call& call, std::int64_t row) {
  using storage = Elements::storage;
  using value = value_of<Elements>;
  const std::int64_t hidden = call.size.hidden;
  const storage* source = static_cast<const storage*>(call.input) + row * hidden;
  double total = 0;
  if (call.residual != nullptr) {
    storage* const sum = static_cast<storage*>(call.sum) + row * hidden;
    total = add_residual<Elements>(
        source, static_cast<const storage*>(call.residual) + row * hidden, sum, hidden);
    source = sum;
  } else {
    total = total_of<Elements>(source, hidden);
  }
  const double mean = total / static_cast<double>(hidden);
  const double rstd = 1 / std::sqrt(variance_of<Elements>(source, hidden, mean) + call.eps);
  const auto rounded_mean = static_cast<value>(mean);
  const auto rounded_rstd = static_cast<value>(rstd);
  static_cast<value*>(call.mean)[row] = rounded_mean;
  static_cast<value*>(call.rstd)[row] = rounded_rstd;
  const auto shift = static_cast<value>((rounded_mean - mean) * rstd);
  const auto weight = read_parameters<Parameters>(call.weight, value{1});
  const auto bias = read_parameters<Parameters>(call.bias, value{0});
  storage* const output = static_cast<storage*>(call.output) + row * hidden;
#pragma omp simd
  for (std::int64_t j = 0; j < hidden; ++j) {
    const value normalised = fused(Elements::load(source[j]) - rounded_mean, rounded_rstd, shift);
    output[j] = Elements::store(fused(normalised, weight.at(j), bias.at(j)));
  }
}

/// The places of one row of a backward call.
template <class Elements, class Parameters>
struct backward_row {
  using storage = Elements::storage;
  using value = value_of<Elements>;
  const storage* grad_output;
  const storage* grad_sum;
  const storage* sum;
  storage* grad_input;
  parameters<Parameters, value> weight;
  value mean;
  value rstd;
  std::int64_t hidden;

  OPSCOPE_MATH backward_row(const layer_norm_backward_call& call, std::int64_t row)
      : grad_output(static_cast<const storage*>(call.grad_output) + row * call.size.hidden),
        grad_sum(static_cast<const storage*>(call.grad_sum)),
        sum(static_cast<const storage*>(call.sum) + row * call.size.hidden),
        grad_input(static_cast<storage*>(call.grad_input)),
        weight(read_parameters<Parameters>(call.weight, value{1})),
        mean(static_cast<const value*>(call.mean)[row]),
        rstd(static_cast<const value*>(call.rstd)[row]),
        hidden(call.size.hidden) {
    if (grad_sum != nullptr) grad_sum += row * hidden;
    if (grad_input != nullptr) grad_input += row * hidden;
  }

  OPSCOPE_MATH value x(std::int64_t j) const { return (Elements::load(sum[j]) - mean) * rstd; }
  OPSCOPE_MATH value g(std::int64_t j) const {
    return Elements::load(grad_output[j]) * weight.at(j);
  }

  OPSCOPE_MATH void input_gradient() const {
    double total = 0;
    double product = 0;
#pragma omp simd reduction(+ : total, product)
    for (std::int64_t j = 0; j < hidden; ++j) {
      total += g(j);
      product += static_cast<double>(g(j)) * x(j);
    }
    const auto mean_g = static_cast<value>(total / static_cast<double>(hidden));
    const auto mean_gx = static_cast<value>(product / static_cast<double>(hidden));
#pragma omp simd
    for (std::int64_t j = 0; j < hidden; ++j) {
      const value inner = fused(-x(j), mean_gx, g(j) - mean_g);
      const value other = grad_sum != nullptr ? Elements::load(grad_sum[j]) : value{0};
      grad_input[j] = Elements::store(fused(rstd, inner, other));
    }
  }

  OPSCOPE_MATH void add_to(value* weight_sums, value* bias_sums) const {
#pragma omp simd
    for (std::int64_t j = 0; j < hidden; ++j) {
      const value grad = Elements::load(grad_output[j]);
      weight_sums[j] = fused(grad, x(j), weight_sums[j]);
      bias_sums[j] += grad;
    }
  }
};

template <class Elements, class Parameters>
OPSCOPE_MATH void backward_group(const layer_norm_backward_call& call, void* partials,
                                 std::int64_t group) {
  using value = value_of<Elements>;
  const std::int64_t hidden = call.size.hidden;
  const std::int64_t first = group * layer_norm_group_rows;
  const std::int64_t last = std::min(call.size.rows, first + layer_norm_group_rows);
  value* sums = nullptr;
  if (partials != nullptr) {
    sums = static_cast<value*>(partials) + group * 2 * hidden;
    std::fill_n(sums, 2 * hidden, value{0});
  }
  for (std::int64_t row = first; row < last; ++row) {
    const backward_row<Elements, Parameters> own(call, row);
    if (sums != nullptr) own.add_to(sums, sums + hidden);
    if (own.grad_input != nullptr) own.input_gradient();
  }
}

template <class Elements, class Parameters>
OPSCOPE_MATH void add_groups(const layer_norm_backward_call& call, const void* partials) {
  constexpr std::int64_t chunk = 256;
  const std::int64_t hidden = call.size.hidden;
  const std::int64_t groups = (call.size.rows + layer_norm_group_rows - 1) / layer_norm_group_rows;
  for (const int k : {0, 1}) {
    auto* const total =
        static_cast<Parameters::storage*>(k == 0 ? call.grad_weight : call.grad_bias);
    if (total == nullptr) continue;
    const auto* const sums = static_cast<const value_of<Elements>*>(partials) + k * hidden;
    for (std::int64_t first = 0; first < hidden; first += chunk) {
      const std::int64_t count = std::min(chunk, hidden - first);
      double columns[chunk] = {};
      for (std::int64_t group = 0; group < groups; ++group) {
        const auto* const part = sums + group * 2 * hidden + first;
        for (std::int64_t j = 0; j < count; ++j) columns[j] += part[j];
      }
      for (std::int64_t j = 0; j < count; ++j) {
        total[first + j] = Parameters::store(static_cast<value_of<Parameters>>(columns[j]));
      }
    }
  }
}

/// Calls `work` with the element type and the type of the parameters.
template <class Work>
OPSCOPE_MATH void with_types(const layer_norm_types& types, const Work& work) {
  const bool same = types.parameter == types.element;
  switch (types.element) {
    case dtype::fp64:
      return work(fp64_elements{}, fp64_elements{});
    case dtype::fp32:
      return work(fp32_elements{}, fp32_elements{});
    case dtype::fp16:
      return same ? work(fp16_elements{}, fp16_elements{}) : work(fp16_elements{}, fp32_elements{});
    case dtype::bf16:
      return same ? work(bf16_elements{}, bf16_elements{}) : work(bf16_elements{}, fp32_elements{});
  }
}

OPSCOPE_CLONES void forward_clones(const layer_norm_forward_call& call, std::int64_t first,
                                   std::int64_t last) noexcept {
  with_types(call.types, [&]<class Elements, class Parameters>(Elements, Parameters)
                             __attribute__((always_inline)) {
                               for (std::int64_t row = first; row < last; ++row)
                                 forward_row<Elements, Parameters>(call, row);
                             });
}

OPSCOPE_CLONES void backward_clones(const layer_norm_backward_call& call, void* partials,
                                    std::int64_t first, std::int64_t last) noexcept {
  with_types(call.types, [&]<class Elements, class Parameters>(Elements, Parameters)
                             __attribute__((always_inline)) {
                               for (std::int64_t group = first; group < last; ++group) {
                                 backward_group<Elements, Parameters>(call, partials, group);
                               }
                             });
}

}  // namespace

void layer_norm_forward(const layer_norm_forward_call& call, std::int64_t first,
                        std::int64_t last) noexcept {
  forward_clones(call, first, last);
}

void layer_norm_backward(const layer_norm_backward_call& call, void* partials, std::int64_t first,
                         std::int64_t last) noexcept {
  backward_clones(call, partials, first, last);
}

void layer_norm_add_partials(const layer_norm_backward_call& call, const void* partials) noexcept {
  with_types(call.types, [&]<class Elements, class Parameters>(Elements, Parameters) {
    add_groups<Elements, Parameters>(call, partials);
  });
}

}  // namespace opscope::kernels::host
