// SPDX-License-Identifier: Apache-2.0
#include "analyse/census.hpp"

#include <gtest/gtest.h>

namespace opscope::analyse {
namespace {

TEST(census, counts_events_by_phase_and_category) {
  census_stream out;
  out << R"({"schemaVersion": 1, "other": [{"ph": "X"}], "traceEvents": [)"
      << R"({"ph": "X", "cat": "kernel", "name": "k\"{[", "ts": 1.000, "dur": 2.501},)"
      << "\n"
      << R"({"ph": "X", "cat": "kernel", "dur": 0.499, "args": {"grid": [1, 2], "a": {"b": 1}}},)"
      << R"({"ph": "s", "cat": "ac2g", "id": 1},{"ph":"M","name":"process_name"}],)"
      << R"("opscope": {"ledger": [{"ph": "X"}]}})";
  const auto& census = out.census();
  EXPECT_EQ(census.events, 4U);
  EXPECT_EQ(census.by_phase, (decltype(census.by_phase){{"X", 2}, {"s", 1}, {"M", 1}}));
  EXPECT_EQ(census.by_category.at("kernel"), (trace_census::category{2, 3000}));
  EXPECT_EQ(census.by_category.at("ac2g").duration_ns, 0);
  EXPECT_EQ(census.unreadable, 0U);
}

TEST(census, does_not_depend_on_how_the_text_is_cut) {
  const std::string text = R"({"traceEvents":[{"ph":"X","cat":"cpu_op","dur":1.5,"name":"\\"}]})";
  census_stream out;
  for (const char byte : text) out.put(byte);
  EXPECT_EQ(out.census().events, 1U);
  EXPECT_EQ(out.census().by_category.at("cpu_op").duration_ns, 1500);
}

}  // namespace
}  // namespace opscope::analyse
