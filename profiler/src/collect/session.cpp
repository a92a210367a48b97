// SPDX-License-Identifier: Apache-2.0
//
// Start: file and writer thread, then the sources and layers, last the recording flag. Stop goes
// the other way: layers end first (they write what is still open while recording is on), then the
// flag falls, emissions that had begun are waited for, sources deliver the rest, and the writer
// thread makes its last pass before the file is closed.
#include "collect/session.hpp"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <ranges>
#include <string>
#include <utility>

#include "collect/clock.hpp"
#include "collect/own_cost.hpp"
#include "collect/quiet_thread.hpp"
#include "opscope/error.hpp"

namespace opscope::collect {
namespace {

using namespace std::chrono_literals;

constexpr auto flush_every = 250ms;
constexpr auto longest_emission = 1s;

long barrier(int command) noexcept { return ::syscall(SYS_membarrier, command, 0, 0); }

}  // namespace

session::session(const session_context& context, const opscope_session_options& options,
                 std::span<const opscope_layer* const> layers)
    : context_{context}, options_{options}, layers_{layers.begin(), layers.end()} {
  // An eighth is for rows on their way from the sources to the file.
  const std::size_t memory = options_.memory_bytes();
  if (const int why = context_.pool.room_for(memory); why != 0) {
    throw error("cannot start the session: the buffers of " + std::to_string(memory >> 20U) +
                " MiB: " + std::strerror(why) + " (lower memory)");
  }
  context_.pool.limit(memory - memory / 8);
  const std::string own_cost = measure_own_cost(context_.pool);
  const std::string header = session_header(options_, now_ns(), own_cost, context_.make.touched());
  capture::writer writer{options_.output(), options_.get().force != 0, header};
  if (const auto& aside = writer.set_aside(); !aside.empty()) {
    context_.told.warn("a recording of that name was cut short; it is kept as '" + aside.string() +
                       "' (read or remove it)");
  }
  output_ = std::make_unique<output>(std::move(writer), context_.names, context_.told);
  sink_ = std::make_unique<session_sink>(context_.names, context_.told, memory / 8);
  barrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
  const std::uint32_t generation = context_.hot.generation.load() + 1;
  context_.hot.generation.store(generation);
  context_.hot.wait.store(options_.get().wait_when_full);
  context_.hot.writing.store(1);
  try {
    writer_ = std::make_unique<writer_loop>(
        writer_loop::inputs{context_.registry, context_.pool, *sink_, context_.told, generation},
        *output_);
    start_source();
    if (options_.get().dram != OPSCOPE_DRAM_OFF && options_.get().strict != 0) start_counters();
    start_layers();
    if (source_on_) flush_thread_ = quiet_thread("opscope-flush", [this] { flush_periodically(); });
  } catch (...) {
    abandon();
    throw;
  }
  context_.hot.active.store(1);
  context_.hot.recording.store(1);
}

session::~session() {
  if (writer_) abandon();
}

void session::stop(bool at_exit) {
  if (at_exit) leave_interpreter();
  stop_layers();
  end_recording();
  stop_source();
  {
    const std::scoped_lock hold{counter_mutex_};
    if (counters_ && counter_state_ == counter_state::started) counters_->stop();
    counters_.reset();
    counter_state_ = counter_state::unavailable;
  }
  const timestamp end{static_cast<std::int64_t>(now_ns())};
  end_writing();
  // What is said from here on, before a session as during it, belongs to the next one.
  const struct forget {
    notes& told;
    ~forget() { told.clear(); }
  } forget_at_end{context_.told};
  output_->close(end, context_.told.counted());
}

void session::pause() {
  if (paused_) return;
  paused_ = true;
  stop_layers();
  context_.hot.recording.store(0);
  wait_for_emissions();
  const std::scoped_lock hold{source_mutex_};
  if (source_on_) source_->stop();
  source_on_ = false;
}

void session::resume() {
  if (!paused_) return;
  paused_ = false;
  if (source_) {
    const std::scoped_lock hold{source_mutex_};
    try {
      source_->start({.api = options_.get().no_api == 0}, *sink_);
      source_on_ = true;
    } catch (const error& failed) {
      context_.told.warn(std::string{failed.what()} + "; GPU work after the pause is not recorded");
    }
  }
  for (const opscope_layer* layer : layers_) {
    try {
      start_layer(*layer);
    } catch (const error& failed) {
      context_.told.warn(failed.what());
    }
  }
  context_.hot.recording.store(1);
}

void session::flush() {
  {
    const std::scoped_lock hold{source_mutex_};
    if (source_on_) {
      // Only a stop waits for the device and delivers what is incomplete.
      source_->stop();
      source_on_ = false;
      try {
        source_->start({.api = options_.get().no_api == 0}, *sink_);
        source_on_ = true;
      } catch (const error& failed) {
        context_.told.warn(std::string{failed.what()} + "; GPU work from here on is not recorded");
      }
    }
  }
  writer_->flush();
}

void session::join(const opscope_layer& layer) {
  layers_.push_back(&layer);
  if (paused_) return;
  try {
    start_layer(layer);
  } catch (const error& failed) {
    context_.told.warn(failed.what());
  }
}

bool session::begin_counters(std::string_view name, std::uint32_t cell,
                             std::uint32_t contender) noexcept try {
  if (options_.get().dram == OPSCOPE_DRAM_OFF) return false;
  const std::scoped_lock hold{counter_mutex_};
  start_counters();
  if (counter_state_ == counter_state::started && counters_->begin(name, cell, contender))
    return true;
  if (counter_state_ != counter_state::started) {
    context_.told.account(outcome::skipped, "counter_range", 1);
  }
  return false;
} catch (...) {
  return false;
}

void session::end_counters() noexcept {
  const std::scoped_lock hold{counter_mutex_};
  if (counter_state_ == counter_state::started) counters_->end();
}

void session::start_source() {
  if (options_.get().no_gpu != 0) return;
  source_ = context_.make.activity();
  try {
    source_->start({.api = options_.get().no_api == 0}, *sink_);
    source_on_ = true;
  } catch (const no_gpu& failed) {
    source_.reset();
    if (options_.get().strict != 0) throw;
    context_.told.warn_of_process(failed.what());
  } catch (const error& failed) {
    source_.reset();
    missing(failed.what());
  }
}

void session::stop_source() noexcept {
  {
    const std::scoped_lock hold{flush_mutex_};
    flush_ends_ = true;
  }
  flush_wake_.notify_all();
  if (flush_thread_.joinable()) flush_thread_.join();
  const std::scoped_lock hold{source_mutex_};
  if (source_on_) source_->stop();
  source_on_ = false;
}

/// Takes the counters, once; with strict a failure refuses the session, otherwise it is a warning.
void session::start_counters() {
  if (counter_state_ != counter_state::idle) return;
  counter_state_ = counter_state::unavailable;
  try {
    counters_ = context_.make.counters();
    counters_->start(options_.get().counter_capacity, *sink_);
    counter_state_ = counter_state::started;
  } catch (const error& failed) {
    if (context_.hot.active.load() == 0) return missing(failed.what());
    context_.told.warn(failed.what());
  }
}

void session::start_layers() {
  for (const opscope_layer* layer : layers_) start_layer(*layer);
}

void session::start_layer(const opscope_layer& layer) {
  if (!options_.wants(layer.name)) return;
  std::array<char, 512> reason{};
  if (layer.start(&options_.get(), reason.data(), reason.size()) == 0) {
    started_.push_back(&layer);
    return;
  }
  missing(std::string{"cannot record "} + layer.name + ": " + reason.data());
}

void session::stop_layers() noexcept {
  for (const opscope_layer* layer : std::views::reverse(started_)) layer->stop();
  started_.clear();
}

void session::leave_interpreter() noexcept {
  const auto is_python = [](const opscope_layer* layer) {
    return std::string_view{layer->name} == "python";
  };
  if (std::erase_if(started_, is_python) == 0) return;
  context_.told.warn(
      "the program ended without a stop: Python frames that were open are not in the capture (end "
      "the profile first)");
  context_.told.account(outcome::skipped, "python_function", 1);
}

void session::missing(const std::string& line) const {
  if (options_.get().strict != 0) throw error(line);
  context_.told.warn(line);
}

void session::end_recording() noexcept {
  context_.hot.recording.store(0);
  context_.hot.active.store(0);
  wait_for_emissions();
}

/// From here on threads that end free their logs themselves.
void session::end_writing() noexcept {
  if (writer_) writer_->finish();
  writer_.reset();
  context_.hot.writing.store(0);
}

/// Once this returns, every emission that saw the flag up is in its log, or counted as lost when
/// its thread does not get on. The barrier makes the other threads' `busy` visible, which they set
/// without a fence. The calling thread may stand in an emission itself, below a signal handler.
void session::wait_for_emissions() noexcept {
  if (barrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0) std::this_thread::sleep_for(1ms);
  const auto until = std::chrono::steady_clock::now() + longest_emission;
  const auto self = static_cast<std::uint32_t>(::syscall(SYS_gettid));
  const auto busy = [&](bool own) {
    std::uint64_t count = 0;
    const std::scoped_lock hold{context_.registry.mutex};
    context_.registry.for_each([&](const thread_log& log) {
      if (log.busy.load(std::memory_order_acquire) == 0) return;
      if (own || log.state.os_id != self) ++count;
    });
    return count;
  };
  while (busy(false) != 0 && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(50us);
  if (const std::uint64_t lost = busy(true); lost != 0) {
    context_.told.account(outcome::dropped, "event", lost);
  }
}

/// Ends a session that was refused: nothing of it stays.
void session::abandon() noexcept {
  stop_layers();
  end_recording();
  stop_source();
  if (counters_ && counter_state_ == counter_state::started) counters_->stop();
  end_writing();
  if (output_) output_->discard();
  context_.told.clear();
}

void session::flush_periodically() noexcept {
  std::unique_lock hold{flush_mutex_};
  while (!flush_wake_.wait_for(hold, flush_every, [this] { return flush_ends_; })) {
    hold.unlock();
    {
      const std::scoped_lock turn{source_mutex_};
      if (source_on_) source_->flush();
    }
    hold.lock();
  }
}

}  // namespace opscope::collect
