// SPDX-License-Identifier: Apache-2.0
// A run is done in segments that stay in the first-level cache. Each is three plain loops, which
// the compiler vectorises: the draws become masks, the bias is laid out beside the elements, and
// the formulas run over both.
#include <algorithm>
#include <opscope/kernels/bias_gelu_dropout_host.hpp>

#include "gelu_math.hpp"
#include "host_elements.hpp"
#include "philox.hpp"

namespace opscope::kernels::host {
namespace {

using detail::bf16_elements;
using detail::fp16_elements;
using detail::fp32_elements;
using detail::fp64_elements;

constexpr int segment_length = 256;
constexpr int lanes_of_a_call = 8;

template <class Elements>
using value_of = decltype(Elements::load({}));

/// What a segment's loops read and write beside the matrices.
template <class Value>
struct segment_buffers {
  std::uint32_t kept[segment_length];
  Value bias[segment_length];
  Value gradients[segment_length];
};

/// One segment: `count` elements from logical index `first` on, the first in column `column`.
struct segment {
  std::int64_t first;
  std::int64_t column;
  int count;
};

/// Masks of 16-bit draws, all calls of the generator in one loop.
OPSCOPE_MATH void draw_16(const dropout_draws& draws, const segment& part, std::uint32_t* kept) {
  constexpr int most_calls = segment_length / lanes_of_a_call + 1;
  std::uint32_t words[most_calls * 4];
  const std::int64_t call = part.first / lanes_of_a_call;
  const int skipped = static_cast<int>(part.first % lanes_of_a_call);
  const int calls = (skipped + part.count + lanes_of_a_call - 1) / lanes_of_a_call;
  for (int k = 0; k < calls; ++k) {
    const detail::philox_words four =
        detail::philox(draws.seed, static_cast<std::uint64_t>(call + k), draws.offset / 4);
    for (int w = 0; w < 4; ++w) words[4 * k + w] = four.word[w];
  }
  for (int e = 0; e < part.count; ++e) {
    const int lane = skipped + e;
    const std::uint32_t draw = (words[lane / 2] >> (16 * (lane % 2))) & 0xFFFFU;
    kept[e] = draw >= draws.rule.threshold ? ~0U : 0U;
  }
}

OPSCOPE_MATH void draw(const dropout_draws& draws, const segment& part, std::uint32_t* kept) {
  if (draws.rule.kind == draw::bits_16) return draw_16(draws, part, kept);
  if (draws.rule.kind == draw::keep_all || draws.rule.kind == draw::drop_all) {
    std::fill_n(kept, part.count, draws.rule.kind == draw::keep_all ? ~0U : 0U);
    return;
  }
  for (int e = 0; e < part.count; ++e) {
    const auto i = static_cast<std::uint64_t>(part.first + e);
    kept[e] = detail::keeps<float>(draws.rule, draws.seed, draws.offset / 4, i) ? ~0U : 0U;
  }
}

/// Calls `work(column, e, count)` for each stretch of a segment that lies in one row: `count`
/// elements from the segment's element `e` on, which start in `column`.
template <class Work>
OPSCOPE_MATH void for_each_stretch(const segment& part, std::int64_t columns, const Work& work) {
  std::int64_t column = part.column;
  for (int e = 0; e < part.count;) {
    const auto count = static_cast<int>(std::min<std::int64_t>(part.count - e, columns - column));
    work(column, e, count);
    e += count;
    column = 0;
  }
}

template <class Elements>
OPSCOPE_MATH void lay_out_bias(const typename Elements::storage* bias, const segment& part,
                               std::int64_t columns, value_of<Elements>* values) {
  using value = value_of<Elements>;
  if (bias == nullptr) {
    std::fill_n(values, part.count, value{-0.0});  // x + −0 is x
    return;
  }
  for_each_stretch(part, columns, [&](std::int64_t column, int e, int count) {
    for (int k = 0; k < count; ++k) values[e + k] = Elements::load(bias[column + k]);
  });
}

template <class Elements, class Form>
OPSCOPE_MATH void forward_segment(const typename Elements::storage* input,
                                  typename Elements::storage* output, int count,
                                  const segment_buffers<value_of<Elements>>& buffers,
                                  value_of<Elements> scale) {
  using value = value_of<Elements>;
  for (int e = 0; e < count; ++e) {
    const value x = Elements::load(input[e]) + buffers.bias[e];
    const value result = detail::gelu<Form, Elements::digits>(x) * scale;
    output[e] = Elements::store(buffers.kept[e] != 0 ? result : value{0});
  }
}

template <class Elements, class Form>
OPSCOPE_MATH void backward_segment(const typename Elements::storage* grad_output,
                                   const typename Elements::storage* input,
                                   typename Elements::storage* grad_input, int count,
                                   segment_buffers<value_of<Elements>>& buffers,
                                   value_of<Elements> scale) {
  using value = value_of<Elements>;
  for (int e = 0; e < count; ++e) {
    const value x = Elements::load(input[e]) + buffers.bias[e];
    const value slope = detail::gelu_derivative<Form, Elements::digits>(x);
    const value result = Elements::load(grad_output[e]) * slope * scale;
    buffers.gradients[e] = buffers.kept[e] != 0 ? result : value{0};
    grad_input[e] = Elements::store(buffers.gradients[e]);
  }
}

/// The matrices of a call; those of the backward direction are null in the forward one.
struct matrices {
  const void* grad_output;
  const void* input;
  const void* bias;
  void* output;
  void* sums;
};

template <class Elements, class Form>
OPSCOPE_MATH void run_segments(const matrices& data, const matrix_run& run,
                               const dropout_draws& draws) {
  using storage = Elements::storage;
  using value = value_of<Elements>;
  const auto* grad_output = static_cast<const storage*>(data.grad_output);
  const auto* input = static_cast<const storage*>(data.input);
  auto* output = static_cast<storage*>(data.output);
  auto* sums = static_cast<value*>(data.sums);
  const auto scale = static_cast<value>(draws.rule.scale);
  segment_buffers<value> buffers;
  for (std::int64_t done = 0; done < run.count; done += segment_length) {
    const std::int64_t i = run.first + done;
    const segment part{i, i % run.columns,
                       static_cast<int>(std::min<std::int64_t>(segment_length, run.count - done))};
    draw(draws, part, buffers.kept);
    lay_out_bias<Elements>(static_cast<const storage*>(data.bias), part, run.columns, buffers.bias);
    if (grad_output == nullptr) {
      forward_segment<Elements, Form>(input + i, output + i, part.count, buffers, scale);
      continue;
    }
    backward_segment<Elements, Form>(grad_output + i, input + i, output + i, part.count, buffers,
                                     scale);
    if (sums == nullptr) continue;
    for_each_stretch(part, run.columns, [&](std::int64_t column, int e, int count) {
      for (int k = 0; k < count; ++k) sums[column + k] += buffers.gradients[e + k];
    });
  }
}

template <class Elements>
OPSCOPE_MATH void run_elements(const matrices& data, const matrix_run& run,
                               const dropout_draws& draws, approximate form) {
  if (form == approximate::tanh) {
    run_segments<Elements, detail::tanh_form>(data, run, draws);
  } else {
    run_segments<Elements, detail::exact_form>(data, run, draws);
  }
}

OPSCOPE_CLONES void run_clones(const matrices& data, const matrix_run& run,
                               const dropout_draws& draws, dtype type, approximate form) noexcept {
  switch (type) {
    case dtype::fp64:
      return run_elements<fp64_elements>(data, run, draws, form);
    case dtype::fp32:
      return run_elements<fp32_elements>(data, run, draws, form);
    case dtype::fp16:
      return run_elements<fp16_elements>(data, run, draws, form);
    case dtype::bf16:
      return run_elements<bf16_elements>(data, run, draws, form);
  }
}

template <class Elements>
void sum_elements(const void* values, std::int64_t rows, std::int64_t columns, void* output) {
  using value = value_of<Elements>;
  const auto* in = static_cast<const value*>(values);
  auto* out = static_cast<Elements::storage*>(output);
  for (std::int64_t column = 0; column < columns; ++column) {
    value total{0};
    for (std::int64_t row = 0; row < rows; ++row) total += in[row * columns + column];
    out[column] = Elements::store(total);
  }
}

}  // namespace

void bias_gelu_dropout_forward(const void* input, const void* bias, void* output,
                               const matrix_run& run, const dropout_draws& draws, dtype type,
                               approximate form) noexcept {
  run_clones({nullptr, input, bias, output, nullptr}, run, draws, type, form);
}

void bias_gelu_dropout_backward(const void* grad_output, const void* input, const void* bias,
                                void* grad_input, void* sums, const matrix_run& run,
                                const dropout_draws& draws, dtype type, approximate form) noexcept {
  run_clones({grad_output, input, bias, grad_input, sums}, run, draws, type, form);
}

void sum_rows(const void* values, std::int64_t rows, std::int64_t columns, void* output,
              dtype type) noexcept {
  switch (type) {
    case dtype::fp64:
      return sum_elements<fp64_elements>(values, rows, columns, output);
    case dtype::fp32:
      return sum_elements<fp32_elements>(values, rows, columns, output);
    case dtype::fp16:
      return sum_elements<fp16_elements>(values, rows, columns, output);
    case dtype::bf16:
      return sum_elements<bf16_elements>(values, rows, columns, output);
  }
}

}  // namespace opscope::kernels::host
