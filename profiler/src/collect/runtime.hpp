// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "collect/chunk_pool.hpp"
#include "collect/factories.hpp"
#include "collect/name_table.hpp"
#include "collect/notes.hpp"
#include "collect/session.hpp"
#include "collect/thread_log.hpp"

namespace opscope::collect {

/// The collecting side of a process: what outlives sessions. Made once and never destroyed, because
/// threads may emit until the very end.
class runtime {
 public:
  explicit runtime(const factories& with);

  runtime(const runtime&) = delete;
  runtime& operator=(const runtime&) = delete;

  // Hot.
  hot_state hot;
  /// The calling thread's log, made at its first call; nullptr without memory, or at thread exit.
  [[nodiscard]] thread_log* log() noexcept;

  template <typename Event>
  void emit_if(const std::atomic<std::uint32_t>& gate, const Event& event) noexcept;

  // Cold.
  name_table names;
  notes told;
  void register_layer(const opscope_layer& layer);
  void start(const opscope_session_options& options);
  void stop(bool at_exit = false);
  void pause();
  void resume();
  void flush();
  void detach();
  [[nodiscard]] bool begin_counters(std::string_view name, std::uint32_t cell,
                                    std::uint32_t contender) noexcept;
  void end_counters() noexcept;
  [[nodiscard]] const char* path() const noexcept { return path_.c_str(); }
  [[nodiscard]] const char* machine();
  [[nodiscard]] const factories& make() const noexcept { return make_; }

  // Process events.
  void thread_ends(thread_log& log) noexcept;
  void before_fork() noexcept;
  void after_fork_in_parent() noexcept;
  void after_fork_in_child() noexcept;
  void at_exit() noexcept;

 private:
  [[nodiscard]] std::shared_ptr<session> current() const noexcept;
  static void stop_before_exit();

  factories make_;
  chunk_pool pool_;
  thread_registry registry_;
  std::atomic<std::uint64_t> threads_{0};

  mutable std::mutex session_mutex_;  ///< guards the pointer only
  std::shared_ptr<session> session_;
  std::mutex control_;  ///< one start, stop, pause, resume or flush at a time
  std::mutex layers_mutex_;
  std::vector<const opscope_layer*> layers_;
  bool inherits_session_ = false;   ///< forked inside a session: its layers are still started
  bool stops_before_exit_ = false;  ///< also without any layer
  bool gpu_is_parents_ = false;     ///< forked inside a session: no GPU work can be recorded
  std::string path_;
  std::string machine_;
};

/// The process's runtime once install_runtime() made it.
[[nodiscard]] runtime* the_runtime() noexcept;

}  // namespace opscope::collect
