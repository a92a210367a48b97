// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>

#include "capture/reader.hpp"
#include "support/fake_source.hpp"
#include "support/temporary_folder.hpp"

namespace opscope::test {

inline opscope_name name_of(std::string_view text) {
  return {text.data(), static_cast<std::uint32_t>(text.size()), 0};
}

/// An op event from `start` to `end` with nothing else known.
inline opscope_op_event op_event(std::string_view name, std::uint64_t start, std::uint64_t end) {
  opscope_op_event event{};
  event.start_ns = start;
  event.end_ns = end;
  event.id = fake_runtime().next_id();
  event.sequence = -1;
  event.name = name_of(name);
  return event;
}

/// A session over the fakes, in a folder of its own.
class runtime_session {
 public:
  runtime_session() {
    options.size = sizeof options;
    gpu().reset();
  }
  ~runtime_session() { static_cast<void>(runtime.session_stop(nullptr, 0)); }
  runtime_session(const runtime_session&) = delete;
  runtime_session& operator=(const runtime_session&) = delete;

  /// Starts; returns the reason for a refusal, or nothing.
  std::string start(const std::string& file = "a.opscope") {
    output_ = (folder / file).string();
    if (options.output == nullptr) options.output = output_.c_str();
    std::array<char, 1024> reason{};
    const int status = runtime.session_start(&options, reason.data(), reason.size());
    options.output = nullptr;
    return status == 0 ? "" : reason.data();
  }

  [[nodiscard]] std::string stop() const {
    std::array<char, 1024> reason{};
    return runtime.session_stop(reason.data(), reason.size()) == 0 ? "" : reason.data();
  }

  /// Stops and opens what was recorded.
  capture::capture finish() {
    if (const std::string reason = stop(); !reason.empty()) throw std::runtime_error(reason);
    auto opened = capture::capture::open(runtime.session_path());
    if (!opened) throw std::runtime_error(opened.error().message);
    return std::move(opened).value();
  }

  const opscope_runtime& runtime = fake_runtime();
  opscope_session_options options{};
  temporary_folder folder;

 private:
  std::string output_;
};

}  // namespace opscope::test
