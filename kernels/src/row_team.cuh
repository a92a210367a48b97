// SPDX-License-Identifier: Apache-2.0
// A team of threads works on one row: what the kernels over rows share. A team is a warp or a whole
// block, so its barrier is none or the block's.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdint>

#include "elements.cuh"
#include "map_elements.cuh"

namespace opscope::kernels::detail {

constexpr int warp_threads = 32;
constexpr int max_team_warps = 32;

/// The type of statistics and sums.
template <class Element>
using value_of = decltype(widen(Element{}));

/// `Width` elements from an address that is a multiple of their size together.
template <int Width, class Element>
__device__ __forceinline__ void load(const Element* place, Element (&elements)[Width]) {
  if constexpr (Width == 1) {
    elements[0] = *place;
  } else {
    static_assert(Width == vector_width<Element>);
    const vector<Element> whole = *reinterpret_cast<const vector<Element>*>(place);
#pragma unroll
    for (int i = 0; i < Width; ++i) elements[i] = whole.lanes[i];
  }
}

/// As load.
template <int Width, class Element>
__device__ __forceinline__ void store(Element* place, const Element (&elements)[Width]) {
  if constexpr (Width == 1) {
    *place = elements[0];
  } else {
    constexpr int step = vector_width<Element>;
#pragma unroll
    for (int first = 0; first < Width; first += step) {
      vector<Element> whole;
#pragma unroll
      for (int i = 0; i < step; ++i) whole.lanes[i] = elements[first + i];
      *reinterpret_cast<vector<Element>*>(place + first) = whole;
    }
  }
}

/// Sums over each `Lanes` neighbours of a warp; all of them get the same bits.
template <int Lanes = warp_threads, class Value>
__device__ __forceinline__ Value warp_sum(Value value) {
#pragma unroll
  for (int offset = Lanes / 2; offset > 0; offset /= 2) {
    value += __shfl_xor_sync(0xFFFFFFFFU, value, offset);
  }
  return value;
}

/// Sums over the team; every thread gets the same bits. `partial` is shared memory for `Count`
/// values of every warp. All threads have read it when the team's next call, with other memory,
/// returns: two pieces of memory, used in turn, need no second barrier.
template <class Value, int Count>
__device__ __forceinline__ void team_sum(Value (&values)[Count], Value* partial, int warps) {
#pragma unroll
  for (int k = 0; k < Count; ++k) values[k] = warp_sum(values[k]);
  if (warps == 1) return;
  const int lane = static_cast<int>(threadIdx.x) % warp_threads;
  const int warp = static_cast<int>(threadIdx.x) / warp_threads;
  if (lane == 0) {
#pragma unroll
    for (int k = 0; k < Count; ++k) partial[warp * Count + k] = values[k];
  }
  __syncthreads();
#pragma unroll
  for (int k = 0; k < Count; ++k) {
    values[k] = warp_sum(lane < warps ? partial[lane * Count + k] : Value{0});
  }
}

/// A row, or a part of one, of weights or biases, stored as `Element` or as fp32.
template <class Element>
struct parameters {
  const void* data;
  bool as_elements;  ///< stored as `Element`, not as fp32

  /// `Width` parameters from index `first` on, a multiple of `Width`; `missing` without data.
  template <int Width>
  __device__ __forceinline__ void load(std::int64_t first, value_of<Element> missing,
                                       value_of<Element> (&values)[Width]) const {
    if (data == nullptr) {
#pragma unroll
      for (int i = 0; i < Width; ++i) values[i] = missing;
    } else if (as_elements) {
      load_as<Element>(first, values);
    } else {
      load_as<value_of<Element>>(first, values);
    }
  }

 private:
  template <class Stored, int Width>
  __device__ __forceinline__ void load_as(std::int64_t first,
                                          value_of<Element> (&values)[Width]) const {
    constexpr int step = Width < vector_width<Stored> ? Width : vector_width<Stored>;
#pragma unroll
    for (int k = 0; k < Width; k += step) {
      Stored part[step];
      detail::load<step>(static_cast<const Stored*>(data) + first + k, part);
#pragma unroll
      for (int i = 0; i < step; ++i) values[k + i] = widen(part[i]);
    }
  }
};

/// Copies 16 bytes to shared memory past the first-level cache, which is left to the parameters.
__device__ __forceinline__ void copy_async(std::uint32_t shared, const void* global) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared), "l"(global) : "memory");
}

/// A team's rows on their way to shared memory. A thread copies what it will itself read, so no
/// barrier is needed: only its own copies must have arrived.
template <class Element, int Streams, class Shape>
class staged_rows {
 public:
  using vector_type = vector<Element>;

  __device__ __forceinline__ staged_rows(void* shared, int vectors)
      : lane_(static_cast<int>(threadIdx.x) % Shape::team_threads), vectors_(vectors) {
    const int team = static_cast<int>(threadIdx.x) / Shape::team_threads;
    own_ = static_cast<vector_type*>(shared) + team * Shape::stages * stage_vectors + lane_;
    own_address_ = static_cast<std::uint32_t>(__cvta_generic_to_shared(own_));
    // Else each copy would compute it anew.
    asm volatile("" : "+r"(own_address_));
  }

  /// The index in its row of the thread's vector `r`.
  __device__ __forceinline__ int place(int r) const { return lane_ + r * Shape::team_threads; }
  __device__ __forceinline__ bool active(int r) const { return place(r) < vectors_; }

  /// The vectors of one stage, for `at`.
  __device__ __forceinline__ const vector_type* stage(int index) const {
    return own_ + index * stage_vectors;
  }
  static __device__ __forceinline__ const vector_type& at(const vector_type* stage, int stream,
                                                          int r) {
    return stage[slot(stream, r)];
  }

  /// Starts the copies of one row; of none, for a row beyond the last. A null stream is left out.
  __device__ __forceinline__ void fetch(const Element* const (&streams)[Streams], std::int64_t row,
                                        std::int64_t rows, int stage) const {
    if (row < rows) {
      const std::uint32_t address = own_address_ + stage * stage_vectors * vector_bytes;
      const std::int64_t first = row * vectors_ + lane_;
#pragma unroll
      for (int k = 0; k < Streams; ++k) {
        if (streams[k] == nullptr) continue;
        const auto* const source = reinterpret_cast<const vector_type*>(streams[k]) + first;
#pragma unroll
        for (int r = 0; r < Shape::vectors; ++r) {
          if (active(r)) {
            copy_async(address + slot(k, r) * vector_bytes, source + r * Shape::team_threads);
          }
        }
      }
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
  }

  /// Waits until the oldest row that was fetched has arrived.
  __device__ __forceinline__ void wait() const {
    asm volatile("cp.async.wait_group %0;" ::"n"(Shape::stages - 1) : "memory");
  }

 private:
  static constexpr int stage_vectors = Streams * Shape::vectors * Shape::team_threads;
  static constexpr int vector_bytes = sizeof(vector_type);

  static __device__ __forceinline__ constexpr int slot(int stream, int r) {
    return (stream * Shape::vectors + r) * Shape::team_threads;
  }

  vector_type* own_;
  std::uint32_t own_address_;  ///< of the same in shared memory
  int lane_;
  int vectors_;
};

/// Lets the blocks of the next kernel start, if that one's launch allows it.
__device__ __forceinline__ void let_next_start() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/// Waits until the kernels before have finished and all they stored is seen.
__device__ __forceinline__ void wait_for_previous() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/// Where a kernel runs. One that is `early` may start before its predecessor has finished: it calls
/// wait_for_previous before all else.
struct launch_place {
  dim3 grid;
  dim3 block;
  cudaStream_t stream;
  bool early;                ///< from compute capability 9.0 on
  std::size_t shared_bytes;  ///< dynamic
};

template <class Data>
cudaError_t launch_in(const launch_place& place, void (*kernel)(Data), const Data& data) {
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = place.grid;
  config.blockDim = place.block;
  config.stream = place.stream;
  config.dynamicSmemBytes = place.shared_bytes;
  config.attrs = &early;
  config.numAttrs = place.early ? 1 : 0;
  const cudaError_t status = cudaLaunchKernelEx(&config, kernel, data);
  return status == cudaSuccess ? cudaGetLastError() : status;
}

/// What a launch needs to know of the current device.
struct device_limits {
  int processors;
  int major;         ///< of the compute capability
  int shared_bytes;  ///< of a block, at most
};

inline cudaError_t ask_device(device_limits& limits) {
  int device = 0;
  cudaError_t status = cudaGetDevice(&device);
  if (status != cudaSuccess) return status;
  status = cudaDeviceGetAttribute(&limits.processors, cudaDevAttrMultiProcessorCount, device);
  if (status != cudaSuccess) return status;
  status = cudaDeviceGetAttribute(&limits.major, cudaDevAttrComputeCapabilityMajor, device);
  if (status != cudaSuccess) return status;
  return cudaDeviceGetAttribute(&limits.shared_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin,
                                device);
}

constexpr std::size_t own_bytes = 4096;  ///< shared memory of the kernels' own, at most

/// Lets `Kernel` have `bytes` of dynamic shared memory on the current device, and its own.
template <auto Kernel>
cudaError_t allow_shared_memory(std::size_t bytes) {
  constexpr std::size_t always_allowed = (48 << 10) - own_bytes;
  if (bytes <= always_allowed) return cudaSuccess;
  static std::atomic<std::uint64_t> allowed{
      0};  // one bit a device: the call costs as a launch does
  int device = 0;
  if (const cudaError_t status = cudaGetDevice(&device); status != cudaSuccess) return status;
  const std::uint64_t bit = device < 64 ? std::uint64_t{1} << static_cast<unsigned>(device) : 0;
  if ((allowed.load(std::memory_order_relaxed) & bit) != 0) return cudaSuccess;
  const cudaError_t status = cudaFuncSetAttribute(
      Kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
  if (status == cudaSuccess) allowed.fetch_or(bit, std::memory_order_relaxed);
  return status;
}

}  // namespace opscope::kernels::detail
