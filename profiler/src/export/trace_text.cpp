// SPDX-License-Identifier: Apache-2.0
#include "export/trace_text.hpp"

#include <ostream>
#include <utility>

namespace opscope::exporter {
namespace {

constexpr std::size_t flush_size = std::size_t{256} * 1024;

void place(json_text& text, const track_id& track) {
  text.raw(R"(,"pid":)").integer(track.pid).raw(R"(,"tid":)").integer(track.tid);
}

void head(json_text& text, char phase, std::string_view category, std::string_view quoted_name,
          const track_id& track, timestamp at) {
  const char letter[]{phase, '\0'};
  text.raw(R"({"ph":")").raw(letter).raw(R"(","cat":)").quoted(category);
  text.raw(R"(,"name":)").raw(quoted_name);
  place(text, track);
  text.raw(R"(,"ts":)").microseconds(at);
}

}  // namespace

trace_text::trace_text(std::ostream& out, timestamp origin)
    : out_{out}, origin_{origin}, now_{timestamp::min()} {}

void trace_text::flush() {
  out_.write(text_.text().data(), static_cast<std::streamsize>(text_.size()));
  report_.bytes += text_.size();
  text_.clear();
}

void trace_text::separate() {
  if (text_.size() >= flush_size) flush();
  if (report_.events++ > 0) text_.raw(",\n");
}

void trace_text::count_slice(std::string_view category) {
  const auto found = report_.slices.find(category);
  if (found != report_.slices.end()) {
    ++found->second;
  } else {
    report_.slices.emplace(category, 1);
  }
}

void trace_text::finish() { text_.raw("}}"); }

track_id trace_text::begin_slice(std::string_view category, std::string_view quoted_name,
                                 const base_track& track, timestamp start, timestamp end,
                                 std::vector<arrow_end> ends) {
  advance(start);
  auto& state = tracks_[track.id];
  const auto lane = state.lanes.place(start, end);
  const track_id on{track.id.pid, track.id.tid + static_cast<std::int64_t>(lane) * track.lane_step};
  if (lane >= state.named) {
    auto name = track.name();
    if (lane > 0) name += " (overlap " + std::to_string(lane) + ")";
    name_track(on, name);
    state.named = lane + 1;
  }
  separate();
  head(text_, 'X', category, quoted_name, on, start - origin_);
  text_.raw(R"(,"dur":)").microseconds(end - start).raw(R"(,"args":{)");
  count_slice(category);
  arrows_.open(on, start, end, std::move(ends));
  return on;
}

void trace_text::begin_event(char phase, std::string_view category, std::string_view quoted_name,
                             const track_id& track, timestamp at) {
  advance(at);
  separate();
  head(text_, phase, category, quoted_name, track, at - origin_);
  if (phase == 'i') {
    text_.raw(R"(,"s":"t")");
    count_slice(category);
    arrows_.open(track, at, at, {});
  }
  text_.raw(R"(,"args":{)");
}

void trace_text::begin_async(std::string_view category, std::string_view quoted_name,
                             std::uint64_t id, const track_id& track, const track_id& end_track,
                             timestamp start, timestamp end) {
  const auto write = [&](json_text& text, char phase, const track_id& on, timestamp at) {
    head(text, phase, category, quoted_name, on, at - origin_);
    text.raw(R"(,"id2":{"local":")").integer(id).raw(R"("},"args":{)");
  };
  advance(start);
  separate();
  write(text_, 'b', track, start);
  count_slice(category);
  json_text closing;
  write(closing, 'e', end_track, end);
  closing.raw("}}");
  hold(end, closing.text());
}

void trace_text::counter(std::string_view name, std::int64_t pid, timestamp at,
                         std::string_view args, std::uint64_t values) {
  advance(at);
  separate();
  text_.raw(R"({"ph":"C","name":)").quoted(name).raw(R"(,"pid":)").integer(pid);
  text_.raw(R"(,"ts":)").microseconds(at - origin_).raw(R"(,"args":{)").raw(args).raw("}}");
  report_.counter_values += values;
}

void trace_text::counter_later(std::string_view name, std::int64_t pid, timestamp at,
                               std::string_view args, std::uint64_t values) {
  json_text event;
  event.raw(R"({"ph":"C","name":)").quoted(name).raw(R"(,"pid":)").integer(pid);
  event.raw(R"(,"ts":)").microseconds(at - origin_).raw(R"(,"args":{)").raw(args).raw("}}");
  report_.counter_values += values;
  hold(at, event.text());
}

void trace_text::hold(timestamp at, std::string event) {
  later_.push({at, order_++, std::move(event)});
}

void trace_text::write_arrows() {
  arrows_.settle([this](const arrows::placed& placed) {
    separate();
    const auto label = name(placed.end.kind);
    text_.raw(placed.end.source ? R"({"ph":"s","id":)" : R"({"ph":"f","bp":"e","id":)");
    text_.integer(placed.end.id).raw(R"(,"cat":")").raw(label).raw(R"(","name":")").raw(label);
    text_.raw("\"");
    place(text_, placed.track);
    text_.raw(R"(,"ts":)").microseconds(placed.at - origin_).raw("}");
  });
}

void trace_text::advance(timestamp now) {
  if (now > now_) {
    if (!arrows_.settled()) write_arrows();
    now_ = now;
  }
  while (!later_.empty() && later_.top().at <= now) {
    separate();
    text_.raw(later_.top().event);
    later_.pop();
  }
}

void trace_text::drain() {
  write_arrows();
  while (!later_.empty()) {
    separate();
    text_.raw(later_.top().event);
    later_.pop();
  }
}

void trace_text::name_process(std::int64_t pid, const std::string& name) {
  if (!named_processes_.insert(pid).second) return;
  separate();
  text_.raw(R"({"ph":"M","name":"process_name","pid":)").integer(pid);
  text_.raw(R"(,"tid":0,"args":{"name":)").quoted(name).raw("}}");
}

void trace_text::name_track(const track_id& track, const std::string& name) {
  separate();
  text_.raw(R"({"ph":"M","name":"thread_name")");
  place(text_, track);
  text_.raw(R"(,"args":{"name":)").quoted(name).raw("}}");
}

}  // namespace opscope::exporter
