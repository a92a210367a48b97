// SPDX-License-Identifier: Apache-2.0
//
// A comparison's life: time everything untraced; only then start a session, which touches CUPTI;
// write what was timed; call each contender under the timeline; pause the timeline and call each
// under hardware counters; stop. The session is closed on every way out.
#include "compare/engine.hpp"

#include <array>
#include <chrono>
#include <exception>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "compare/timing.hpp"
#include "opscope/error.hpp"

namespace opscope::comparison {
namespace {

using clock = std::chrono::steady_clock;

constexpr std::uint32_t timeline_warmup = 3;

/// A session that ends with its scope.
class session {
 public:
  session(const plan& what, const timing_device& device, const opscope_runtime& runtime)
      : plan_(what), runtime_(runtime) {
    const std::string output = what.output.string();
    opscope_session_options options{};
    options.size = sizeof(options);
    options.output = output.c_str();
    options.force = what.force ? 1 : 0;
    options.strict = what.strict ? 1 : 0;
    options.python = what.python;
    options.shapes = 1;
    options.dram = device.has_events() ? OPSCOPE_DRAM_RANGES : OPSCOPE_DRAM_OFF;
    options.no_gpu = device.has_events() ? 0 : 1;
    std::array<char, 512> error{};
    int failed = 0;
    plan_.unlocked([&] { failed = runtime_.session_start(&options, error.data(), error.size()); });
    if (failed != 0) {
      throw opscope::error(std::string("compare: cannot record: ") + error.data());
    }
  }

  session(const session&) = delete;
  session& operator=(const session&) = delete;
  session(session&&) = delete;
  session& operator=(session&&) = delete;

  ~session() {
    if (!open_) {
      return;
    }
    const std::string failure = end();
    if (!failure.empty()) {
      runtime_.warn(failure.c_str());
    }
  }

  void pause() {
    plan_.unlocked([&] { runtime_.session_pause(); });
  }

  void stop() {
    const std::string failure = end();
    if (!failure.empty()) {
      throw opscope::error("compare: cannot finish the capture: " + failure);
    }
  }

 private:
  /// @return why it failed, empty when it did not.
  std::string end() {
    open_ = false;
    std::array<char, 512> error{};
    int failed = 0;
    plan_.unlocked([&] { failed = runtime_.session_stop(error.data(), error.size()); });
    return failed != 0 ? error.data() : "";
  }

  const plan& plan_;
  const opscope_runtime& runtime_;
  bool open_ = true;
};

void refuse_early(const plan& what, const opscope_runtime& runtime) {
  if (__atomic_load_n(runtime.recording, __ATOMIC_RELAXED) != 0) {
    throw opscope::error(
        "compare: a profile is on in this process: its cost would be in the timing (end it first)");
  }
  const std::filesystem::path folder = std::filesystem::absolute(what.output).parent_path();
  if (!std::filesystem::is_directory(folder)) {
    throw opscope::error("compare: cannot write " + what.output.string() + ": no folder " +
                         folder.string() + " (create it)");
  }
  if (!what.force && std::filesystem::exists(what.output)) {
    throw opscope::error("compare: cannot write " + what.output.string() +
                         ": it exists (remove it, choose another path, or set force to true)");
  }
}

/// Calls the contenders of a cell in turns, one round after the other.
template <typename Call>
void each_in_turn(const plan& what, std::uint32_t cell, std::uint32_t calls, Call&& call) {
  const std::vector<callable>& contenders = what.cells[cell];
  const auto count = static_cast<std::uint32_t>(contenders.size());
  const auto begin = clock::now();
  for (std::uint32_t round = 0; round < calls; ++round) {
    if (round >= what.limits.fewest && clock::now() - begin > what.limits.budget) {
      return;
    }
    if (what.poll) {
      what.poll();
    }
    for (std::uint32_t turn = 0; turn < count; ++turn) {
      const std::uint32_t contender = turn_of(round, turn, count);
      if (contenders[contender].call) {
        call(contender, round);
      }
    }
  }
}

void mark_call(const callable& target, std::uint32_t cell, std::uint32_t contender,
               std::uint32_t ordinal, const opscope_runtime& runtime) {
  const std::function<void()>& call = target.traced ? target.traced : target.call;
  const std::uint64_t begin = runtime.now();
  call();
  runtime.call_mark(begin, runtime.now(), cell, contender, ordinal);
}

/// The first calls under the collector pay for its buffers and CUPTI's: they carry no mark.
void warm_timeline(const plan& what, timing_device& device) {
  for (const std::vector<callable>& contenders : what.cells) {
    if (contenders.empty()) {
      continue;
    }
    for (std::uint32_t i = 0; i < timeline_warmup; ++i) {
      for (const callable& target : contenders) {
        if (target.call) {
          (target.traced ? target.traced : target.call)();
          device.synchronize();
          target.release();
        }
      }
    }
    return;
  }
}

void record_timeline(const plan& what, timing_device& device, const opscope_runtime& runtime) {
  warm_timeline(what, device);
  for (std::uint32_t cell = 0; cell < what.cells.size(); ++cell) {
    each_in_turn(what, cell, what.limits.timeline_calls,
                 [&](std::uint32_t contender, std::uint32_t ordinal) {
                   const callable& target = what.cells[cell][contender];
                   device.synchronize();
                   mark_call(target, cell, contender, ordinal, runtime);
                   device.synchronize();
                   target.release();
                 });
  }
}

enum class cache { warm, cold };

/// @return false when the counters refuse.
bool count_call(const callable& target, cache state, std::uint32_t cell, std::uint32_t contender,
                timing_device& device, const opscope_runtime& runtime) {
  if (state == cache::warm) {
    target.call();
    target.release();
  } else {
    device.evict();
    device.synchronize();
  }
  const std::string_view name = state == cache::warm ? "warm" : "cold";
  const opscope_name label{name.data(), static_cast<std::uint32_t>(name.size()), 0};
  if (runtime.counter_begin(label, cell, contender) == 0) {
    return false;
  }
  std::exception_ptr failure;
  try {
    target.call();
  } catch (...) {
    failure = std::current_exception();
  }
  runtime.counter_end();
  if (failure) {
    std::rethrow_exception(failure);
  }
  device.synchronize();
  target.release();
  return true;
}

void record_counters(const plan& what, timing_device& device, const opscope_runtime& runtime) {
  bool available = true;
  for (std::uint32_t cell = 0; cell < what.cells.size() && available; ++cell) {
    for (const cache state : {cache::warm, cache::cold}) {
      each_in_turn(what, cell, what.limits.counter_calls,
                   [&](std::uint32_t contender, std::uint32_t) {
                     available = available && count_call(what.cells[cell][contender], state, cell,
                                                         contender, device, runtime);
                   });
    }
  }
}

}  // namespace

void run(const plan& what, nlohmann::json& document, timing_device& device,
         const opscope_runtime& runtime) {
  refuse_early(what, runtime);
  document["device"] = device.name();
  document["cupti_touched_before_timing"] = device.has_events() && runtime.cupti_touched() != 0;
  const std::vector<sample> samples = time_untraced(what, document, device);

  if (what.attach) {
    what.attach();
  }
  session recording(what, device, runtime);
  runtime.document("comparison", document.dump().c_str());
  for (const sample& each : samples) {
    runtime.sample(static_cast<std::uint32_t>(each.what), each.cell, each.contender, each.ordinal,
                   each.value);
  }
  record_timeline(what, device, runtime);
  if (device.has_events()) {
    recording.pause();
    record_counters(what, device, runtime);
  }
  recording.stop();
}

}  // namespace opscope::comparison
