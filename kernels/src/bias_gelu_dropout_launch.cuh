// SPDX-License-Identifier: Apache-2.0
// The grid of tile_kernel, and the way from untyped arguments to the one instance that serves them.
#pragma once

#include <algorithm>

#include "bias_gelu_dropout_tile.cuh"

namespace opscope::kernels::detail {

/// Threads of a block across columns and down rows, and the blocks that cover the matrix.
struct tile_grid {
  int across;
  int down;
  int rows_a_chunk;
  std::int64_t strips;
  std::int64_t chunks;
};

/// Blocks below which threads take fewer rows, so that every multiprocessor has work. A constant,
/// not the device's: sums over rows come out the same on every device.
constexpr std::int64_t least_blocks = 1024;

constexpr int power_of_two_from(std::int64_t count, int most) {
  int power = 1;
  while (power < count && power < most) power *= 2;
  return power;
}

template <class Shape>
constexpr tile_grid grid_of(matrix_size size, int width) {
  const std::int64_t packs = size.columns / width;
  const int rows = power_of_two_from(size.rows, Shape::threads);
  const int across_at_most = std::max(Shape::most_across, Shape::threads / rows);
  const int across = power_of_two_from(packs, across_at_most);
  tile_grid grid{across, Shape::threads / across, 0, (packs + across - 1) / across, 0};
  int rows_a_thread = Shape::rows_a_thread;
  const auto cut = [&] {
    grid.rows_a_chunk = grid.down * rows_a_thread;
    grid.chunks = (size.rows + grid.rows_a_chunk - 1) / grid.rows_a_chunk;
  };
  for (cut(); rows_a_thread > 1 && grid.strips * grid.chunks < least_blocks; cut()) {
    rows_a_thread /= 2;
  }
  return grid;
}

/// Launches on `stream`; returns what the launch reported.
template <class Element, class Form, bool Backward, bool Drop, int Width, class Shape>
cudaError_t launch_tiles(tile_arguments<Element> arguments, cudaStream_t stream) {
  constexpr std::int64_t most_along_y = 65535;
  const tile_grid grid = grid_of<Shape>(arguments.size, Width);
  arguments.chunks = grid.chunks;
  arguments.rows_a_chunk = grid.rows_a_chunk;
  const auto extent = [](std::int64_t blocks) { return static_cast<unsigned>(blocks); };
  const dim3 blocks(extent(grid.strips), extent(std::min(grid.chunks, most_along_y)),
                    extent((grid.chunks + most_along_y - 1) / most_along_y));
  const dim3 threads(extent(grid.across), extent(grid.down));
  tile_kernel<Element, Form, Backward, Drop, Width, Shape>
      <<<blocks, threads, 0, stream>>>(arguments);
  return cudaGetLastError();
}

/// May these pointers be read and written as 16-byte vectors?
template <class... Pointers>
bool all_vector_aligned(Pointers... pointers) {
  return ((reinterpret_cast<std::uintptr_t>(pointers) % 16 == 0) && ...);
}

/// A call of either direction; `grad_output` and `partials` are null in the forward one.
struct untyped_call {
  const void* grad_output;
  const void* input;
  const void* bias;
  void* output;
  void* partials;
  matrix_size size;
  dropout_rule rule;
  philox_source source;
  approximate form;
};

/// For what the wide kernel does not take; no target stands on its speed.
using narrow_shape = tile_shape<256, 32, 8, 2, 1>;

/// Columns of a thread: a 16-byte vector.
template <class Element>
constexpr int wide = vector_width<Element>;

/// Can a vector of columns be one thread's? Draws come in eights.
inline bool takes_vectors(const untyped_call& call) {
  const bool drawn_in_packs = call.rule.kind == draw::keep_all || call.rule.kind == draw::bits_16;
  return drawn_in_packs && call.size.columns % 8 == 0 &&
         call.size.rows * (call.size.columns / 4) <= most_packs &&
         all_vector_aligned(call.grad_output, call.input, call.bias, call.output);
}

/// Without a bias the matrix may have any number of columns: one row has the most chances to be a
/// multiple of 8 elements.
inline matrix_size best_size(const untyped_call& call) {
  if (call.bias != nullptr || call.partials != nullptr || call.size.columns % 8 == 0) {
    return call.size;
  }
  return {1, call.size.rows * call.size.columns};
}

template <class Call, class Element, class Form>
cudaError_t launch_form(const untyped_call& call, cudaStream_t stream) {
  using value = value_of<Element>;
  constexpr bool backward = Call::backward;
  using shape = Call::template shape<Element>;
  const tile_arguments<Element> arguments{static_cast<const Element*>(call.grad_output),
                                          static_cast<const Element*>(call.input),
                                          static_cast<const Element*>(call.bias),
                                          static_cast<Element*>(call.output),
                                          static_cast<value*>(call.partials),
                                          call.size,
                                          0,
                                          0,
                                          static_cast<value>(call.rule.scale),
                                          call.rule.threshold * 0x10001U,
                                          call.rule,
                                          call.source};
  if constexpr (sizeof(Element) < sizeof(double)) {
    if (takes_vectors(call)) {
      return call.rule.kind == draw::keep_all
                 ? launch_tiles<Element, Form, backward, false, wide<Element>, shape>(arguments,
                                                                                      stream)
                 : launch_tiles<Element, Form, backward, true, wide<Element>, shape>(arguments,
                                                                                     stream);
    }
  }
  return launch_tiles<Element, Form, backward, true, 1, narrow_shape>(arguments, stream);
}

template <class Call, class Element>
cudaError_t launch_element(const untyped_call& call, cudaStream_t stream) {
  return call.form == approximate::tanh ? launch_form<Call, Element, tanh_form>(call, stream)
                                        : launch_form<Call, Element, exact_form>(call, stream);
}

/// Launches on `stream`; returns what the launch reported.
template <class Call>
cudaError_t launch(untyped_call call, dtype type, cudaStream_t stream) {
  call.size = best_size(call);
  switch (type) {
    case dtype::fp64:
      return launch_element<Call, double>(call, stream);
    case dtype::fp32:
      return launch_element<Call, float>(call, stream);
    case dtype::fp16:
      return launch_element<Call, __half>(call, stream);
    case dtype::bf16:
      return launch_element<Call, __nv_bfloat16>(call, stream);
  }
  return cudaErrorInvalidValue;
}

constexpr std::size_t bytes_of(dtype type) {
  return type == dtype::fp64 ? 8 : type == dtype::fp32 ? 4 : 2;
}

/// All elements of a matrix to +0.
inline cudaError_t clear(void* output, matrix_size size, dtype type, cudaStream_t stream) {
  const auto count = static_cast<std::size_t>(size.rows * size.columns);
  return cudaMemsetAsync(output, 0, count * bytes_of(type), stream);
}

}  // namespace opscope::kernels::detail
