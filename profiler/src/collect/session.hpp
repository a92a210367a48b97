// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "collect/factories.hpp"
#include "collect/output.hpp"
#include "collect/session_options.hpp"
#include "collect/session_sink.hpp"
#include "collect/writer_loop.hpp"

namespace opscope::collect {

/// What a session uses of the process's runtime.
struct session_context {
  hot_state& hot;
  chunk_pool& pool;
  thread_registry& registry;
  name_table& names;
  notes& told;
  const factories& make;
};

/// One session: its file, its writer thread, its sources and the layers that take part. All members
/// but the counter functions are called by one thread at a time (the runtime's control lock).
class session {
 public:
  /// Opens the file and starts everything; recording is on when it returns.
  /// @throws opscope::error when the output cannot be written or, with strict, when something that
  /// was asked for cannot be recorded; then nothing is left behind.
  session(const session_context& context, const opscope_session_options& options,
          std::span<const opscope_layer* const> layers);

  /// Ends recording and closes the file.
  /// @param at_exit the process ends: interpreters may be gone, so the Python tracer is left alone.
  /// @throws opscope::error when the file could not be completed; the partial file stays.
  void stop(bool at_exit);

  void pause();
  void resume();
  void flush();

  /// Starts a layer that came after the session.
  void join(const opscope_layer& layer);

  [[nodiscard]] bool begin_counters(std::string_view name, std::uint32_t cell,
                                    std::uint32_t contender) noexcept;
  void end_counters() noexcept;

  [[nodiscard]] const std::string& path() const noexcept { return options_.output(); }

  ~session();
  session(const session&) = delete;
  session& operator=(const session&) = delete;

 private:
  enum class counter_state : std::uint8_t { idle, started, unavailable };

  void start_source();
  void stop_source() noexcept;
  void start_counters();
  void start_layers();
  void stop_layers() noexcept;
  void leave_interpreter() noexcept;
  void start_layer(const opscope_layer& layer);
  void missing(const std::string& line) const;
  void end_recording() noexcept;
  void end_writing() noexcept;
  void wait_for_emissions() noexcept;
  void abandon() noexcept;
  void flush_periodically() noexcept;

  session_context context_;
  session_options options_;
  std::unique_ptr<output> output_;
  std::unique_ptr<session_sink> sink_;
  std::unique_ptr<writer_loop> writer_;
  std::vector<const opscope_layer*> layers_;
  std::vector<const opscope_layer*> started_;
  bool paused_ = false;

  std::mutex source_mutex_;  ///< the flush thread and the session take turns
  std::unique_ptr<activity_source> source_;
  bool source_on_ = false;

  std::mutex counter_mutex_;
  std::unique_ptr<counter_source> counters_;
  counter_state counter_state_ = counter_state::idle;

  std::mutex flush_mutex_;
  std::condition_variable flush_wake_;
  bool flush_ends_ = false;
  std::thread flush_thread_;
};

}  // namespace opscope::collect
