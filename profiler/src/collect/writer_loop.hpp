// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

#include "collect/event_decoder.hpp"
#include "collect/notes.hpp"
#include "collect/output.hpp"
#include "collect/session_sink.hpp"
#include "collect/thread_log.hpp"

namespace opscope::collect {

/// The writer thread of a session: every 100 ms, or once 1 MiB waits, it turns what the threads and
/// the sources delivered into segments of the capture.
class writer_loop {
 public:
  struct inputs {
    thread_registry& registry;
    chunk_pool& pool;
    session_sink& sink;
    notes& told;
    std::uint32_t generation;
  };

  /// Discards what earlier sessions left in the threads' logs, and starts the thread.
  writer_loop(const inputs& from, output& to);

  /// Returns once all that was delivered before the call is in the file.
  void flush();

  /// Writes all that was delivered and ends the thread. Once.
  void finish();

  ~writer_loop() { finish(); }
  writer_loop(const writer_loop&) = delete;
  writer_loop& operator=(const writer_loop&) = delete;

 private:
  void run() noexcept;
  void pass();
  void drain(thread_log& log, event_decoder& decoder);
  void take_losses(thread_log& log, bool counted);
  void announce(thread_log& log);
  void watch_clock();
  [[nodiscard]] bool much_waits() const noexcept;

  inputs from_;
  output& to_;
  event_decoder decoder_;
  clock_pair last_pair_{};
  std::uint32_t held_after_pass_ = 0;  ///< chunks that threads go on filling

  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t wanted_ = 0;  ///< flushes asked for
  std::uint64_t done_ = 0;    ///< flushes made
  bool finishing_ = false;
  std::thread thread_;
};

}  // namespace opscope::collect
