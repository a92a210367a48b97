// SPDX-License-Identifier: Apache-2.0
//
// One pass: under the registry's lock every thread's log is read up to what it has published; logs
// of ended threads are freed once they are empty. Events of another generation belong to a past
// session and are left out. Then the sources' rows, the documents, a clock pair a second, and all
// rows gathered go to the file. Emitting threads are never waited for and never signal: the loop
// looks every 10 ms whether enough waits.
#include "collect/writer_loop.hpp"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "collect/clock.hpp"
#include "collect/quiet_thread.hpp"
#include "model/category.hpp"

namespace opscope::collect {
namespace {

using namespace std::chrono_literals;

constexpr auto look_every = 10ms;
constexpr auto write_every = 100ms;
constexpr std::uint32_t chunks_that_wait = 16;  // 1 MiB
constexpr std::size_t bytes_that_wait = 1U << 20;
constexpr std::int64_t clock_pair_every_ns = 1'000'000'000;
constexpr std::int64_t step_ns = 1'000'000;  // slewing moves the clock less than this in a second

constexpr std::array<record_kind, event_types> kind_of_event{
    record_kind::python_frame, record_kind::op, record_kind::range, record_kind::call_mark,
    record_kind::sample};

/// The thread's present name where it still lives, otherwise the one that it began with.
std::string name_of(const thread_log& log) {
  std::string name;
  std::ifstream file{"/proc/self/task/" + std::to_string(log.state.os_id) + "/comm"};
  if (file && std::getline(file, name) && !name.empty()) return name;
  return {log.name.data(), strnlen(log.name.data(), log.name.size())};
}

}  // namespace

writer_loop::writer_loop(const inputs& from, output& to) : from_{from}, to_{to}, decoder_{to} {
  {
    const std::scoped_lock hold{from_.registry.mutex};
    from_.registry.for_each([this](thread_log& log) { take_losses(log, false); });
  }
  thread_ = quiet_thread("opscope-writer", [this] { run(); });
}

void writer_loop::flush() {
  std::unique_lock hold{mutex_};
  const std::uint64_t mine = ++wanted_;
  changed_.notify_all();
  changed_.wait(hold, [&] { return done_ >= mine; });
}

void writer_loop::finish() {
  if (!thread_.joinable()) return;
  {
    const std::scoped_lock hold{mutex_};
    finishing_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void writer_loop::run() noexcept {
  auto last_write = std::chrono::steady_clock::now();
  bool finishing = false;
  while (!finishing) {
    std::uint64_t wanted = 0;
    {
      std::unique_lock hold{mutex_};
      changed_.wait_for(hold, look_every, [&] { return finishing_ || wanted_ != done_; });
      finishing = finishing_;
      wanted = wanted_;
    }
    const auto now = std::chrono::steady_clock::now();
    if (!finishing && wanted == done_ && now - last_write < write_every && !much_waits()) continue;
    last_write = now;
    try {
      pass();
    } catch (const std::exception& failed) {
      from_.told.warn(std::string{"the writer lost a part of the capture: "} + failed.what() +
                      " (give the program more memory)");
      from_.told.account(outcome::dropped, "segment", 1);
    }
    {
      const std::scoped_lock hold{mutex_};
      done_ = wanted;
    }
    changed_.notify_all();
  }
}

bool writer_loop::much_waits() const noexcept {
  return from_.pool.in_use() >= held_after_pass_ + chunks_that_wait ||
         from_.sink.waiting() >= bytes_that_wait;
}

void writer_loop::pass() {
  {
    const std::scoped_lock hold{from_.registry.mutex};
    from_.registry.for_each([this](thread_log& log) { drain(log, decoder_); });
  }
  held_after_pass_ = from_.pool.in_use();
  from_.sink.drain(to_);
  watch_clock();
  for (const auto& [os_id, name] : from_.told.take_thread_names()) {
    to_.add(thread_info{timestamp{static_cast<std::int64_t>(now_ns())}, thread_id{os_id},
                        to_.intern(name)});
  }
  for (const auto& document : from_.told.take_documents()) {
    to_.document(document.name, document.json);
  }
  to_.flush();
}

void writer_loop::drain(thread_log& log, event_decoder& decoder) {
  const bool exited = log.exited.load(std::memory_order_acquire);
  read_events(log, from_.pool, [&](const event_header& header, const std::byte* body) {
    if (header.generation != from_.generation) return;
    if (log.announced_generation != from_.generation) announce(log);
    decoder.decode(header, body);
  });
  take_losses(log, true);
  if (!exited) return;
  if (log.reading != nullptr) from_.pool.give(log.reading);
  from_.registry.remove(log);
  delete &log;
}

void writer_loop::take_losses(thread_log& log, bool counted) {
  for (std::size_t i = 0; i < event_types; ++i) {
    const std::uint64_t dropped = log.dropped[i].load(std::memory_order_relaxed);
    if (counted) {
      to_.counts().add(outcome::dropped, category(kind_of_event[i]),
                       dropped - log.dropped_taken[i]);
    }
    log.dropped_taken[i] = dropped;
  }
  const std::uint64_t skipped = log.shapes_skipped.load(std::memory_order_relaxed);
  if (counted) {
    to_.counts().add(outcome::skipped, "input_shapes", skipped - log.shapes_skipped_taken);
  }
  log.shapes_skipped_taken = skipped;
}

void writer_loop::announce(thread_log& log) {
  log.announced_generation = from_.generation;
  to_.add(thread_info{timestamp{static_cast<std::int64_t>(log.first_seen_ns)},
                      thread_id{log.state.os_id}, to_.intern(name_of(log))});
}

void writer_loop::watch_clock() {
  const clock_pair pair = read_clock_pair();
  const auto elapsed = pair.monotonic - last_pair_.monotonic;
  if (last_pair_.monotonic.count() != 0) {
    const auto step = (pair.start - last_pair_.start) - elapsed;
    if (std::llabs(step.count()) > step_ns) {
      from_.told.add("clock_step", R"({"at_ns":")" + std::to_string(pair.start.count()) +
                                       R"(","step_ns":")" + std::to_string(step.count()) + "\"}");
      from_.told.warn(
          "the system clock was set during the session; times before and after it "
          "do not compare (record again)");
    } else if (elapsed.count() < clock_pair_every_ns) {
      return;
    }
  }
  last_pair_ = pair;
  to_.add(pair);
}

}  // namespace opscope::collect
