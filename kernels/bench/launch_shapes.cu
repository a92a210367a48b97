// SPDX-License-Identifier: Apache-2.0
// Which launch shape suits which operator: the table behind the choices in gelu.cu.
//
// Each case is a row; its columns are launch shapes (vectors a thread x threads a block), each
// with the time of a copy of the same number of bytes divided by its own: 1.000 is the copy's
// speed. A sample is `calls` launches over `sets` buffer sets in turn, in a CUDA graph, or one by
// one where a call takes long enough to hide its launch (a copy of a GiB takes twice as long in a
// graph). The contenders of a case are sampled one after another, round by round; ratios are
// medians over the rounds. Large cases rotate through more than four times the L2 cache; "hot"
// cases stay in it.
//
//     opscope-launch-shapes [rounds]
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "gelu_functions.cuh"
#include "map_elements.cuh"

namespace {

namespace detail = opscope::kernels::detail;
using detail::launch_shape;

void check(cudaError_t status, const char* operation) {
  if (status != cudaSuccess) {
    throw std::runtime_error(std::string(operation) + ": " + cudaGetErrorString(status));
  }
}

/// A call with one of the buffer sets on a stream.
using call = std::function<void(int set, cudaStream_t stream)>;

struct workload {
  const char* name;
  std::int64_t count;
  int calls;
  int sets;
  bool as_graph = true;
};

/// Many calls, over the buffer sets in turn.
class batch {
 public:
  batch(call one, const workload& work, cudaStream_t stream) : one_(std::move(one)), work_(work) {
    check(cudaEventCreate(&start_), "create event");
    check(cudaEventCreate(&end_), "create event");
    if (!work.as_graph) return;
    cudaGraph_t graph = nullptr;
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "begin capture");
    launch(stream);
    check(cudaStreamEndCapture(stream, &graph), "end capture");
    check(cudaGraphInstantiate(&executable_, graph, 0), "instantiate");
    check(cudaGraphDestroy(graph), "destroy graph");
  }
  batch(const batch&) = delete;
  batch& operator=(const batch&) = delete;
  ~batch() {
    if (executable_ != nullptr) cudaGraphExecDestroy(executable_);
    cudaEventDestroy(start_);
    cudaEventDestroy(end_);
  }

  /// Milliseconds of one replay.
  float replay(cudaStream_t stream) {
    float milliseconds = 0;
    check(cudaEventRecord(start_, stream), "record");
    if (work_.as_graph) {
      check(cudaGraphLaunch(executable_, stream), "launch graph");
    } else {
      launch(stream);
    }
    check(cudaEventRecord(end_, stream), "record");
    check(cudaEventSynchronize(end_), "synchronize");
    check(cudaEventElapsedTime(&milliseconds, start_, end_), "elapsed time");
    return milliseconds;
  }

 private:
  void launch(cudaStream_t stream) const {
    for (int i = 0; i < work_.calls; ++i) one_(i % work_.sets, stream);
  }

  call one_;
  workload work_;
  cudaGraphExec_t executable_ = nullptr;
  cudaEvent_t start_ = nullptr;
  cudaEvent_t end_ = nullptr;
};

struct memory {
  char* data;
  std::size_t bytes;
};

template <class Element>
__global__ void fill_normal(Element* data, std::int64_t count) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += step) {
    // The sum of four uniform numbers, near enough to a normal distribution.
    unsigned state = static_cast<unsigned>(i) * 2654435761U + 12345U;
    float sum = -2.0F;
    for (int k = 0; k < 4; ++k) {
      state = state * 1664525U + 1013904223U;
      sum += static_cast<float>(state >> 8U) * 0x1p-24F;
    }
    data[i] = static_cast<Element>(sum * 1.7320508F);
  }
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

template <launch_shape Shape, class Function, class Element, int Inputs>
call shaped(memory space, std::int64_t count) {
  return [=](int set, cudaStream_t stream) {
    const std::size_t size = static_cast<std::size_t>(count) * sizeof(Element);
    char* const base = space.data + static_cast<std::size_t>(set) * (Inputs + 1) * size;
    detail::buffers<Element, Inputs> data{{}, reinterpret_cast<Element*>(base), count};
    for (int k = 0; k < Inputs; ++k) {
      data.inputs[k] = reinterpret_cast<const Element*>(base + (k + 1) * size);
    }
    check(detail::launch_vectors<Function, Shape>(data, stream), "launch");
  };
}

/// Moves as many bytes as `Inputs` inputs and one output: half of them read, half written.
call copied(memory space, std::size_t set_bytes) {
  return [=](int set, cudaStream_t stream) {
    char* const base = space.data + static_cast<std::size_t>(set) * set_bytes;
    check(cudaMemcpyAsync(base, base + set_bytes / 2, set_bytes / 2, cudaMemcpyDeviceToDevice,
                          stream),
          "copy");
  };
}

constexpr launch_shape shapes[] = {{1, 128}, {2, 128}, {2, 256}, {4, 128}, {4, 64}};

void print_shapes() {
  std::printf("%-21s %8s", "", "copy us");
  for (const launch_shape shape : shapes) {
    char name[32];
    std::snprintf(name, sizeof name, "%dx%d", shape.vectors_a_thread, shape.block_threads);
    std::printf(" %8s", name);
  }
  std::printf("\n");
}

template <class Function, class Element, int Inputs, std::size_t... Indices>
std::vector<call> contenders_of(memory space, std::int64_t count, std::size_t set_bytes,
                                std::index_sequence<Indices...>) {
  return {copied(space, set_bytes),
          shaped<shapes[Indices], Function, Element, Inputs>(space, count)...};
}

template <class Function, class Element, int Inputs>
void measure(const workload& work, memory space, int rounds, cudaStream_t stream) {
  const std::size_t set_bytes =
      static_cast<std::size_t>(work.count) * sizeof(Element) * (Inputs + 1);
  if (set_bytes * static_cast<std::size_t>(work.sets) > space.bytes) {
    throw std::runtime_error(std::string(work.name) + ": not enough memory");
  }
  fill_normal<<<1024, 256, 0, stream>>>(
      reinterpret_cast<Element*>(space.data),
      static_cast<std::int64_t>(set_bytes / sizeof(Element)) * work.sets);
  const std::vector<call> calls = contenders_of<Function, Element, Inputs>(
      space, work.count, set_bytes, std::make_index_sequence<std::size(shapes)>{});
  const std::size_t contenders = calls.size();
  std::vector<std::vector<double>> ratios(contenders);
  std::vector<double> copy_times;
  {
    std::vector<std::unique_ptr<batch>> batches;
    for (const call& one : calls) {
      batches.push_back(std::make_unique<batch>(one, work, stream));
    }
    for (int round = -2; round < rounds; ++round) {
      const double copy = batches[0]->replay(stream);
      if (round >= 0) copy_times.push_back(copy * 1e3 / work.calls);
      for (std::size_t c = 1; c < contenders; ++c) {
        const double time = batches[c]->replay(stream);
        if (round >= 0) ratios[c].push_back(copy / time);
      }
    }
  }
  std::printf("%-21s %8.2f", work.name, median(copy_times));
  for (std::size_t c = 1; c < contenders; ++c) std::printf(" %8.3f", median(ratios[c]));
  std::printf("\n");
}

template <class Form>
using forward = detail::gelu_forward_function<Form>;
template <class Form>
using backward = detail::gelu_backward_function<Form>;
using detail::exact_form;
using detail::tanh_form;

void run(int rounds) {
  constexpr std::int64_t matrix = std::int64_t{8192} * 4096;
  constexpr std::int64_t large = std::int64_t{1} << 28;
  memory space{nullptr, std::size_t{5} << 30U};
  check(cudaMalloc(reinterpret_cast<void**>(&space.data), space.bytes), "allocate");
  cudaStream_t stream = nullptr;
  check(cudaStreamCreate(&stream), "create stream");
  print_shapes();
  measure<forward<exact_form>, __nv_bfloat16, 1>({"exact bf16 2^25", matrix, 20, 8}, space, rounds,
                                                 stream);
  measure<forward<exact_form>, __half, 1>({"exact fp16 2^25", matrix, 20, 8}, space, rounds,
                                          stream);
  measure<forward<tanh_form>, __nv_bfloat16, 1>({"tanh bf16 2^25", matrix, 20, 8}, space, rounds,
                                                stream);
  measure<forward<tanh_form>, __half, 1>({"tanh fp16 2^25", matrix, 20, 8}, space, rounds, stream);
  measure<backward<exact_form>, __nv_bfloat16, 2>({"exact backward bf16", matrix, 20, 8}, space,
                                                  rounds, stream);
  measure<backward<tanh_form>, __nv_bfloat16, 2>({"tanh backward bf16", matrix, 20, 8}, space,
                                                 rounds, stream);
  measure<forward<exact_form>, float, 1>({"exact fp32 2^28", large, 10, 2, false}, space, rounds,
                                         stream);
  measure<forward<tanh_form>, float, 1>({"tanh fp32 2^28", large, 10, 2, false}, space, rounds,
                                        stream);
  measure<backward<exact_form>, float, 2>({"exact backward fp32", matrix, 20, 8}, space, rounds,
                                          stream);
  measure<backward<tanh_form>, float, 2>({"tanh backward fp32", matrix, 20, 8}, space, rounds,
                                         stream);
  for (const auto& [name, count] :
       {std::pair{"hot exact fp32 2^16", 1 << 16}, std::pair{"hot exact fp32 2^20", 1 << 20},
        std::pair{"hot exact fp32 2^22", 1 << 22}}) {
    measure<forward<exact_form>, float, 1>({name, count, 40, 1}, space, rounds, stream);
  }
  for (const auto& [name, count] :
       {std::pair{"hot exact bf16 2^16", 1 << 16}, std::pair{"hot exact bf16 2^20", 1 << 20},
        std::pair{"hot exact bf16 2^22", 1 << 22}}) {
    measure<forward<exact_form>, __nv_bfloat16, 1>({name, count, 40, 1}, space, rounds, stream);
  }
  check(cudaStreamDestroy(stream), "destroy stream");
  check(cudaFree(space.data), "free");
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(argc > 1 ? std::atoi(argv[1]) : 15);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "opscope-launch-shapes: %s\n", error.what());
    return 1;
  }
  return 0;
}
