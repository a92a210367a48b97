// SPDX-License-Identifier: Apache-2.0
//
// What can be asked of the real libcupti without a GPU: which functions are recorded, how many
// passes the counters need, and what a machine without a driver is told.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>

#include "cupti/counter_support.hpp"
#include "cupti/cupti_error.hpp"
#include "cupti/driver.hpp"
#include "cupti/range_profiler.hpp"
#include "cupti/traced_functions.hpp"
#include "support/collecting_sink.hpp"

namespace opscope::cupti {
namespace {

class cupti_test : public testing::Test {
 protected:
  void SetUp() override {
    try {
      cupti_ = open_api();
    } catch (const opscope::error& missing) {
      if (std::getenv("OPSCOPE_CUPTI") != nullptr) {
        FAIL() << missing.what();
      }
      GTEST_SKIP() << missing.what();
    }
  }

  std::optional<api> cupti_;
};

bool has_driver() {
  try {
    static_cast<void>(open_driver());
    return true;
  } catch (const opscope::error&) {
    return false;
  }
}

TEST_F(cupti_test, is_new_enough_and_found_again_where_it_is_loaded) {
  EXPECT_GE(cupti_->version, oldest_version);
  EXPECT_EQ(open_api().library.path(), cupti_->library.path());
}

TEST_F(cupti_test, every_way_to_launch_a_kernel_or_a_graph_is_recorded) {
  const auto runtime = traced_functions(*cupti_, CUPTI_CB_DOMAIN_RUNTIME_API);
  const std::set<CUpti_CallbackId> runtime_set(runtime.begin(), runtime.end());
  for (const CUpti_CallbackId id : {211U, 214U, 430U, 431U, 269U, 270U, 505U, 506U, 311U, 312U}) {
    EXPECT_TRUE(runtime_set.contains(id)) << id;
  }
  const auto driver = traced_functions(*cupti_, CUPTI_CB_DOMAIN_DRIVER_API);
  const std::set<CUpti_CallbackId> driver_set(driver.begin(), driver.end());
  for (const CUpti_CallbackId id : {307U, 442U, 652U, 653U, 477U, 478U, 514U, 515U}) {
    EXPECT_TRUE(driver_set.contains(id)) << id;
  }
}

TEST_F(cupti_test, functions_past_the_headers_last_are_found_by_name) {
  const auto runtime = traced_functions(*cupti_, CUPTI_CB_DOMAIN_RUNTIME_API);
  EXPECT_GE(*std::ranges::max_element(runtime), 509U);  // cudaMemcpyBatchAsync_v13000
}

TEST(traced_functions, copies_fills_allocations_waits_and_events_but_no_queries_of_state) {
  for (const char* name :
       {"cudaMemcpyAsync_ptsz_v7000", "cudaMemset2DAsync_v3020", "cudaMallocAsync_v11020",
        "cudaFree_v3020", "cudaStreamSynchronize_v3020", "cudaDeviceSynchronize_v3020",
        "cudaEventRecordWithFlags_v11010", "cudaGraphInstantiateWithFlags_v11040",
        "cuMemcpyHtoDAsync_v2", "cuMemsetD32Async", "cuMemAllocAsync", "cuMemFree_v2",
        "cuCtxSynchronize", "cuStreamWaitEvent", "cuLaunchKernelEx"}) {
    EXPECT_TRUE(is_traced(name)) << name;
  }
  for (const char* name :
       {"cudaGetDevice_v3020", "cudaGetLastError_v3020", "cudaPeekAtLastError_v3020",
        "cudaStreamIsCapturing_v10000", "cudaFuncGetAttributes_v3020", "cuCtxGetCurrent",
        "__cudaPushCallConfiguration_v7000", "cuModuleGetFunction", "cudaGraphAddMemcpyNode_v10000",
        "INVALID", ""}) {
    EXPECT_FALSE(is_traced(name)) << name;
  }
}

TEST_F(cupti_test, the_counters_need_one_pass_so_that_no_replay_is_needed) {
  const auto host = make_one_pass_host(*cupti_, "GH100");
  EXPECT_EQ(host->passes(), 1U);
  EXPECT_FALSE(host->config_image().empty());
}

TEST_F(cupti_test, an_unknown_chip_is_an_error_that_names_it) {
  try {
    const profiler_host host{*cupti_, "GX999"};
    FAIL() << "a chip that does not exist was accepted";
  } catch (const cupti_error& refused) {
    EXPECT_NE(refused.status(), CUPTI_SUCCESS);
    EXPECT_NE(std::string{refused.what()}.find("GX999"), std::string::npos);
  }
}

TEST(counter_method, is_read_from_the_configuration) {
  CUpti_RangeProfiler_SetConfig_Params config{};
  config.range = CUPTI_UserRange;
  config.replayMode = CUPTI_UserReplay;
  EXPECT_EQ(method_of(config), "counter:user-range");
  config.range = CUPTI_AutoRange;
  config.replayMode = CUPTI_KernelReplay;
  EXPECT_EQ(method_of(config), "counter:kernel-replay");
}

TEST(counter_values, of_a_range_that_was_not_closed_are_no_values) {
  EXPECT_TRUE((counter_values{1, 2, 3, 4}).complete());
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE((counter_values{1, nan, 3, 4}).complete());
}

TEST(cupti_error, is_one_line_with_operation_name_meaning_and_remedy) {
  const cupti_error restricted{CUPTI_ERROR_INSUFFICIENT_PRIVILEGES, "cuptiRangeProfilerEnable"};
  EXPECT_EQ(std::string{restricted.what()},
            "cuptiRangeProfilerEnable: CUPTI_ERROR_INSUFFICIENT_PRIVILEGES, reading hardware "
            "counters is restricted to administrators (run with CAP_SYS_ADMIN, or load the driver "
            "with NVreg_RestrictProfilingToAdminUsers=0)");
  EXPECT_EQ(restricted.status(), CUPTI_ERROR_INSUFFICIENT_PRIVILEGES);
  const cupti_error taken{CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED, "cuptiSubscribe_v2",
                          "Nsight Systems"};
  EXPECT_NE(std::string{taken.what()}.find("owns CUPTI in this process: Nsight Systems ("),
            std::string::npos);
  EXPECT_NE(remedy(CUPTI_ERROR_HARDWARE_BUSY).find("dcgmi profile --pause"),
            std::string_view::npos);
  EXPECT_EQ(symbolic_name(static_cast<CUptiResult>(998)), "CUPTI_ERROR_998");
}

TEST(cupti_error, check_throws_for_failures_only) {
  EXPECT_NO_THROW(check(CUPTI_SUCCESS, "anything"));
  EXPECT_THROW(check(CUPTI_ERROR_UNKNOWN, "cuptiSubscribe_v2"), cupti_error);
}

TEST(without_a_driver, sources_refuse_in_one_line_and_can_be_stopped) {
  if (has_driver()) {
    GTEST_SKIP() << "this machine has a driver";
  }
  test::collecting_sink sink;
  const auto activity = collect::make_activity_source();
  const auto counters = collect::make_counter_source();
  for (const auto& start : {std::function<void()>{[&] { activity->start({}, sink); }},
                            std::function<void()>{[&] { counters->start(0, sink); }}}) {
    try {
      start();
      FAIL() << "started without a driver";
    } catch (const opscope::error& refused) {
      const std::string line = refused.what();
      EXPECT_NE(line.find("libcuda.so.1 was not found (install the driver"), std::string::npos);
      EXPECT_EQ(line.find('\n'), std::string::npos);
    }
  }
  EXPECT_FALSE(counters->begin("op", no_cell, 0));
  counters->end();
  activity->flush();
  activity->stop();
  counters->stop();
  EXPECT_TRUE(sink.kernels.empty());
}

TEST(describe_machine, names_every_capability_and_a_fix_where_one_is_missing) {
  const auto machine = nlohmann::json::parse(collect::describe_machine());
  std::set<std::string> names;
  for (const auto& capability : machine.at("capabilities")) {
    names.insert(capability.at("name"));
    EXPECT_FALSE(capability.at("why").get<std::string>().empty()) << capability;
    if (!capability.at("available").get<bool>()) {
      EXPECT_FALSE(capability.at("fix").get<std::string>().empty()) << capability;
    }
  }
  EXPECT_EQ(names,
            (std::set<std::string>{"driver", "cupti", "gpu", "activity", "counters", "nvtx"}));
}

}  // namespace
}  // namespace opscope::cupti
