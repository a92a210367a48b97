// SPDX-License-Identifier: Apache-2.0
// Applies a function of one element to whole buffers: 16-byte vectors where every pointer allows
// them, single elements otherwise. Each thread issues all its loads before the first use, so that
// enough bytes are in flight to fill the memory system.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>

#include "elements.cuh"

namespace opscope::kernels::detail {

/// How work is spread: 16-byte vectors that a thread handles, and threads of a block.
struct launch_shape {
  int vectors_a_thread;
  int block_threads;
};

// Blocks that a multiprocessor must have registers for: 1,536 threads, which is 40 registers each.
// fp64 is bound by its arithmetic and needs more.
template <class Element, int BlockThreads>
constexpr int resident_blocks = sizeof(Element) == 8 ? 1 : 1536 / BlockThreads;

// Work that hardly fills the multiprocessors is over soonest spread thin: up to 4 MiB a buffer take
// one vector a thread (measured: the "hot" rows of kernels/bench/launch_shapes.cu).
constexpr std::int64_t few_vectors = std::int64_t{1} << 18;
constexpr launch_shape few_vectors_shape = {1, 128};

/// Buffers of one call: `Inputs` sources and one destination of `count` elements each.
template <class Element, int Inputs>
struct buffers {
  const Element* inputs[Inputs];
  Element* output;
  std::int64_t count;
};

template <class Function, class Element, int Inputs>
__device__ __forceinline__ void map_one(const buffers<Element, Inputs>& data, std::int64_t i) {
  if constexpr (Inputs == 1) {
    data.output[i] = narrow<Element>(Function::template apply<Element>(widen(data.inputs[0][i])));
  } else {
    data.output[i] = narrow<Element>(
        Function::template apply<Element>(widen(data.inputs[0][i]), widen(data.inputs[1][i])));
  }
}

/// One vector of every input to one of the output.
template <class Function, class Element, int Inputs>
__device__ __forceinline__ vector<Element> map_one_vector(const vector<Element> (&in)[Inputs]) {
  vector<Element> out;
#pragma unroll
  for (int lane = 0; lane < vector_width<Element>; ++lane) {
    if constexpr (Inputs == 1) {
      out.lanes[lane] = narrow<Element>(Function::template apply<Element>(widen_lane(in[0], lane)));
    } else {
      out.lanes[lane] = narrow<Element>(
          Function::template apply<Element>(widen_lane(in[0], lane), widen_lane(in[1], lane)));
    }
  }
  return out;
}

/// Reads a thread's vectors of a tile that has `vectors`: the one at `place` and those
/// `BlockThreads` apart from it.
template <int BlockThreads, class Element, int Inputs, int VectorsAThread>
__device__ __forceinline__ void load_vectors(const buffers<Element, Inputs>& data,
                                             std::uint64_t place, int vectors,
                                             vector<Element> (&in)[VectorsAThread][Inputs]) {
#pragma unroll
  for (int r = 0; r < VectorsAThread; ++r) {
    if (static_cast<int>(threadIdx.x) + r * BlockThreads < vectors) {
#pragma unroll
      for (int k = 0; k < Inputs; ++k) {
        in[r][k] =
            reinterpret_cast<const vector<Element>*>(data.inputs[k])[place + r * BlockThreads];
      }
    }
  }
}

/// Writes the results of what load_vectors read. A thread asks once whether it has all its vectors:
/// within that branch the compiler interleaves their arithmetic, and it moves no load into it.
template <class Function, int BlockThreads, class Element, int Inputs, int VectorsAThread>
__device__ __forceinline__ void store_vectors(const buffers<Element, Inputs>& data,
                                              std::uint64_t place, int vectors,
                                              const vector<Element> (&in)[VectorsAThread][Inputs]) {
  auto* const to = reinterpret_cast<vector<Element>*>(data.output) + place;
  const int thread = static_cast<int>(threadIdx.x);
  if (thread + (VectorsAThread - 1) * BlockThreads < vectors) {
#pragma unroll
    for (int r = 0; r < VectorsAThread; ++r) to[r * BlockThreads] = map_one_vector<Function>(in[r]);
  } else {
#pragma unroll
    for (int r = 0; r < VectorsAThread - 1; ++r) {
      if (thread + r * BlockThreads < vectors)
        to[r * BlockThreads] = map_one_vector<Function>(in[r]);
    }
  }
}

/// What the last block of a grid has to do: whole vectors, then single elements.
struct remainder {
  int vectors;
  int elements;
};

// nvcc cannot take a launch_shape as template argument of a kernel.
template <class Function, int VectorsAThread, int BlockThreads, class Element, int Inputs>
__global__ void __launch_bounds__(BlockThreads, resident_blocks<Element, BlockThreads>)
    map_vectors(const buffers<Element, Inputs> data, const remainder last) {
  constexpr int block_vectors = VectorsAThread * BlockThreads;
  const bool is_last = blockIdx.x == gridDim.x - 1;
  const int vectors = is_last ? last.vectors : block_vectors;
  const int thread = static_cast<int>(threadIdx.x);
  const std::uint64_t place = std::uint64_t{blockIdx.x} * block_vectors + threadIdx.x;
  vector<Element> in[VectorsAThread][Inputs];
  load_vectors<BlockThreads>(data, place, vectors, in);
  store_vectors<Function, BlockThreads>(data, place, vectors, in);
  if (is_last && thread < last.elements) {
    map_one<Function>(data, data.count - last.elements + thread);
  }
}

constexpr int scalars_a_thread = 4;
constexpr int scalar_threads = 256;

template <class Function, class Element, int Inputs>
__global__ void __launch_bounds__(scalar_threads) map_scalars(buffers<Element, Inputs> data) {
  const std::int64_t first =
      static_cast<std::int64_t>(blockIdx.x) * (scalar_threads * scalars_a_thread) + threadIdx.x;
#pragma unroll
  for (int r = 0; r < scalars_a_thread; ++r) {
    const std::int64_t i = first + r * scalar_threads;
    if (i < data.count) map_one<Function>(data, i);
  }
}

inline bool vector_aligned(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer) % 16 == 0;
}

inline unsigned blocks_for(std::int64_t items, std::int64_t per_block) {
  return static_cast<unsigned>((items + per_block - 1) / per_block);
}

/// Launches on `stream` in a given shape; every pointer must be 16-byte aligned, `count` positive.
/// Returns what the launch reported.
template <class Function, launch_shape Shape, class Element, int Inputs>
cudaError_t launch_vectors(const buffers<Element, Inputs>& data, cudaStream_t stream) {
  constexpr int block_vectors = Shape.vectors_a_thread * Shape.block_threads;
  const std::int64_t vectors = data.count / vector_width<Element>;
  // One block even for less than a vector: its threads take the odd elements.
  const unsigned grid = blocks_for(std::max<std::int64_t>(vectors, 1), block_vectors);
  const std::int64_t before = static_cast<std::int64_t>(grid - 1) * block_vectors;
  const remainder last = {static_cast<int>(vectors - before),
                          static_cast<int>(data.count % vector_width<Element>)};
  map_vectors<Function, Shape.vectors_a_thread, Shape.block_threads>
      <<<grid, Shape.block_threads, 0, stream>>>(data, last);
  return cudaGetLastError();
}

/// Launches on `stream`, large buffers in `Shape`; nothing for an empty buffer. Returns what the
/// launch reported. `Function::apply<Element>` maps a value of each input, widened to the type of
/// the arithmetic, to the value that is rounded to the output.
template <class Function, launch_shape Shape, class Element, int Inputs>
cudaError_t map_elements(const buffers<Element, Inputs>& data, cudaStream_t stream) {
  if (data.count == 0) return cudaSuccess;
  bool aligned = vector_aligned(data.output);
  for (const Element* input : data.inputs) aligned = aligned && vector_aligned(input);
  if (!aligned) {
    const unsigned grid = blocks_for(data.count, scalar_threads * scalars_a_thread);
    map_scalars<Function><<<grid, scalar_threads, 0, stream>>>(data);
    return cudaGetLastError();
  }
  if (data.count / vector_width<Element> <= few_vectors) {
    return launch_vectors<Function, few_vectors_shape>(data, stream);
  }
  return launch_vectors<Function, Shape>(data, stream);
}

}  // namespace opscope::kernels::detail
