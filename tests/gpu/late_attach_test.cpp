// SPDX-License-Identifier: Apache-2.0
// Sessions in a process whose CUDA context is older than its first use of CUPTI: how a profile
// around a part of a program always begins.
#include <cuda.h>

#include <atomic>
#include <set>
#include <string>
#include <thread>

#include "activity_fixture.hpp"
#include "kernels.hpp"

namespace opscope::test {
namespace {

template <typename Function>
Function driver_function(const char* name) {
  void* found = nullptr;
  EXPECT_EQ(cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, nullptr),
            cudaSuccess);
  return reinterpret_cast<Function>(found);
}

class late_attach_test : public activity_test {
 protected:
  void SetUp() override {
    activity_test::SetUp();
    if (!IsSkipped()) {
      launch_add(data().data(), 1, small);
      wait();
    }
  }

  static const device_floats& data() {
    static const device_floats floats{small};
    return floats;
  }
};

TEST_F(late_attach_test, launches_are_recorded_in_every_session) {
  for (std::size_t session = 1; session <= 3; ++session) {
    start();
    for (int i = 0; i < 10; ++i) {
      launch_add(data().data(), 1, small);
    }
    wait();
    stop();
    ASSERT_EQ(sink_.kernels.size(), 10 * session);
    for (const auto& row : sink_.kernels) {
      EXPECT_TRUE(call_of(row.correlation).has_value()) << "session " << session;
    }
  }
}

TEST_F(late_attach_test, launches_through_the_driver_api_are_recorded) {
  float* floats = data().data();
  float value = 1;
  std::size_t count = small;
  void* parameters[] = {static_cast<void*>(&floats), &value, &count};
  const auto launch = driver_function<decltype(&cuLaunchKernel)>("cuLaunchKernel");
  const auto launch_ex = driver_function<decltype(&cuLaunchKernelEx)>("cuLaunchKernelEx");
  auto* const function = reinterpret_cast<CUfunction>(add_function());
  CUlaunchConfig config{};
  config.gridDimX = small / 256;
  config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
  config.blockDimX = 256;
  start();
  EXPECT_EQ(launch(function, small / 256, 1, 1, 256, 1, 1, 0, nullptr, parameters, nullptr),
            CUDA_SUCCESS);
  EXPECT_EQ(launch_ex(&config, function, parameters, nullptr), CUDA_SUCCESS);
  wait();
  stop();
  ASSERT_EQ(sink_.kernels.size(), 2U);
  for (const auto& row : sink_.kernels) {
    const auto call = call_of(row.correlation);
    ASSERT_TRUE(call.has_value());
    EXPECT_EQ(call->api, api_call::domain::driver) << sink_.text(call->name);
  }
}

TEST_F(late_attach_test, cupti_leaves_and_comes_back_while_another_thread_launches) {
  std::atomic<bool> finished{false};
  std::atomic<int> failures{0};
  std::thread other{[&] {
    const device_floats own{small};
    while (!finished) {
      launch_add(own.data(), 1, small);
      failures += cudaDeviceSynchronize() == cudaSuccess ? 0 : 1;
    }
  }};
  for (int session = 1; session <= 20; ++session) {
    start();
    const std::size_t before = sink_.kernels.size();
    for (int i = 0; i < 10; ++i) {
      launch_add(data().data(), 1, small);
    }
    wait();
    stop();
    EXPECT_GE(sink_.kernels.size(), before + 10) << "session " << session;
    EXPECT_TRUE(collect::activity_touched());
    collect::detach_activity();
    EXPECT_FALSE(collect::activity_touched());
  }
  finished = true;
  other.join();
  EXPECT_EQ(failures, 0);
}

TEST_F(late_attach_test, functions_that_start_nothing_are_not_recorded) {
  start();
  for (int i = 0; i < 10; ++i) {
    int device = 0;
    cudaGetDevice(&device);
    cudaPeekAtLastError();
    launch_add(data().data(), 1, small);
  }
  wait();
  stop();
  std::set<std::string> names;
  for (const auto& call : sink_.api_calls) {
    names.emplace(sink_.text(call.name));
  }
  EXPECT_EQ(calls_named("GetDevice"), 0U) << testing::PrintToString(names);
  EXPECT_EQ(calls_named("LastError"), 0U) << testing::PrintToString(names);
}

}  // namespace
}  // namespace opscope::test
