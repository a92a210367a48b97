// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "model/ledger.hpp"

namespace opscope::collect {

/// What is said about a session beside its records: documents, warnings, losses counted elsewhere.
/// Thread-safe and noexcept, since C callbacks call it; without memory a note is lost.
class notes {
 public:
  struct document {
    std::string name;
    std::string json;
  };

  /// Forgets the ended session's notes; thread names stay.
  void clear() noexcept;

  void account(outcome what, std::string_view record, std::uint64_t count) noexcept;
  void add(std::string_view name, std::string_view json) noexcept;

  /// Prints `opscope: warning: <line>` on stderr and adds a document `warning`, once per line and
  /// session.
  void warn(std::string_view line) noexcept;

  /// A warning that is the same in each session of the process: stderr shows it in one only.
  void warn_of_process(std::string_view line) noexcept;

  /// Names a thread for this session and those to come; the last name wins.
  void name_thread(std::uint32_t os_id, std::string_view name) noexcept;

  /// Hands over the thread names that came since the last call; after clear(), all of them.
  [[nodiscard]] std::map<std::uint32_t, std::string> take_thread_names() noexcept;

  /// Hands over the documents that came since the last call.
  [[nodiscard]] std::vector<document> take_documents() noexcept;
  [[nodiscard]] ledger counted() const;

  /// In a forked child: another thread may have held the lock.
  void reset_after_fork() noexcept;

 private:
  void note(std::string_view line);

  mutable std::mutex mutex_;
  ledger ledger_;
  std::vector<document> documents_;
  std::set<std::string, std::less<>> noted_;   ///< warnings among the session's documents
  std::set<std::string, std::less<>> warned_;  ///< that the session has shown
  std::set<std::string, std::less<>> warned_of_process_;
  std::map<std::uint32_t, std::string> thread_names_;
  std::map<std::uint32_t, std::string> new_thread_names_;
};

}  // namespace opscope::collect
