// SPDX-License-Identifier: Apache-2.0
// Launch shapes of bias_gelu_dropout against a copy of as many bytes: device microseconds of one
// call, and the ratio to the copy with its 95 % bootstrap interval. Every contender is a CUDA graph
// of 24 calls over rotating buffers that together are larger than four times the second-level
// cache; rounds go through all contenders in turn, so that drift hits all alike.
//
//   opscope-fused-shapes [--rows N] [--columns N] [--rounds N]
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
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
  char* partials;
  std::size_t matrix_bytes;
};

buffers allocate(matrix_size size, std::size_t element_bytes) {
  buffers result{};
  result.matrix_bytes = static_cast<std::size_t>(size.rows * size.columns) * element_bytes;
  const std::size_t count = std::max<std::size_t>(3, least_bytes / (2 * result.matrix_bytes) + 1);
  for (auto& slot : result.slots) {
    for (std::size_t k = 0; k < count; ++k) {
      void* pointer = nullptr;
      check(cudaMalloc(&pointer, result.matrix_bytes), "cudaMalloc");
      // 0x3F bytes: ordinary positive numbers in every element type.
      check(cudaMemset(pointer, 0x3F, result.matrix_bytes), "cudaMemset");
      slot.push_back(static_cast<char*>(pointer));
    }
  }
  void* pointer = nullptr;
  check(cudaMalloc(&pointer, static_cast<std::size_t>(size.columns) * element_bytes), "cudaMalloc");
  check(cudaMemset(pointer, 0x3F, static_cast<std::size_t>(size.columns) * element_bytes),
        "cudaMemset");
  result.bias = static_cast<char*>(pointer);
  // Enough for chunks of one row.
  check(cudaMalloc(&pointer, static_cast<std::size_t>(size.rows * size.columns) * sizeof(double)),
        "cudaMalloc");
  result.partials = static_cast<char*>(pointer);
  return result;
}

void release(buffers& data) {
  for (auto& slot : data.slots) {
    for (char* pointer : slot) check(cudaFree(pointer), "cudaFree");
  }
  check(cudaFree(data.bias), "cudaFree");
  check(cudaFree(data.partials), "cudaFree");
}

struct contender {
  std::string name;
  std::function<void(int call, cudaStream_t stream)> launch;
  cudaGraphExec_t graph = nullptr;
  std::vector<float> samples = {};
};

class experiment {
 public:
  experiment(matrix_size size, std::size_t element_bytes)
      : size_(size), data_(allocate(size, element_bytes)) {
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
  void add_tiles(const char* name) {
    const std::string label =
        std::string(name) + " " + std::to_string(Shape::threads) + "x" +
        std::to_string(Shape::most_across) + " rows " + std::to_string(Shape::rows_a_thread) + "/" +
        std::to_string(Shape::rows_in_flight) + " blocks " + std::to_string(Shape::blocks_each);
    add(label, [this](int call, cudaStream_t stream) {
      tile_arguments<Element> arguments{};
      arguments.grad_output = reinterpret_cast<const Element*>(slot(0, call));
      arguments.input = reinterpret_cast<const Element*>(slot(1, call));
      arguments.output = reinterpret_cast<Element*>(slot(2, call));
      arguments.bias = reinterpret_cast<const Element*>(data_.bias);
      arguments.partials = reinterpret_cast<detail::value_of<Element>*>(data_.partials);
      arguments.size = size_;
      arguments.rule = make_dropout_rule(0.1);
      arguments.source = {nullptr, nullptr, 42, 4, nullptr};
      check(detail::launch_tiles<Element, Form, Backward, true, 8, Shape>(arguments, stream),
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

  void report() const {
    for (const contender& one : contenders_) {
      std::vector<float> ratios;
      for (std::size_t k = 0; k < one.samples.size(); ++k) {
        ratios.push_back(one.samples[k] / contenders_.front().samples[k]);
      }
      std::mt19937 random(0);
      std::uniform_int_distribution<std::size_t> pick(0, ratios.size() - 1);
      std::vector<float> medians;
      for (int draw = 0; draw < 500; ++draw) {
        std::vector<float> drawn(ratios.size());
        for (float& ratio : drawn) ratio = ratios[pick(random)];
        medians.push_back(median(drawn));
      }
      std::sort(medians.begin(), medians.end());
      std::printf("%-44s %7.2f us  %.3f [%.3f, %.3f]\n", one.name.c_str(), median(one.samples),
                  median(ratios), medians[12], medians[487]);
    }
  }

 private:
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

/// The shapes that are compared for one kernel.
template <class Element, class Form, bool Backward>
void add_shapes(experiment& trial, const char* name) {
  trial.add_tiles<Element, Form, Backward, tile_shape<256, 32, 8, 1, 2>>(name);
  trial.add_tiles<Element, Form, Backward, tile_shape<256, 32, 8, 1, 3>>(name);
  trial.add_tiles<Element, Form, Backward, tile_shape<256, 32, 8, 2, 2>>(name);
  trial.add_tiles<Element, Form, Backward, tile_shape<256, 32, 16, 1, 3>>(name);
  trial.add_tiles<Element, Form, Backward, tile_shape<256, 32, 16, 2, 2>>(name);
  trial.add_tiles<Element, Form, Backward, tile_shape<256, 32, 16, 2, 3>>(name);
  trial.add_tiles<Element, Form, Backward, tile_shape<256, 256, 16, 2, 2>>(name);
  trial.add_tiles<Element, Form, Backward, tile_shape<128, 32, 16, 1, 6>>(name);
  trial.add_tiles<Element, Form, Backward, tile_shape<128, 128, 16, 2, 4>>(name);
  trial.add_tiles<Element, Form, Backward, tile_shape<512, 64, 16, 1, 1>>(name);
}

template <class Element>
void compare(const char* type, matrix_size size, int rounds) {
  std::printf("\n%s, %lld x %lld, p = 0.1\n", type, static_cast<long long>(size.rows),
              static_cast<long long>(size.columns));
  experiment trial(size, sizeof(Element));
  add_shapes<Element, exact_form, false>(trial, "forward none");
  add_shapes<Element, tanh_form, false>(trial, "forward tanh");
  add_shapes<Element, exact_form, true>(trial, "backward none");
  trial.run(rounds);
  trial.report();
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
  const auto rounds = static_cast<int>(option(count, words, "--rounds", 60));
  compare<__nv_bfloat16>("bfloat16", size, rounds);
  compare<float>("float32", size, rounds);
  return 0;
}
