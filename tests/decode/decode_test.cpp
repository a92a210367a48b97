// SPDX-License-Identifier: Apache-2.0
//
// Records are written as CUPTI writes them, and the real libcupti walks them: no GPU is needed.
#include "cupti/decode.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <string>

#include "activity_buffer.hpp"
#include "opscope/error.hpp"
#include "support/collecting_sink.hpp"

namespace opscope::cupti {
namespace {

using test::activity_buffer;
using test::api_record;
using test::kernel_record;

/// The sizes that CUPTI 13.0.1 writes.
static_assert(sizeof(CUpti_ActivityKernel10) == 216);
static_assert(sizeof(CUpti_ActivityAPI) == 40);
static_assert(sizeof(CUpti_ActivityMemcpy6) == 96);
static_assert(sizeof(CUpti_ActivityMemset4) == 88);
static_assert(sizeof(CUpti_ActivitySynchronization2) == 56);
static_assert(sizeof(CUpti_ActivityOverhead3) == 56);

class decode_test : public testing::Test {
 protected:
  void SetUp() override {
    try {
      cupti_ = open_api();
    } catch (const opscope::error& missing) {
      // The build names the library where it knows one; then it has to be there.
      if (std::getenv("OPSCOPE_CUPTI") != nullptr) {
        FAIL() << missing.what();
      }
      GTEST_SKIP() << missing.what();
    }
    names_.emplace(*cupti_, sink_);
  }

  batch decode_all(activity_buffer& buffer) { return decode_first(buffer, buffer.size()); }

  batch decode_first(activity_buffer& buffer, std::size_t valid_bytes) {
    batch rows;
    decode_buffer(*cupti_, buffer.data(), valid_bytes, *names_, rows);
    return rows;
  }

  test::collecting_sink sink_;
  std::optional<api> cupti_;
  std::optional<name_cache> names_;
};

TEST_F(decode_test, kernel_keeps_every_field_and_gets_its_source_name) {
  activity_buffer buffer;
  buffer.add(kernel_record("_Z4copyPfS_l", 1000, 3500));
  const auto rows = decode_all(buffer);

  ASSERT_EQ(rows.kernels.size(), 1U);
  const auto& row = rows.kernels[0];
  EXPECT_EQ(sink_.text(row.name), "copy(float*, float*, long)");
  const kernel expected{.start = timestamp{1000},
                        .end = timestamp{3500},
                        .graph_node = 5000000001,
                        .name = row.name,
                        .correlation = correlation_id{41},
                        .device = 1,
                        .context = 2,
                        .stream = 7,
                        .graph = 6,
                        .grid = {1024, 3, 2},
                        .block = {256, 4, 1},
                        .registers_per_thread = 32,
                        .static_shared_bytes = 128,
                        .dynamic_shared_bytes = 4096,
                        .local_bytes_per_thread = 16,
                        .flags = 0,
                        .reserved = 0};
  EXPECT_EQ(row, expected);
  EXPECT_TRUE(rows.losses.complete());
}

TEST_F(decode_test, names_that_are_not_mangled_stay) {
  activity_buffer buffer;
  buffer.add(kernel_record("ampere_sgemm_128x64_tn", 1, 2)).add(kernel_record(nullptr, 3, 4));
  const auto rows = decode_all(buffer);
  ASSERT_EQ(rows.kernels.size(), 2U);
  EXPECT_EQ(sink_.text(rows.kernels[0].name), "ampere_sgemm_128x64_tn");
  EXPECT_EQ(sink_.text(rows.kernels[1].name), "(unnamed kernel)");
}

TEST_F(decode_test, the_counters_own_kernel_is_marked) {
  activity_buffer buffer;
  buffer.add(kernel_record("WaitNs", 1, 2))
      .add(kernel_record("_Z6WaitNsm", 3, 4))
      .add(kernel_record("WaitNsOfTheUser", 5, 6));
  const auto rows = decode_all(buffer);
  ASSERT_EQ(rows.kernels.size(), 3U);
  EXPECT_EQ(rows.kernels[0].flags, kernel::profiler_own);
  EXPECT_EQ(rows.kernels[1].flags, kernel::profiler_own);
  EXPECT_EQ(rows.kernels[2].flags, 0U);
}

TEST_F(decode_test, kernel_names_are_cached_by_text_since_a_reloaded_module_reuses_addresses) {
  char storage[16] = "first";
  char elsewhere[16] = "first";
  activity_buffer buffer;
  buffer.add(kernel_record(storage, 1, 2)).add(kernel_record(elsewhere, 3, 4));
  const auto before = decode_all(buffer);
  EXPECT_EQ(sink_.interned(), 1U);
  EXPECT_EQ(before.kernels[0].name, before.kernels[1].name);

  std::strcpy(storage, "second");
  const auto after = decode_all(buffer);
  EXPECT_EQ(sink_.text(after.kernels[0].name), "second");
}

TEST_F(decode_test, api_calls_have_cuptis_full_names) {
  activity_buffer buffer;
  buffer.add(api_record(CUPTI_ACTIVITY_KIND_RUNTIME, 211, 10, 20))
      .add(api_record(CUPTI_ACTIVITY_KIND_RUNTIME, 505, 30, 40))
      .add(api_record(CUPTI_ACTIVITY_KIND_DRIVER, 307, 31, 39))
      .add(api_record(CUPTI_ACTIVITY_KIND_INTERNAL_LAUNCH_API, 0, 50, 60))
      .add(api_record(CUPTI_ACTIVITY_KIND_RUNTIME, 60000, 70, 80));
  const auto rows = decode_all(buffer);

  ASSERT_EQ(rows.api_calls.size(), 5U);
  EXPECT_EQ(sink_.text(rows.api_calls[0].name), "cudaLaunchKernel_v7000");
  EXPECT_EQ(sink_.text(rows.api_calls[1].name), "__cudaLaunchKernel_v13000");
  EXPECT_EQ(sink_.text(rows.api_calls[2].name), "cuLaunchKernel");
  EXPECT_EQ(sink_.text(rows.api_calls[3].name), "internal launch");
  EXPECT_EQ(sink_.text(rows.api_calls[4].name), "CUDA function 60000");
  EXPECT_EQ(rows.api_calls[0].api, api_call::domain::runtime);
  EXPECT_EQ(rows.api_calls[2].api, api_call::domain::driver);
  EXPECT_EQ(rows.api_calls[0].thread, thread_id{101});
  EXPECT_EQ(rows.api_calls[0].correlation, correlation_id{41});
  EXPECT_EQ(rows.api_calls[1].callback, 505U);
}

TEST_F(decode_test, a_failed_call_keeps_its_result) {
  auto record = api_record(CUPTI_ACTIVITY_KIND_RUNTIME, 20, 10, 20);
  record.returnValue = 2;  // cudaErrorMemoryAllocation
  activity_buffer buffer;
  buffer.add(record);
  EXPECT_EQ(decode_all(buffer).api_calls.at(0).result, 2);
}

TEST_F(decode_test, copies_between_host_and_device_and_between_devices) {
  CUpti_ActivityMemcpy6 copy{};
  copy.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
  copy.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_HTOD;
  copy.srcKind = CUPTI_ACTIVITY_MEMORY_KIND_PINNED;
  copy.dstKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
  copy.flags = CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC;
  copy.bytes = std::uint64_t{5} << 30U;
  copy.start = 100;
  copy.end = 200;
  copy.deviceId = 1;
  copy.contextId = 2;
  copy.streamId = 3;
  copy.correlationId = 4;
  copy.graphNodeId = 9;
  CUpti_ActivityMemcpyPtoP4 peer{};
  peer.kind = CUPTI_ACTIVITY_KIND_MEMCPY2;
  peer.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_PTOP;
  peer.bytes = 64;
  peer.start = 300;
  peer.end = 310;
  peer.correlationId = 5;
  activity_buffer buffer;
  buffer.add(copy).add(peer);
  const auto rows = decode_all(buffer);

  ASSERT_EQ(rows.memory_copies.size(), 2U);
  const memory_copy expected{.start = timestamp{100},
                             .end = timestamp{200},
                             .bytes = 5368709120,
                             .graph_node = 9,
                             .correlation = correlation_id{4},
                             .device = 1,
                             .context = 2,
                             .stream = 3,
                             .copy_kind = CUPTI_ACTIVITY_MEMCPY_KIND_HTOD,
                             .source_kind = CUPTI_ACTIVITY_MEMORY_KIND_PINNED,
                             .target_kind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE,
                             .flags = CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC};
  EXPECT_EQ(rows.memory_copies[0], expected);
  EXPECT_EQ(rows.memory_copies[1].bytes, 64U);
  EXPECT_EQ(rows.memory_copies[1].copy_kind, std::uint32_t{CUPTI_ACTIVITY_MEMCPY_KIND_PTOP});
}

TEST_F(decode_test, fills_waits_and_overheads) {
  CUpti_ActivityMemset4 fill{};
  fill.kind = CUPTI_ACTIVITY_KIND_MEMSET;
  fill.value = 1;
  fill.bytes = 4096;
  fill.start = 10;
  fill.end = 20;
  fill.streamId = 7;
  fill.memoryKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
  CUpti_ActivitySynchronization2 wait{};
  wait.kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION;
  wait.type = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE;
  wait.start = 30;
  wait.end = 40;
  wait.streamId = 7;
  wait.correlationId = 12;
  CUpti_ActivityOverhead3 cost{};
  cost.kind = CUPTI_ACTIVITY_KIND_OVERHEAD;
  cost.overheadKind = CUPTI_ACTIVITY_OVERHEAD_LAZY_FUNCTION_LOADING;
  cost.objectKind = CUPTI_ACTIVITY_OBJECT_THREAD;
  cost.objectId.pt.threadId = 101;
  cost.start = 50;
  cost.end = 60;
  activity_buffer buffer;
  buffer.add(fill).add(wait).add(cost);
  const auto rows = decode_all(buffer);

  ASSERT_EQ(rows.memory_sets.size(), 1U);
  EXPECT_EQ(rows.memory_sets[0].bytes, 4096U);
  EXPECT_EQ(rows.memory_sets[0].value, 1U);
  EXPECT_EQ(rows.memory_sets[0].memory_kind, std::uint32_t{CUPTI_ACTIVITY_MEMORY_KIND_DEVICE});
  ASSERT_EQ(rows.synchronizations.size(), 1U);
  EXPECT_EQ(rows.synchronizations[0].type,
            std::uint32_t{CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE});
  EXPECT_EQ(rows.synchronizations[0].correlation, correlation_id{12});
  ASSERT_EQ(rows.overheads.size(), 1U);
  EXPECT_EQ(sink_.text(rows.overheads[0].name), "Lazy Function Loading");
  EXPECT_EQ(rows.overheads[0].thread, thread_id{101});
}

TEST_F(decode_test, external_correlations_need_no_time) {
  CUpti_ActivityExternalCorrelation pair{};
  pair.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION;
  pair.externalKind = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0;
  pair.externalId = 77;
  pair.correlationId = 41;
  activity_buffer buffer;
  buffer.add(pair);
  const auto rows = decode_all(buffer);
  ASSERT_EQ(rows.external_correlations.size(), 1U);
  EXPECT_EQ(rows.external_correlations[0].external, 77U);
  EXPECT_EQ(rows.external_correlations[0].correlation, correlation_id{41});
  EXPECT_TRUE(rows.losses.complete());
}

TEST_F(decode_test, records_without_usable_times_are_counted_by_category_and_not_delivered) {
  CUpti_ActivityMemset4 fill{};
  fill.kind = CUPTI_ACTIVITY_KIND_MEMSET;
  activity_buffer buffer;
  buffer.add(kernel_record("never_timed", 0, 0))
      .add(kernel_record("ends_before_it_starts", 2000, 1999))
      .add(kernel_record("fine", 2000, 2000))
      .add(fill)
      .add(api_record(CUPTI_ACTIVITY_KIND_DRIVER, 307, 0, 0));
  const auto rows = decode_all(buffer);
  ASSERT_EQ(rows.kernels.size(), 1U);
  EXPECT_EQ(sink_.text(rows.kernels[0].name), "fine");
  EXPECT_EQ(rows.losses.count(outcome::untimed, "kernel"), 2U);
  EXPECT_EQ(rows.losses.count(outcome::untimed, "gpu_memset"), 1U);
  EXPECT_EQ(rows.losses.count(outcome::untimed, "cuda_driver"), 1U);
}

TEST_F(decode_test, kinds_that_are_not_recorded_are_passed_over) {
  CUpti_ActivityDevice5 device{};
  device.kind = CUPTI_ACTIVITY_KIND_DEVICE;
  activity_buffer buffer;
  buffer.add(device).add(kernel_record("after", 1, 2)).add(device);
  const auto rows = decode_all(buffer);
  EXPECT_EQ(rows.kernels.size(), 1U);
  EXPECT_TRUE(rows.losses.complete());
}

TEST_F(decode_test, a_cut_tail_is_counted_wherever_the_cut_is) {
  activity_buffer buffer;
  buffer.add(kernel_record("whole", 1, 2)).add(kernel_record("cut", 3, 4));
  const std::size_t whole = sizeof(CUpti_ActivityKernel10);
  for (std::size_t valid = whole + 1; valid < 2 * whole; ++valid) {
    const auto rows = decode_first(buffer, valid);
    ASSERT_EQ(rows.kernels.size(), 1U) << valid;
    ASSERT_EQ(rows.losses.count(outcome::skipped, "gpu_activity"), 1U) << valid;
  }
  EXPECT_TRUE(decode_first(buffer, whole).losses.complete());
}

TEST_F(decode_test, an_empty_buffer_is_nothing) {
  activity_buffer buffer;
  buffer.add(kernel_record("not valid", 1, 2));
  const auto rows = decode_first(buffer, 0);
  EXPECT_TRUE(rows.kernels.empty());
  EXPECT_TRUE(rows.losses.complete());
}

TEST_F(decode_test, delivering_hands_everything_over_and_empties_the_batch) {
  activity_buffer buffer;
  buffer.add(kernel_record("one", 1, 2)).add(kernel_record("untimed", 0, 0));
  auto rows = decode_all(buffer);
  deliver(rows, sink_);
  EXPECT_EQ(sink_.kernels.size(), 1U);
  EXPECT_EQ(sink_.losses.count(outcome::untimed, "kernel"), 1U);
  EXPECT_TRUE(rows.kernels.empty());
  EXPECT_TRUE(rows.losses.complete());
}

}  // namespace
}  // namespace opscope::cupti
