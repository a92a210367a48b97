// SPDX-License-Identifier: Apache-2.0
//
// Device time by CUDA events. A small kernel is over before the host has enqueued the next one, so
// what stands between two events would be the host's pace: a spinning kernel goes first and holds
// the stream until everything is enqueued.
#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAEvent.h>
#include <ATen/cuda/CUDAGraph.h>
#include <ATen/cuda/Sleep.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/util/Exception.h>

#include <cmath>
#include <utility>

#include "compare/timing_device.hpp"

namespace opscope::comparison {
namespace {

using std::chrono::nanoseconds;

/// Clock cycles of one nanosecond; a GPU that runs slower spins longer, which does no harm.
constexpr std::int64_t cycles_per_nanosecond = 2;
constexpr nanoseconds shortest_lead = std::chrono::microseconds(20);
constexpr std::uint32_t graph_warmup = 3;
constexpr cudaStreamCaptureMode capture_mode = cudaStreamCaptureModeThreadLocal;
constexpr std::uint64_t copies_below_bytes = 32U << 20U;
constexpr std::uint32_t small_copies = 20;
constexpr std::uint32_t large_copies = 2;

void hold_stream(nanoseconds lead) { at::cuda::sleep(lead.count() * cycles_per_nanosecond); }

class stopwatch {
 public:
  stopwatch() : begin_(cudaEventDefault), end_(cudaEventDefault) {}
  void start() { begin_.record(); }
  void stop() { end_.record(); }
  [[nodiscard]] nanoseconds elapsed() {
    end_.synchronize();
    constexpr double nanoseconds_per_millisecond = 1e6;
    return nanoseconds(
        std::llround(static_cast<double>(begin_.elapsed_time(end_)) * nanoseconds_per_millisecond));
  }

 private:
  at::cuda::CUDAEvent begin_;
  at::cuda::CUDAEvent end_;
};

class silent_handler final : public c10::WarningHandler {
 public:
  void process(const c10::Warning& /*warning*/) override {}
};

class cuda_graph final : public graph {
 public:
  cuda_graph(const callable& contender, std::uint32_t calls)
      : calls_(calls), stream_(at::cuda::getStreamFromPool()) {
    const c10::cuda::CUDAStreamGuard guard(stream_);
    for (std::uint32_t i = 0; i < graph_warmup; ++i) {
      contender.call();
      contender.release();
    }
    stream_.synchronize();
    graph_.capture_begin({0, 0}, capture_mode);
    try {
      for (std::uint32_t i = 0; i < calls_; ++i) {
        contender.call();
        contender.release();
      }
      graph_.capture_end();
    } catch (...) {
      abandon();
      throw;
    }
  }

  nanoseconds replay() override {
    const c10::cuda::CUDAStreamGuard guard(stream_);
    stopwatch watch;
    hold_stream(shortest_lead);
    watch.start();
    graph_.replay();
    watch.stop();
    return watch.elapsed() / calls_;
  }

 private:
  /// Torch takes its allocators and generators out of a capture in `capture_end`, once the stream
  /// has ended it: one that ends with an error is followed by an empty one, whose end serves. The
  /// graph's destructor then gives the memory pool back.
  void abandon() noexcept {
    silent_handler silence;
    const c10::WarningUtils::WarningHandlerGuard quiet(&silence);  // the graph may be empty
    if (!ended() && cudaStreamBeginCapture(stream_, capture_mode) == cudaSuccess) {
      ended();
    }
  }

  bool ended() noexcept {
    try {
      graph_.capture_end();
      return true;
    } catch (const std::exception&) {  // the contender's own error says more
      cudaGetLastError();
      return false;
    }
  }

  std::uint32_t calls_;
  at::cuda::CUDAStream stream_;
  at::cuda::CUDAGraph graph_;
};

class cuda_device final : public timing_device {
 public:
  explicit cuda_device(c10::DeviceIndex index) : guard_(index) {
    const auto l2_bytes = std::int64_t{at::cuda::getCurrentDeviceProperties()->l2CacheSize};
    const auto bytes = at::TensorOptions().device(at::kCUDA, index).dtype(at::kByte);
    written_ = at::empty({2 * l2_bytes}, bytes);
    read_ = at::zeros({2 * l2_bytes / 4}, bytes.dtype(at::kFloat));
  }

  [[nodiscard]] std::string name() const override {
    return static_cast<const char*>(at::cuda::getCurrentDeviceProperties()->name);
  }

  [[nodiscard]] bool has_events() const noexcept override { return true; }

  /// The current stream and whatever else the contender used.
  void synchronize() override { c10::cuda::device_synchronize(); }

  nanoseconds batched(const callable& contender, std::uint32_t calls, nanoseconds lead) override {
    stopwatch watch;
    hold_stream(lead);
    watch.start();
    for (std::uint32_t i = 0; i < calls; ++i) {
      contender.call();
      contender.release();
    }
    watch.stop();
    return watch.elapsed() / calls;
  }

  nanoseconds cold(const callable& contender, nanoseconds lead) override {
    stopwatch watch;
    hold_stream(lead);
    written_.zero_();
    watch.start();
    contender.call();
    watch.stop();
    const nanoseconds each = watch.elapsed();
    contender.release();
    return each;
  }

  std::unique_ptr<graph> capture(const callable& contender, std::uint32_t calls) override {
    return std::make_unique<cuda_graph>(contender, calls);
  }

  double copy_bandwidth(std::uint64_t moved_bytes) override {
    const auto half = static_cast<std::int64_t>(moved_bytes / 2);
    if (half == 0) {
      return 0;
    }
    if (!source_.defined() || source_.numel() != half) {
      source_ = at::Tensor();
      target_ = at::Tensor();
      source_ = at::zeros({half}, written_.options());
      target_ = at::empty({half}, written_.options());
    }
    const std::uint32_t copies = moved_bytes < copies_below_bytes ? small_copies : large_copies;
    stopwatch watch;
    hold_stream(shortest_lead * copies);
    watch.start();
    for (std::uint32_t i = 0; i < copies; ++i) {
      target_.copy_(source_, true);
    }
    watch.stop();
    const auto seconds = std::chrono::duration<double>(watch.elapsed()).count();
    return 2.0 * static_cast<double>(half) * copies / seconds;
  }

  /// Written lines are pushed out by reading as many others.
  void evict() override {
    source_ = at::Tensor();
    target_ = at::Tensor();
    written_.zero_();
    read_.sum();
  }

 private:
  c10::cuda::CUDAGuard guard_;
  at::Tensor written_;
  at::Tensor read_;
  at::Tensor source_;
  at::Tensor target_;
};

}  // namespace

std::unique_ptr<timing_device> make_cuda_device(int index) {
  return std::make_unique<cuda_device>(static_cast<c10::DeviceIndex>(index));
}

}  // namespace opscope::comparison
