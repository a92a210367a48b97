// SPDX-License-Identifier: Apache-2.0
#include "cupti/counter_session.hpp"

#include <unistd.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <utility>

#include "cupti/captures.hpp"
#include "cupti/clock.hpp"
#include "cupti/counter_support.hpp"
#include "cupti/profiler_host.hpp"

namespace opscope::cupti {
namespace {

constexpr std::string_view row_kind = "counter_range";
constexpr std::uint32_t default_capacity = 256;

counter_range with(counter_range row, const counter_values& values) noexcept {
  row.dram_read_bytes = values.dram_read_bytes;
  row.dram_write_bytes = values.dram_write_bytes;
  row.duration_ns = values.duration_ns;
  row.l2_bytes = values.l2_bytes;
  return row;
}

}  // namespace

/// The counters of one context and the rows that wait for their values.
struct counter_session::context_counters {
  CUcontext context;
  CUdevice device;
  std::unique_ptr<profiler_host> host;
  std::unique_ptr<range_profiler> profiler;
  std::vector<counter_range> waiting;  ///< by range number
};

counter_session::counter_session(std::uint32_t capacity, collect::activity_sink& sink,
                                 driver_api driver, api cupti)
    : sink_(sink),
      capacity_(capacity != 0 ? capacity : default_capacity),
      driver_(std::move(driver)),
      cupti_(std::move(cupti)) {
  if (const auto context = context_in_use(driver_)) {
    counters_of(*context);
  }
}

counter_session::~counter_session() {
  for (auto& counters : contexts_) {
    deliver(*counters);
  }
}

bool counter_session::begin(std::string_view name, std::uint32_t cell,
                            std::uint32_t contender) noexcept {
  // Work that is being captured does not run, and a range would invalidate the capture.
  const bool closed = broken_ || open_ != nullptr || capture_in_progress();
  const auto context = closed ? std::nullopt : context_in_use(driver_);
  if (!context) {
    sink_.account(outcome::skipped, row_kind, 1);
    return false;
  }
  try {
    auto& counters = counters_of(*context);
    renew_if_full(counters);
    push(counters, name, cell, contender);
    return true;
  } catch (const std::exception& failure) {
    give_up(failure);
    sink_.account(outcome::skipped, row_kind, 1);
    return false;
  }
}

void counter_session::end() noexcept {
  if (open_ == nullptr || owner_ != std::this_thread::get_id()) {
    return;
  }
  auto& counters = *std::exchange(open_, nullptr);
  try {
    counters.profiler->pop();
  } catch (const std::exception& failure) {
    give_up(failure);
  }
  counters.waiting.back().end = realtime_now();
}

/// @throws cupti_error when the counters cannot be taken.
counter_session::context_counters& counter_session::counters_of(CUcontext context) {
  for (auto& known : contexts_) {
    if (known->context == context) {
      return *known;
    }
  }
  auto fresh = std::make_unique<context_counters>();
  fresh->context = context;
  fresh->device = device_of(driver_, context);
  const std::string chip = chip_name(cupti_, fresh->device);
  fresh->host = make_one_pass_host(cupti_, chip);
  arm(*fresh);
  describe(*fresh, chip);
  contexts_.push_back(std::move(fresh));
  return *contexts_.back();
}

void counter_session::arm(context_counters& counters) {
  counters.profiler = std::make_unique<range_profiler>(cupti_, driver_, *counters.host,
                                                       counters.context, capacity_);
}

void counter_session::describe(const context_counters& counters, const std::string& chip) {
  const nlohmann::json facts{{"method", counters.profiler->method()},
                             {"metrics", counter_metrics},
                             {"passes", counters.host->passes()},
                             {"capacity", capacity_},
                             {"chip", chip},
                             {"device", counters.device}};
  sink_.document("counters", facts.dump());
}

void counter_session::renew_if_full(context_counters& counters) {
  if (counters.profiler == nullptr || counters.profiler->full()) {
    deliver(counters);
    arm(counters);
  }
}

void counter_session::push(context_counters& counters, std::string_view name, std::uint32_t cell,
                           std::uint32_t contender) {
  counter_range row{};
  row.name = sink_.intern(name);
  row.method = sink_.intern(counters.profiler->method());
  row.cell = cell;
  row.contender = contender;
  row.thread = thread_id{static_cast<std::uint32_t>(gettid())};
  row.device = static_cast<std::uint32_t>(counters.device);
  const bool unclean = counters.waiting.empty() && counters.profiler->first_is_unclean();
  row.flags = unclean ? counter_range::first_of_pass : 0;
  counters.waiting.reserve(capacity_);
  row.start = realtime_now();
  counters.profiler->push();
  row.ordinal = ordinals_[row.name]++;
  counters.waiting.push_back(row);
  open_ = &counters;
  owner_ = std::this_thread::get_id();
}

/// Delivers the waiting rows that got values; counts the others.
void counter_session::deliver(context_counters& counters) noexcept {
  std::vector<counter_range> rows;
  try {
    if (counters.profiler != nullptr) {
      rows.reserve(counters.waiting.size());
      for (const auto& [number, values] : counters.profiler->collect()) {
        if (number < counters.waiting.size() && values.complete()) {
          rows.push_back(with(counters.waiting[number], values));
        }
      }
    }
  } catch (const std::exception& failure) {
    give_up(failure);
  }
  counters.profiler.reset();
  if (rows.size() < counters.waiting.size()) {
    sink_.account(outcome::skipped, row_kind, counters.waiting.size() - rows.size());
  }
  if (!rows.empty()) {
    sink_.deliver(std::span<const counter_range>{rows});
  }
  counters.waiting.clear();
}

void counter_session::give_up(const std::exception& failure) noexcept {
  if (std::exchange(broken_, true)) {
    return;
  }
  try {
    sink_.document(
        "warning",
        nlohmann::json{{"text", "counters stopped: " + std::string{failure.what()}}}.dump(
            -1, ' ', false, nlohmann::json::error_handler_t::replace));
  } catch (const std::exception&) {
    sink_.account(outcome::dropped, "document", 1);
  }
}

}  // namespace opscope::cupti
