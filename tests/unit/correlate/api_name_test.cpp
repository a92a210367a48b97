// SPDX-License-Identifier: Apache-2.0
#include "correlate/api_name.hpp"

#include <gtest/gtest.h>

namespace opscope::correlate {
namespace {

TEST(api_name, is_stripped_as_kineto_does) {
  EXPECT_EQ(plain_api_name("__cudaLaunchKernel_v13000"), "cudaLaunchKernel");
  EXPECT_EQ(plain_api_name("cudaLaunchKernel_ptsz_v7000"), "cudaLaunchKernel");
  EXPECT_EQ(plain_api_name("cuMemcpyHtoDAsync_v2_ptsz"), "cuMemcpyHtoDAsync");
  EXPECT_EQ(plain_api_name("cudaDeviceSynchronize_v3020"), "cudaDeviceSynchronize");
  EXPECT_EQ(plain_api_name("cuLaunchKernelEx"), "cuLaunchKernelEx");
  EXPECT_EQ(plain_api_name("_v2"), "_v2");
  EXPECT_EQ(plain_api_name(""), "");
}

TEST(api_name, tells_what_starts_gpu_work) {
  EXPECT_EQ(launch_kind_of("__cudaLaunchKernel_v13000"), launch_kind::kernel);
  EXPECT_EQ(launch_kind_of("cuLaunchKernelEx_ptsz"), launch_kind::kernel);
  EXPECT_EQ(launch_kind_of("cudaMemcpyAsync_v3020"), launch_kind::copy);
  EXPECT_EQ(launch_kind_of("cuMemsetD8Async"), launch_kind::fill);
  EXPECT_EQ(launch_kind_of("cudaGraphLaunch_v10000"), launch_kind::graph);
  EXPECT_EQ(launch_kind_of("cudaLaunchHostFunc_v10000"), launch_kind::none);
  EXPECT_EQ(launch_kind_of("cudaStreamSynchronize_v3020"), launch_kind::none);
  EXPECT_EQ(launch_kind_of("MyLaunch"), launch_kind::none);
}

}  // namespace
}  // namespace opscope::correlate
