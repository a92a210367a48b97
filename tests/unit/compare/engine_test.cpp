// SPDX-License-Identifier: Apache-2.0
//
// The order of a comparison's passes, watched by a device and a runtime that write down what they
// are asked for.
#include "compare/engine.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "model/records.hpp"
#include "opscope/error.hpp"

namespace opscope::comparison {
namespace {

using namespace std::chrono_literals;
using metric = sample::metric;

/// What happened, in order. The runtime's functions are plain C, so they write here.
struct log {
  std::vector<std::string> lines;
  std::vector<sample> samples;
  nlohmann::json document;
  std::uint32_t recording = 0;
  bool touched = false;
  bool counters = true;

  [[nodiscard]] std::size_t first(const std::string& line) const {
    return static_cast<std::size_t>(std::ranges::find(lines, line) - lines.begin());
  }
  [[nodiscard]] std::size_t last(const std::string& line) const {
    const auto found = std::ranges::find(lines.rbegin(), lines.rend(), line);
    return static_cast<std::size_t>(lines.rend() - found) - 1;
  }
  [[nodiscard]] auto count(const std::string& line) const {
    return std::ranges::count(lines, line);
  }
};

log* current = nullptr;

opscope_runtime fake_runtime(log& to) {
  current = &to;
  opscope_runtime runtime{};
  runtime.recording = &to.recording;
  runtime.now = [] { return std::uint64_t{1}; };
  runtime.cupti_touched = [] { return current->touched ? 1 : 0; };
  runtime.session_start = [](const opscope_session_options*, char*, size_t) {
    current->lines.emplace_back("start");
    return 0;
  };
  runtime.session_stop = [](char*, size_t) {
    current->lines.emplace_back("stop");
    return 0;
  };
  runtime.session_pause = [] { current->lines.emplace_back("pause"); };
  runtime.call_mark = [](uint64_t, uint64_t, uint32_t, uint32_t, uint32_t) {
    current->lines.emplace_back("mark");
  };
  runtime.sample = [](uint32_t what, uint32_t cell, uint32_t contender, uint32_t ordinal,
                      int64_t value) {
    current->samples.push_back({value, cell, contender, ordinal, static_cast<metric>(what)});
  };
  runtime.counter_begin = [](opscope_name name, uint32_t, uint32_t) {
    current->lines.emplace_back("count " + std::string(name.data, name.size));
    return current->counters ? 1 : 0;
  };
  runtime.counter_end = [] { current->lines.emplace_back("counted"); };
  runtime.document = [](const char*, const char* json) {
    current->document = nlohmann::json::parse(json);
  };
  return runtime;
}

class fake_graph final : public graph {
 public:
  std::chrono::nanoseconds replay() override { return 3us; }
};

class fake_gpu final : public timing_device {
 public:
  explicit fake_gpu(log& to) : log_(to) {}
  [[nodiscard]] std::string name() const override { return "fake"; }
  [[nodiscard]] bool has_events() const noexcept override { return true; }
  void synchronize() override {}
  std::chrono::nanoseconds batched(const callable&, std::uint32_t calls,
                                   std::chrono::nanoseconds) override {
    log_.lines.emplace_back("batch");
    batch = calls;
    return 5us;
  }
  std::chrono::nanoseconds cold(const callable&, std::chrono::nanoseconds) override { return 7us; }
  std::unique_ptr<graph> capture(const callable&, std::uint32_t) override {
    if (refuses_capture) {
      throw std::runtime_error("cannot be captured\nbecause of this and that");
    }
    return std::make_unique<fake_graph>();
  }
  double copy_bandwidth(std::uint64_t) override { return 1e12; }
  void evict() override { log_.lines.emplace_back("evict"); }

  std::uint32_t batch = 0;
  bool refuses_capture = false;

 private:
  log& log_;
};

class engine : public testing::Test {
 protected:
  engine() : runtime_(fake_runtime(log_)), gpu_(log_) {
    plan_.output = std::filesystem::temp_directory_path() / "opscope-no-such-capture.opscope";
    plan_.limits.warmup = 2;
    plan_.limits.pairs = 4;
    plan_.cells.resize(1);
    for (const char* name : {"a", "b"}) {
      plan_.cells[0].push_back({[this, name] { log_.lines.emplace_back(name); }, [] {}, {}});
    }
    document_ = {{"cells", {{{"read_bytes_ideal", 8}, {"write_bytes_ideal", 8}}}}};
  }

  void run() { comparison::run(plan_, document_, gpu_, runtime_); }

  [[nodiscard]] auto samples_of(metric what, std::uint32_t contender) const {
    return std::ranges::count_if(log_.samples, [&](const sample& each) {
      return each.what == what && each.contender == contender;
    });
  }

  log log_;
  opscope_runtime runtime_;
  fake_gpu gpu_;
  plan plan_;
  nlohmann::json document_;
};

TEST_F(engine, times_everything_before_the_session_touches_cupti) {
  run();
  EXPECT_LT(log_.last("batch"), log_.first("start"));
  EXPECT_LT(log_.first("start"), log_.first("mark"));
  EXPECT_LT(log_.last("mark"), log_.first("pause"));
  EXPECT_LT(log_.first("pause"), log_.first("count warm"));
  EXPECT_LT(log_.last("counted"), log_.first("stop"));
}

TEST_F(engine, contenders_take_turns_and_each_round_begins_with_another) {
  plan_.limits.warmup = 0;
  run();
  const std::vector<std::string> host(log_.lines.begin(), log_.lines.begin() + 8);
  EXPECT_EQ(host, (std::vector<std::string>{"a", "b", "b", "a", "a", "b", "b", "a"}));
}

TEST_F(engine, counts_the_rounds_that_were_asked_for_of_each_kind) {
  run();
  for (const metric what : {metric::host_call, metric::host_call_sync, metric::device_warm,
                            metric::device_cold, metric::graph_replay}) {
    EXPECT_EQ(samples_of(what, 0), 4) << static_cast<int>(what);
    EXPECT_EQ(samples_of(what, 1), 4) << static_cast<int>(what);
  }
  EXPECT_EQ(samples_of(metric::copy_bandwidth, 0), 4);
  EXPECT_EQ(log_.document["pairs"]["counted"], 4);
  EXPECT_EQ(log_.count("mark"), 2 * 20);
  EXPECT_EQ(log_.count("count warm"), 2 * 5);
  EXPECT_EQ(log_.count("count cold"), 2 * 5);
}

TEST_F(engine, a_slow_cell_ends_at_its_budget_after_the_fewest_rounds) {
  plan_.limits.budget = 0ns;
  plan_.limits.pairs = 1000;
  run();
  EXPECT_EQ(samples_of(metric::host_call, 0), plan_.limits.fewest);
  EXPECT_EQ(log_.document["pairs"]["fewest"], plan_.limits.fewest);
}

TEST_F(engine, a_contender_that_cannot_be_captured_says_why_in_one_line) {
  gpu_.refuses_capture = true;
  run();
  EXPECT_EQ(samples_of(metric::graph_replay, 0), 0);
  EXPECT_EQ(log_.document["cells"][0]["no_graph_replay"][1], "cannot be captured");
}

TEST_F(engine, short_calls_are_timed_in_batches) {
  run();
  EXPECT_EQ(gpu_.batch, 20);
}

TEST_F(engine, a_cell_without_contenders_is_passed_over) {
  plan_.cells[0].clear();
  run();
  EXPECT_TRUE(log_.samples.empty());
  EXPECT_EQ(log_.count("mark"), 0);
  EXPECT_EQ(log_.count("stop"), 1);
}

TEST_F(engine, a_cpu_has_host_time_only) {
  comparison::run(plan_, document_, *make_cpu_device(), runtime_);
  EXPECT_EQ(samples_of(metric::host_call, 1), 4);
  EXPECT_EQ(log_.samples.size(), 8U);
  EXPECT_EQ(log_.count("pause"), 0);
  EXPECT_EQ(log_.document["device"], "cpu");
}

TEST_F(engine, says_that_cupti_was_touched_before_timing) {
  log_.touched = true;
  run();
  EXPECT_TRUE(log_.document["cupti_touched_before_timing"].get<bool>());
}

TEST_F(engine, refused_counters_end_the_counter_pass_alone) {
  log_.counters = false;
  run();
  EXPECT_EQ(log_.count("count warm"), 1);
  EXPECT_EQ(log_.count("counted"), 0);
  EXPECT_EQ(log_.count("stop"), 1);
}

TEST_F(engine, a_profile_that_is_on_is_refused_before_anything_is_called) {
  log_.recording = 1;
  EXPECT_THROW(run(), opscope::error);
  EXPECT_TRUE(log_.lines.empty());
}

TEST_F(engine, an_exception_of_a_contender_closes_the_session_and_goes_on) {
  plan_.cells[0][1].traced = [] { throw std::runtime_error("the op's own"); };
  EXPECT_THROW(run(), std::runtime_error);
  EXPECT_EQ(log_.lines.back(), "stop");
}

TEST_F(engine, a_folder_that_is_not_there_is_refused_before_anything_is_called) {
  plan_.output = "/no/such/folder/x.opscope";
  EXPECT_THROW(run(), opscope::error);
  EXPECT_TRUE(log_.lines.empty());
}

TEST_F(engine, tells_which_cell_it_times) {
  std::vector<std::uint32_t> told;
  plan_.timing = [&](std::uint32_t cell) {
    EXPECT_TRUE(log_.lines.empty()) << "nothing was called yet";
    told.push_back(cell);
  };
  run();
  EXPECT_EQ(told, (std::vector<std::uint32_t>{0}));
}

TEST_F(engine, a_poll_may_end_it_before_a_session_began) {
  plan_.poll = [] { throw std::runtime_error("interrupted"); };
  EXPECT_THROW(run(), std::runtime_error);
  EXPECT_EQ(log_.count("start"), 0);
}

}  // namespace
}  // namespace opscope::comparison
