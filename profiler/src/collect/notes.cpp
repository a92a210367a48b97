// SPDX-License-Identifier: Apache-2.0
#include "collect/notes.hpp"

#include <cstdio>
#include <new>
#include <nlohmann/json.hpp>
#include <utility>

namespace opscope::collect {
namespace {

void show(std::string_view line) noexcept {
  std::fprintf(stderr, "opscope: warning: %.*s\n", static_cast<int>(line.size()), line.data());
}

}  // namespace

void notes::clear() noexcept {
  const std::scoped_lock hold{mutex_};
  ledger_ = {};
  documents_.clear();
  noted_.clear();
  warned_.clear();
  new_thread_names_.merge(std::map{thread_names_});
}

void notes::name_thread(std::uint32_t os_id, std::string_view name) noexcept try {
  const std::scoped_lock hold{mutex_};
  thread_names_.insert_or_assign(os_id, std::string{name});
  new_thread_names_.insert_or_assign(os_id, std::string{name});
} catch (...) {  // without memory the thread keeps the name that the system has
}

std::map<std::uint32_t, std::string> notes::take_thread_names() noexcept {
  const std::scoped_lock hold{mutex_};
  return std::exchange(new_thread_names_, {});
}

void notes::account(outcome what, std::string_view record, std::uint64_t count) noexcept try {
  const std::scoped_lock hold{mutex_};
  ledger_.add(what, record, count);
} catch (...) {
  std::fputs("opscope: warning: no memory left to count a loss (the ledger is short)\n", stderr);
}

void notes::add(std::string_view name, std::string_view json) noexcept try {
  const std::scoped_lock hold{mutex_};
  documents_.push_back({std::string{name}, std::string{json}});
} catch (...) {
  std::fputs("opscope: warning: no memory left for a document of the capture\n", stderr);
}

void notes::note(std::string_view line) {
  if (!noted_.emplace(line).second) return;
  const nlohmann::json json{{"text", line}};
  documents_.push_back(
      {"warning", json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)});
}

void notes::warn(std::string_view line) noexcept try {
  {
    const std::scoped_lock hold{mutex_};
    note(line);
    if (!warned_.emplace(line).second) return;
  }
  show(line);
} catch (...) {
  show(line);
}

void notes::warn_of_process(std::string_view line) noexcept try {
  {
    const std::scoped_lock hold{mutex_};
    note(line);
    if (!warned_of_process_.emplace(line).second || !warned_.emplace(line).second) return;
  }
  show(line);
} catch (...) {
  show(line);
}

std::vector<notes::document> notes::take_documents() noexcept {
  const std::scoped_lock hold{mutex_};
  return std::exchange(documents_, {});
}

ledger notes::counted() const {
  const std::scoped_lock hold{mutex_};
  return ledger_;
}

void notes::reset_after_fork() noexcept { new (&mutex_) std::mutex; }

}  // namespace opscope::collect
