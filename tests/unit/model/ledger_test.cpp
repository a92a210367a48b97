// SPDX-License-Identifier: Apache-2.0
#include "model/ledger.hpp"

#include <gtest/gtest.h>

#include "model/category.hpp"

namespace opscope {
namespace {

TEST(ledger, starts_empty_and_complete) {
  const ledger counts;
  EXPECT_TRUE(counts.complete());
  EXPECT_EQ(counts.total(outcome::delivered), 0U);
  EXPECT_EQ(
      to_json(counts),
      R"({"delivered":{},"dropped":{},"untimed":{},"unlinked":{},"clamped":{},"skipped":{}})");
}

TEST(ledger, adds_by_outcome_and_record) {
  ledger counts;
  counts.add(outcome::delivered, "kernel", 12);
  counts.add(outcome::delivered, "kernel");
  counts.add(outcome::delivered, "cpu_op", 3);
  EXPECT_EQ(counts.count(outcome::delivered, "kernel"), 13U);
  EXPECT_EQ(counts.count(outcome::dropped, "kernel"), 0U);
  EXPECT_EQ(counts.total(outcome::delivered), 16U);
}

TEST(ledger, does_not_mention_what_happened_zero_times) {
  ledger counts;
  counts.add(outcome::dropped, "kernel", 0);
  EXPECT_TRUE(counts.of(outcome::dropped).empty());
}

TEST(ledger, is_complete_unless_records_were_dropped_untimed_or_skipped) {
  for (const outcome what : outcomes) {
    ledger counts;
    counts.add(what, "kernel");
    const bool loss =
        what == outcome::dropped || what == outcome::untimed || what == outcome::skipped;
    EXPECT_EQ(counts.complete(), !loss) << name(what);
  }
}

TEST(ledger, merges_by_adding) {
  ledger one;
  one.add(outcome::clamped, "cpu_op", 2);
  ledger two;
  two.add(outcome::clamped, "cpu_op", 5);
  two.add(outcome::untimed, "kernel", 1);
  one.merge(two);
  EXPECT_EQ(one.count(outcome::clamped, "cpu_op"), 7U);
  EXPECT_EQ(one.count(outcome::untimed, "kernel"), 1U);
}

TEST(ledger, survives_json) {
  ledger counts;
  counts.add(outcome::delivered, "gpu_memcpy", 18446744073709551615U);
  counts.add(outcome::skipped, "a \"quoted\" kind", 7);
  EXPECT_EQ(ledger_from_json(to_json(counts)), counts);
}

TEST(ledger, of_other_text_is_empty) {
  for (const char* text : {"", "[]", "{", "null", R"({"delivered":[1]})",
                           R"({"delivered":{"kernel":"many"},"invented":{"kernel":1}})"}) {
    EXPECT_EQ(ledger_from_json(text), ledger{}) << text;
  }
}

TEST(category, tells_the_two_api_domains_apart) {
  api_call call{};
  call.api = api_call::domain::driver;
  EXPECT_EQ(category(call), "cuda_driver");
  call.api = api_call::domain::runtime;
  EXPECT_EQ(category(call), "cuda_runtime");
}

TEST(category, of_a_kind_from_a_newer_version_is_unknown) {
  EXPECT_EQ(category(static_cast<record_kind>(999)), "unknown");
}

}  // namespace
}  // namespace opscope
