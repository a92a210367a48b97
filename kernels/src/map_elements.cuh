// SPDX-License-Identifier: Apache-2.0
// Applies a function of one element to whole buffers: 16-byte vectors where every pointer allows
// them, single elements otherwise. Each thread issues all its loads before the first use, so that
// enough bytes are in flight to fill the memory system.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace opscope::kernels::detail {

/// How a function's work is spread: 16-byte vectors that a thread handles, and threads of a block.
/// Every function names one for each element type: `Function::template shape<Element>`.
struct launch_shape {
  int vectors_a_thread;
  int block_threads;
};

/// Buffers of one call: `Inputs` sources and one destination of `count` elements each.
template <class Element, int Inputs>
struct buffers {
  const Element* inputs[Inputs];
  Element* output;
  std::int64_t count;
};

template <class Element>
constexpr int vector_width = 16 / static_cast<int>(sizeof(Element));

template <class Element>
struct alignas(16) vector {
  Element lanes[vector_width<Element>];
};

template <class Function, class Element, int Inputs>
__device__ __forceinline__ void map_one(const buffers<Element, Inputs>& data, std::int64_t i) {
  if constexpr (Inputs == 1) {
    data.output[i] = Function::apply(data.inputs[0][i]);
  } else {
    data.output[i] = Function::apply(data.inputs[0][i], data.inputs[1][i]);
  }
}

template <class Function, class Element, int Inputs>
__global__ void __launch_bounds__(Function::template shape<Element>.block_threads)
    map_vectors(buffers<Element, Inputs> data) {
  using vector_type = vector<Element>;
  constexpr int width = vector_width<Element>;
  constexpr int block_threads = Function::template shape<Element>.block_threads;
  constexpr int repeat = Function::template shape<Element>.vectors_a_thread;
  const std::int64_t vectors = data.count / width;
  const std::int64_t first =
      static_cast<std::int64_t>(blockIdx.x) * (block_threads * repeat) + threadIdx.x;
  vector_type in[repeat][Inputs];
#pragma unroll
  for (int r = 0; r < repeat; ++r) {
    const std::int64_t v = first + r * block_threads;
    if (v < vectors) {
#pragma unroll
      for (int k = 0; k < Inputs; ++k) {
        in[r][k] = reinterpret_cast<const vector_type*>(data.inputs[k])[v];
      }
    }
  }
#pragma unroll
  for (int r = 0; r < repeat; ++r) {
    const std::int64_t v = first + r * block_threads;
    if (v < vectors) {
      vector_type out;
#pragma unroll
      for (int lane = 0; lane < width; ++lane) {
        if constexpr (Inputs == 1) {
          out.lanes[lane] = Function::apply(in[r][0].lanes[lane]);
        } else {
          out.lanes[lane] = Function::apply(in[r][0].lanes[lane], in[r][1].lanes[lane]);
        }
      }
      reinterpret_cast<vector_type*>(data.output)[v] = out;
    } else if (v == vectors) {
      // The grid covers one vector more than there is: its thread takes the odd elements.
#pragma unroll 1
      for (std::int64_t i = vectors * width; i < data.count; ++i) map_one<Function>(data, i);
    }
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

/// Launches on `stream`; nothing for an empty buffer. Returns what the launch reported.
template <class Function, class Element, int Inputs>
cudaError_t map_elements(const buffers<Element, Inputs>& data, cudaStream_t stream) {
  if (data.count == 0) return cudaSuccess;
  bool aligned = vector_aligned(data.output);
  for (const Element* input : data.inputs) aligned = aligned && vector_aligned(input);
  const auto blocks = [](std::int64_t items, std::int64_t per_block) {
    return static_cast<unsigned>((items + per_block - 1) / per_block);
  };
  if (aligned) {
    constexpr int width = vector_width<Element>;
    const std::int64_t vectors = (data.count + width - 1) / width;
    constexpr launch_shape shape = Function::template shape<Element>;
    const unsigned grid = blocks(vectors, shape.vectors_a_thread * shape.block_threads);
    map_vectors<Function><<<grid, shape.block_threads, 0, stream>>>(data);
  } else {
    const unsigned grid = blocks(data.count, scalar_threads * scalars_a_thread);
    map_scalars<Function><<<grid, scalar_threads, 0, stream>>>(data);
  }
  return cudaGetLastError();
}

}  // namespace opscope::kernels::detail
