// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <ctime>

#include "model/ids.hpp"

namespace opscope::test {

/// Device memory for floats, zeroed.
class device_floats {
 public:
  explicit device_floats(std::size_t count) : count_(count) {
    EXPECT_EQ(cudaMalloc(&data_, bytes()), cudaSuccess);
    EXPECT_EQ(cudaMemset(data_, 0, bytes()), cudaSuccess);
  }
  ~device_floats() { cudaFree(data_); }
  device_floats(const device_floats&) = delete;
  device_floats& operator=(const device_floats&) = delete;

  [[nodiscard]] float* data() const noexcept { return static_cast<float*>(data_); }
  [[nodiscard]] std::size_t count() const noexcept { return count_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return count_ * sizeof(float); }

 private:
  void* data_ = nullptr;
  std::size_t count_;
};

/// A stream that does not wait for the default stream.
class device_stream {
 public:
  device_stream() {
    EXPECT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
  }
  ~device_stream() { cudaStreamDestroy(stream_); }
  device_stream(const device_stream&) = delete;
  device_stream& operator=(const device_stream&) = delete;

  [[nodiscard]] cudaStream_t get() const noexcept { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

/// Skips on machines without a GPU. Asking for the count creates no context.
class gpu_test : public testing::Test {
 protected:
  void SetUp() override {
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) {
      GTEST_SKIP() << "no GPU";
    }
  }

  static void wait() { ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess); }

  static timestamp now() {
    timespec time{};
    clock_gettime(CLOCK_REALTIME, &time);
    return std::chrono::seconds{time.tv_sec} + std::chrono::nanoseconds{time.tv_nsec};
  }

  static thread_id this_thread() { return thread_id{static_cast<std::uint32_t>(gettid())}; }
};

}  // namespace opscope::test
