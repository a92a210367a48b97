// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <ostream>
#include <streambuf>
#include <string>

namespace opscope::analyse {

/// Events of a Chrome trace by phase and by category.
struct trace_census {
  struct category {
    std::uint64_t count = 0;
    std::int64_t duration_ns = 0;  ///< of its X events
    bool operator==(const category&) const = default;
  };
  std::uint64_t events = 0;
  std::map<std::string, std::uint64_t, std::less<>> by_phase = {};
  std::map<std::string, category, std::less<>> by_category = {};
  std::uint64_t unreadable = 0;  ///< events that were no JSON object
  bool operator==(const trace_census&) const = default;
};

/// A stream that keeps nothing of the Chrome trace written to it but its counts. Memory: one event.
class census_stream : public std::ostream {
 public:
  census_stream() : std::ostream(nullptr) { rdbuf(&buffer_); }

  [[nodiscard]] const trace_census& census() const noexcept { return buffer_.census; }

 private:
  class counting_buffer : public std::streambuf {
   public:
    trace_census census;

   protected:
    int_type overflow(int_type byte) override;
    std::streamsize xsputn(const char* text, std::streamsize size) override;

   private:
    void take(char byte);
    void take_text(char byte);
    [[nodiscard]] bool in_event() const noexcept { return in_events_ && depth_ >= 3; }
    void count_event();

    std::string event_;  ///< text of the event that is being written
    std::string key_;    ///< last string at the document's top level
    int depth_ = 0;
    bool in_string_ = false;
    bool escaped_ = false;
    bool in_events_ = false;
  };
  counting_buffer buffer_;
};

}  // namespace opscope::analyse
