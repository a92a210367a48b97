// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <queue>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "export/arrows.hpp"
#include "export/chrome.hpp"
#include "export/json_text.hpp"
#include "export/lanes.hpp"

namespace opscope::exporter {

/// A track that slices are asked to go to; crossing ones go to its lanes.
struct base_track {
  track_id id;
  std::int64_t lane_step = 1;  ///< added to tid for each lane
  std::function<std::string()> name;
};

/// Writes the events of a trace in time order: picks lanes, names tracks when they are first used,
/// ties arrows, and holds back what ends later (`e` and closing counters).
class trace_text {
 public:
  /// @param origin what `ts` 0 is.
  trace_text(std::ostream& out, timestamp origin);

  /// Opens an X event up to `"args":{`; append the args to text() and call finish().
  /// @param quoted_name the name as JSON
  track_id begin_slice(std::string_view category, std::string_view quoted_name,
                       const base_track& track, timestamp start, timestamp end,
                       std::vector<arrow_end> ends = {});
  void finish();

  /// An event of another phase on a track, up to `"args":{`.
  void begin_event(char phase, std::string_view category, std::string_view quoted_name,
                   const track_id& track, timestamp at);

  /// A range that may cross others and threads: `b` now, `e` when its end is reached.
  void begin_async(std::string_view category, std::string_view quoted_name, std::uint64_t id,
                   const track_id& track, const track_id& end_track, timestamp start,
                   timestamp end);

  /// A counter event now; `args` as JSON members.
  void counter(std::string_view name, std::int64_t pid, timestamp at, std::string_view args,
               std::uint64_t values);
  /// The same later, in its turn.
  void counter_later(std::string_view name, std::int64_t pid, timestamp at, std::string_view args,
                     std::uint64_t values);

  /// Writes all that is due before an event at `now`. Times never go back.
  void advance(timestamp now);
  /// Writes all that is held back.
  void drain();

  /// Names a process once.
  void name_process(std::int64_t pid, const std::string& name);
  void name_track(const track_id& track, const std::string& name);

  [[nodiscard]] json_text& text() noexcept { return text_; }
  [[nodiscard]] exporter::arrows& arrows() noexcept { return arrows_; }
  [[nodiscard]] chrome_report& report() noexcept { return report_; }
  [[nodiscard]] timestamp origin() const noexcept { return origin_; }

  /// Text that is no event: the document around them.
  void flush();

 private:
  struct later {
    timestamp at;
    std::uint64_t order;
    std::string event;
    bool operator>(const later& other) const {
      return at != other.at ? at > other.at : order > other.order;
    }
  };
  struct track_hash {
    std::size_t operator()(const track_id& id) const noexcept {
      return std::hash<std::int64_t>{}(id.pid * 0x1F1F1F1F + id.tid);
    }
  };

  struct track_state {
    exporter::lanes lanes;
    std::size_t named = 0;  // lanes that have their name
  };

  void count_slice(std::string_view category);
  void separate();
  void write_arrows();
  void hold(timestamp at, std::string event);

  std::ostream& out_;
  timestamp origin_;
  timestamp now_;
  json_text text_;
  exporter::arrows arrows_;
  chrome_report report_;
  std::unordered_map<track_id, track_state, track_hash> tracks_;
  std::set<std::int64_t> named_processes_;
  std::priority_queue<later, std::vector<later>, std::greater<>> later_;
  std::uint64_t order_ = 0;
};

}  // namespace opscope::exporter
