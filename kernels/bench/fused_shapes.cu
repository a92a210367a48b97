// SPDX-License-Identifier: Apache-2.0
// Launch shapes of bias_gelu_dropout against a copy of as many bytes: device microseconds of one
// call, and the ratio to the copy with its 95 % bootstrap interval. Every contender is a CUDA graph
// of 24 calls over rotating buffers that together are larger than four times the second-level
// cache; rounds go through all contenders in turn, so that drift hits all alike.
//
// A table has a line for each shape and a column for each kernel, in which ! stands where a result
// is not that of the kernel which takes one element at a time, bit for bit. The last line
// is the library's backward call, its sum of the bias gradient included.
//
//   opscope-fused-shapes [--rows N] [--columns N] [--rounds N]
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <opscope/kernels/bias_gelu_dropout.hpp>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "bias_gelu_dropout_launch.cuh"

namespace {

using namespace opscope::kernels;
using detail::exact_form;
using detail::tanh_form;
using detail::tile_arguments;
using detail::tile_shape;

constexpr int calls_a_graph = 24;
constexpr std::size_t least_bytes = std::size_t{512} << 20U;

void check(cudaError_t status, const char* operation) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", operation, cudaGetErrorString(status));
  std::exit(1);
}

/// Buffers that calls take in turn: gradient, input and output of one matrix each.
struct buffers {
  std::vector<char*> slots[3];
  char* bias;
  char* grad_bias;
  char* partials;
  unsigned* flag;
  std::size_t matrix_bytes;
};

/// Elements between -4 and 4, other ones everywhere.
template <class Element>
__global__ void fill(char* buffer, std::size_t count) {
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t k = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; k < count; k += step) {
    const auto mixed = static_cast<std::uint32_t>(k) * 2654435761U;
    const float value = static_cast<float>(mixed >> 8U) * 0x1p-21F - 4.0F;
    reinterpret_cast<Element*>(buffer)[k] = detail::narrow<Element>(value);
  }
}

/// Sets the flag where two buffers differ.
__global__ void compare_words(const char* first, const char* second, std::size_t count,
                              unsigned* flag) {
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t k = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; k < count; k += step) {
    if (reinterpret_cast<const unsigned*>(first)[k] != reinterpret_cast<const unsigned*>(second)[k])
      *flag = 1;
  }
}

char* allocate_bytes(std::size_t bytes) {
  void* pointer = nullptr;
  check(cudaMalloc(&pointer, bytes), "cudaMalloc");
  return static_cast<char*>(pointer);
}

template <class Element>
buffers allocate(matrix_size size) {
  constexpr std::size_t element_bytes = sizeof(Element);
  buffers result{};
  result.matrix_bytes = static_cast<std::size_t>(size.rows * size.columns) * element_bytes;
  const std::size_t count = std::max<std::size_t>(3, least_bytes / (2 * result.matrix_bytes) + 1);
  for (auto& slot : result.slots) {
    for (std::size_t k = 0; k < count; ++k) {
      slot.push_back(allocate_bytes(result.matrix_bytes));
      fill<Element><<<1024, 256>>>(slot.back(), result.matrix_bytes / element_bytes);
    }
  }
  const auto columns = static_cast<std::size_t>(size.columns);
  result.bias = allocate_bytes(columns * element_bytes);
  fill<Element><<<64, 256>>>(result.bias, columns);
  result.grad_bias = allocate_bytes(columns * element_bytes);
  // Enough for chunks of one row.
  result.partials = allocate_bytes(static_cast<std::size_t>(size.rows) * columns * sizeof(float));
  result.flag = reinterpret_cast<unsigned*>(allocate_bytes(sizeof(unsigned)));
  return result;
}

void release(buffers& data) {
  for (auto& slot : data.slots) {
    for (char* pointer : slot) check(cudaFree(pointer), "cudaFree");
  }
  check(cudaFree(data.bias), "cudaFree");
  check(cudaFree(data.grad_bias), "cudaFree");
  check(cudaFree(data.flag), "cudaFree");
  check(cudaFree(data.partials), "cudaFree");
}

struct contender {
  std::string name;
  std::function<void(int call, cudaStream_t stream)> launch;
  cudaGraphExec_t graph = nullptr;
  std::vector<float> samples = {};
  bool wrong = false;
};

class experiment {
 public:
  experiment(matrix_size size, const buffers& data) : size_(size), data_(data) {
    add("copy", [this](int call, cudaStream_t stream) {
      check(cudaMemcpyAsync(slot(2, call), slot(1, call), data_.matrix_bytes,
                            cudaMemcpyDeviceToDevice, stream),
            "cudaMemcpyAsync");
    });
  }
  experiment(const experiment&) = delete;
  experiment& operator=(const experiment&) = delete;
  ~experiment() {
    for (contender& one : contenders_) check(cudaGraphExecDestroy(one.graph), "destroy");
    release(data_);
  }

  template <class Element, class Form, bool Backward, class Shape>
  void add_tiles() {
    add(Backward ? "backward" : "forward", [this](int call, cudaStream_t stream) {
      launch<Element, Form, Backward, Shape, detail::wide<Element>>(slot(2, call), call, stream);
    });
    contenders_.back().wrong = differs<Element, Form, Backward, Shape>();
  }

  /// The library's backward call, its own shape and sum.
  template <class Element>
  void add_library_backward(dtype type, approximate form) {
    add("library backward", [this, type, form](int call, cudaStream_t stream) {
      check(bias_gelu_dropout_backward(slot(0, call), slot(1, call), data_.bias, slot(2, call),
                                       data_.grad_bias, data_.partials, size_,
                                       make_dropout_rule(0.1), source, type, form, stream),
            "launch");
    });
  }

  void run(int rounds) {
    cudaStream_t stream = nullptr;
    check(cudaStreamCreate(&stream), "cudaStreamCreate");
    for (contender& one : contenders_) capture(one, stream);
    cudaEvent_t ends[2] = {};
    for (cudaEvent_t& event : ends) check(cudaEventCreate(&event), "cudaEventCreate");
    for (int round = -2; round < rounds; ++round) {
      for (contender& one : contenders_) {
        check(cudaEventRecord(ends[0], stream), "cudaEventRecord");
        check(cudaGraphLaunch(one.graph, stream), "cudaGraphLaunch");
        check(cudaEventRecord(ends[1], stream), "cudaEventRecord");
        check(cudaEventSynchronize(ends[1]), "cudaEventSynchronize");
        float milliseconds = 0.0F;
        check(cudaEventElapsedTime(&milliseconds, ends[0], ends[1]), "cudaEventElapsedTime");
        if (round >= 0) one.samples.push_back(milliseconds * 1e3F / calls_a_graph);
      }
    }
    for (cudaEvent_t event : ends) check(cudaEventDestroy(event), "cudaEventDestroy");
    check(cudaStreamDestroy(stream), "cudaStreamDestroy");
  }

  /// One line: microseconds and the ratio to the copy, half its 95 % interval after ±.
  void report(const char* name, std::size_t first, std::size_t count) const {
    std::printf("%-28s", name);
    for (std::size_t k = first; k < first + count; ++k) {
      const contender& one = contenders_[k];
      std::vector<float> ratios;
      for (std::size_t j = 0; j < one.samples.size(); ++j) {
        ratios.push_back(one.samples[j] / contenders_.front().samples[j]);
      }
      std::mt19937 random(0);
      std::uniform_int_distribution<std::size_t> pick(0, ratios.size() - 1);
      std::vector<float> medians;
      for (int draw = 0; draw < 200; ++draw) {
        std::vector<float> drawn(ratios.size());
        for (float& ratio : drawn) ratio = ratios[pick(random)];
        medians.push_back(median(drawn));
      }
      std::sort(medians.begin(), medians.end());
      std::printf(" %6.1f %.3f±%.3f%c", median(one.samples), median(ratios),
                  (medians[194] - medians[5]) / 2, one.wrong ? '!' : ' ');
    }
    std::printf("\n");
  }

 private:
  static constexpr philox_source source{nullptr, nullptr, 42, 4, nullptr};

  template <class Element, class Form, bool Backward, class Shape, int Width>
  void launch(char* output, int call, cudaStream_t stream) const {
    tile_arguments<Element> arguments{};
    arguments.grad_output = reinterpret_cast<const Element*>(slot(0, call));
    arguments.input = reinterpret_cast<const Element*>(slot(1, call));
    arguments.output = reinterpret_cast<Element*>(output);
    arguments.bias = reinterpret_cast<const Element*>(data_.bias);
    arguments.partials = reinterpret_cast<detail::value_of<Element>*>(data_.partials);
    arguments.size = size_;
    arguments.rule = make_dropout_rule(0.1);
    arguments.scale = static_cast<detail::value_of<Element>>(arguments.rule.scale);
    arguments.thresholds = arguments.rule.threshold * 0x10001U;
    arguments.source = source;
    check(detail::launch_tiles<Element, Form, Backward, true, Width, Shape>(arguments, stream),
          "launch");
  }

  /// Does a shape give other bits than single elements do?
  template <class Element, class Form, bool Backward, class Shape>
  bool differs() const {
    launch<Element, Form, Backward, Shape, detail::wide<Element>>(slot(2, 0), 0, nullptr);
    launch<Element, Form, Backward, detail::narrow_shape, 1>(slot(2, 1), 0, nullptr);
    check(cudaMemsetAsync(data_.flag, 0, sizeof(unsigned), nullptr), "cudaMemsetAsync");
    compare_words<<<1024, 256>>>(slot(2, 0), slot(2, 1), data_.matrix_bytes / 4, data_.flag);
    unsigned flag = 0;
    check(cudaMemcpy(&flag, data_.flag, sizeof flag, cudaMemcpyDeviceToHost), "compare");
    return flag != 0;
  }

  void add(std::string name, std::function<void(int, cudaStream_t)> launch) {
    contenders_.push_back({std::move(name), std::move(launch)});
  }

  char* slot(int which, int call) const {
    const auto& pointers = data_.slots[which];
    return pointers[static_cast<std::size_t>(call) % pointers.size()];
  }

  static void capture(contender& one, cudaStream_t stream) {
    cudaGraph_t graph = nullptr;
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "begin capture");
    for (int call = 0; call < calls_a_graph; ++call) one.launch(call, stream);
    check(cudaStreamEndCapture(stream, &graph), "end capture");
    check(cudaGraphInstantiate(&one.graph, graph, 0), "instantiate");
    check(cudaGraphDestroy(graph), "cudaGraphDestroy");
  }

  static float median(std::vector<float> values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
  }

  matrix_size size_;
  buffers data_;
  std::vector<contender> contenders_;
};

template <int Threads, int MostAcross, int RowsAThread, int RowsInFlight, int BlocksEach,
          bool Prefetches>
std::string name_of(
    tile_shape<Threads, MostAcross, RowsAThread, RowsInFlight, BlocksEach, Prefetches>) {
  const auto text = [](int number) { return std::to_string(number); };
  return text(Threads) + "," + text(MostAcross) + "," + text(RowsAThread) + "," +
         text(RowsInFlight) + "," + text(BlocksEach) + (Prefetches ? ",true" : "");
}

constexpr std::size_t columns_a_line = 4;

/// Adds the shapes that are compared, each for both forms and directions.
template <class Element, class... Shapes>
void compare(const char* type, dtype element, matrix_size size, int rounds) {
  std::printf("\n%s %lld x %lld, p = 0.1; us and ratio to the copy\n", type,
              static_cast<long long>(size.rows), static_cast<long long>(size.columns));
  std::printf(
      "%-28s forward none          forward tanh         backward none        backward tanh\n",
      "tile_shape");
  experiment trial(size, allocate<Element>(size));
  const auto add = [&]<class Shape>(Shape) {
    trial.add_tiles<Element, exact_form, false, Shape>();
    trial.add_tiles<Element, tanh_form, false, Shape>();
    trial.add_tiles<Element, exact_form, true, Shape>();
    trial.add_tiles<Element, tanh_form, true, Shape>();
  };
  (add(Shapes{}), ...);
  trial.add_library_backward<Element>(element, approximate::none);
  trial.add_library_backward<Element>(element, approximate::tanh);
  trial.run(rounds);
  trial.report("copy", 0, 1);
  std::size_t first = 1;
  const auto report = [&](const std::string& name) {
    trial.report(name.c_str(), first, columns_a_line);
    first += columns_a_line;
  };
  (report(name_of(Shapes{})), ...);
  trial.report("library backward none, tanh", first, 2);
}

std::int64_t option(int count, char** words, std::string_view name, std::int64_t otherwise) {
  for (int k = 1; k + 1 < count; ++k) {
    if (words[k] == name) return std::strtoll(words[k + 1], nullptr, 10);
  }
  return otherwise;
}

}  // namespace

int main(int count, char** words) {
  const matrix_size size{option(count, words, "--rows", 8192),
                         option(count, words, "--columns", 4096)};
  const auto rounds = static_cast<int>(option(count, words, "--rounds", 30));
  // Where rows are no power of two, they make whole waves of blocks on 132 multiprocessors.
  compare<__nv_bfloat16, tile_shape<256, 32, 16, 2, 3>, tile_shape<256, 32, 16, 2, 4>,
          tile_shape<128, 32, 16, 2, 8>, tile_shape<256, 32, 8, 2, 4>,
          tile_shape<256, 32, 8, 2, 4, true>, tile_shape<128, 32, 8, 2, 8, true>,
          tile_shape<256, 32, 32, 2, 4>, tile_shape<512, 32, 16, 2, 2>,
          tile_shape<256, 32, 13, 1, 5>, tile_shape<128, 128, 4, 4, 8>,
          tile_shape<256, 32, 16, 1, 4, true>, tile_shape<256, 32, 14, 2, 3, true>,
          tile_shape<128, 32, 16, 2, 8, true>, tile_shape<128, 32, 32, 2, 8, true>,
          tile_shape<256, 32, 16, 2, 4, true>, tile_shape<256, 32, 32, 2, 4, true>,
          tile_shape<512, 64, 16, 2, 2, true>>("bfloat16", dtype::bf16, size, rounds);
  compare<float, tile_shape<256, 64, 16, 2, 4>, tile_shape<256, 64, 10, 2, 5>,
          tile_shape<128, 32, 16, 2, 8>, tile_shape<256, 64, 16, 4, 4>,
          tile_shape<128, 128, 4, 4, 8>, tile_shape<256, 64, 14, 2, 3, true>,
          tile_shape<256, 64, 16, 2, 4, true>, tile_shape<256, 64, 32, 2, 4, true>,
          tile_shape<256, 32, 16, 2, 4, true>, tile_shape<256, 128, 16, 2, 4, true>,
          tile_shape<128, 64, 16, 2, 8, true>, tile_shape<512, 64, 16, 2, 2, true>>(
      "float32", dtype::fp32, size, rounds);
  return 0;
}
