// SPDX-License-Identifier: Apache-2.0
//
// Host events. Python frames, ops, push/pop ranges and API calls of a thread share its track and
// nest there; readers take the call stack from that.
#include "export/chrome_sink.hpp"

#include <bit>
#include <cmath>

#include "correlate/api_name.hpp"
#include "export/names.hpp"
#include "model/category.hpp"

namespace opscope::exporter {
namespace {

constexpr std::int64_t lane_step = 10'000'000;  // beyond Linux's largest thread id
constexpr std::int64_t side_step = 100 * lane_step;
constexpr std::string_view annotation = "user_annotation";

template <record Row>
void clamp_arguments(json_text& text, const Row& row) {
  if ((row.flags & span_flag::open_at_start) != 0) text.raw(R"(,"open_at_start":true)");
  if ((row.flags & span_flag::open_at_end) != 0) text.raw(R"(,"open_at_end":true)");
}

std::string_view name(correlate::call_source source) {
  switch (source) {
    case correlate::call_source::no_frame:
      break;
    case correlate::call_source::no_event:
      return "no call event: an operator, or a builtin in the mode entry";
    case correlate::call_source::earlier_op:
      return "the call began another op before";
    case correlate::call_source::before_session:
      return "the call began before the session";
    case correlate::call_source::call_mark:
      return "call_mark";
    case correlate::call_source::python_call:
      return "python_call";
    case correlate::call_source::user_range:
      return "user_range";
  }
  return "no Python frame around it";
}

}  // namespace

chrome_sink::chrome_sink(const capture::capture& source, const survey& survey,
                         const chrome_options& options, trace_text& trace)
    : source_{source},
      survey_{survey},
      options_{options},
      trace_{trace},
      facts_{session_facts::of(source)},
      device_(document(source, "device")),
      comparison_(document(source, "comparison")) {
  auto threads = source.rows<thread_info>();
  while (const auto* row = threads.next()) threads_[row->thread] = source.text(row->name);
  name_host();
}

void chrome_sink::name_host() {
  trace_.name_process(facts_.pid, "rank " + std::to_string(facts_.rank) + " CPU");
}

std::string chrome_sink::thread_name(thread_id thread) const {
  const auto found = threads_.find(thread);
  if (found != threads_.end() && !found->second.empty()) return found->second;
  return "thread " + std::to_string(static_cast<std::uint32_t>(thread));
}

base_track chrome_sink::host_track(thread_id thread) {
  return {{facts_.pid, static_cast<std::int64_t>(thread)}, lane_step, [this, thread] {
            return thread_name(thread);
          }};
}

base_track chrome_sink::side_track(thread_id thread) {
  return {{facts_.pid, static_cast<std::int64_t>(thread) + side_step}, lane_step, [this, thread] {
            return "overhead, " + thread_name(thread);
          }};
}

const std::string& chrome_sink::quoted(string_id id) {
  auto& text = quoted_[id];
  if (text.empty()) text = json_text{}.quoted(source_.text(id)).text();
  return text;
}

const std::string* chrome_sink::json_of(string_id id) {
  if (id == string_id{}) return nullptr;
  const auto [entry, fresh] = json_.try_emplace(id);
  if (fresh && nlohmann::json::accept(source_.text(id))) entry->second = source_.text(id);
  return entry->second.empty() ? nullptr : &entry->second;
}

void chrome_sink::on(const python_frame& row) {
  if (!options_.python) return;
  project_before(row.start, row.end);
  scratch_.clear();
  const bool named_whole = (row.flags & (python_frame::c_call | python_frame::module_call)) != 0;
  if (!named_whole && row.file != string_id{}) {
    scratch_.append(short_path(source_.text(row.file)));
    scratch_.append("(").append(std::to_string(row.line)).append("): ");
  }
  scratch_.append(source_.text(row.name));
  std::vector<arrow_end> ends;
  if (options_.arrows && survey_.callers.contains(row.id)) {
    ends.push_back({arrow_kind::opscope, true, row.id});
  }
  const auto name_text = json_text{}.quoted(scratch_);
  trace_.begin_slice(category(row.kind), name_text.text(), host_track(row.thread), row.start,
                     row.end, std::move(ends));
  auto& text = trace_.text();
  text.raw(R"("Python id":)").integer(row.id);
  if (row.parent != 0) text.raw(R"(,"Python parent id":)").integer(row.parent);
  if (row.file != string_id{}) {
    text.raw(R"(,"opscope":{"file":)").raw(quoted(row.file));
    text.raw(R"(,"line":)").integer(row.line);
    clamp_arguments(text, row);
    text.raw("}");
  }
  trace_.finish();
}

std::vector<arrow_end> chrome_sink::op_ends(const op& row, const correlate::crossing* crossing) {
  std::vector<arrow_end> ends;
  if (!options_.arrows) return ends;
  if (const auto forward = pairs_.forward_of(row)) {
    ends.push_back({arrow_kind::fwdbwd, false, *forward});
  }
  if (survey_.forwards.contains(row.id)) ends.push_back({arrow_kind::fwdbwd, true, row.id});
  if (crossing == nullptr) return ends;
  if (crossing->caller != 0) {
    if (options_.python) {
      ends.push_back({arrow_kind::opscope, false, crossing->caller});
    } else {
      trace_.arrows().leave_out(arrow_kind::opscope);
    }
  } else if (crossing->mark != nullptr) {
    const auto key = mark_key(*crossing->mark, source_.session_start());
    ends.push_back({arrow_kind::opscope, false, key});
  }
  if (!crossing->launches.empty()) ends.push_back({arrow_kind::opscope, true, row.id});
  for (const auto& launch : crossing->launches) launches_.insert(launch.correlation);
  return ends;
}

void chrome_sink::on(const op& row, const correlate::crossing* crossing,
                     const correlate::op_link& /*link*/) {
  project_before(row.start, row.end);
  trace_.begin_slice(category(row.kind), quoted(row.name), host_track(row.thread), row.start,
                     row.end, op_ends(row, crossing));
  op_arguments(row);
  if (crossing != nullptr) own_op_arguments(row, *crossing);
  trace_.finish();
}

void chrome_sink::op_arguments(const op& row) {
  auto& text = trace_.text();
  text.raw(R"("External id":)").integer(row.id);
  if (row.sequence >= 0) {
    text.raw(R"(,"Sequence number":)").integer(row.sequence);
    text.raw(R"(,"Fwd thread id":)").integer(row.forward_thread);
  }
  if (const auto* dims = json_of(row.input_dims)) text.raw(R"(,"Input Dims":)").raw(*dims);
  if (const auto* types = json_of(row.input_types)) text.raw(R"(,"Input type":)").raw(*types);
}

void chrome_sink::own_op_arguments(const op& row, const correlate::crossing& crossing) {
  auto& text = trace_.text();
  const auto& stages = crossing.stages;
  text.raw(R"(,"opscope":{"total_ns":)").integer(stages.total.count());
  const auto stage = [&text](std::string_view key, std::optional<std::chrono::nanoseconds> value) {
    if (value) text.raw(",\"").raw(key).raw("\":").integer(value->count());
  };
  stage("python_ns", stages.python);
  stage("dispatch_ns", stages.dispatch);
  stage("launch_ns", stages.launch);
  stage("between_ns", stages.between);
  stage("return_ns", stages.return_);
  stage("op_ns", stages.op);
  text.raw(R"(,"launches":)").integer(crossing.launches.size());
  text.raw(crossing.called ? R"(,"called_by":")" : R"(,"no_t0":")");
  text.raw(name(crossing.source)).raw("\"");
  const bool has_bytes = (row.flags & op::has_bytes) != 0;
  const bool at_least = (row.flags & op::bytes_at_least) != 0;
  if (has_bytes) ideal_bytes(row.input_bytes + row.output_bytes, at_least);
  if (crossing.launches.size() == 1) {
    only_launches_[row.id] = {row.input_bytes + row.output_bytes, has_bytes, at_least};
  }
  if (crossing.counters != nullptr) counter_arguments(*crossing.counters);
  clamp_arguments(text, row);
  text.raw("}");
}

void chrome_sink::ideal_bytes(std::uint64_t bytes, bool at_least) {
  trace_.text().raw(R"(,"bytes_ideal":)").integer(bytes);
  if (at_least) trace_.text().raw(R"(,"bytes_ideal_method":"ideal, lower bound")");
}

void chrome_sink::counter_arguments(const correlate::counted& counters) {
  auto& text = trace_.text();
  const auto whole = [&text](std::string_view key, double value) {
    if (!correlate::is_possible(value)) return;
    text.raw(",\"").raw(key).raw("\":").integer(std::llround(value));
  };
  const auto& values = counters.values;
  whole("dram_read_bytes", values.dram_read_bytes);
  whole("dram_write_bytes", values.dram_write_bytes);
  whole("l2_bytes", values.l2_bytes);
  text.raw(R"(,"method":)").raw(quoted(values.method));
  std::string method{source_.text(values.method)};
  if (const auto apart = provenance(counters); !apart.empty()) {
    text.raw(R"(,"counted":)").quoted(apart);
    method += ", " + apart;
  }
  methods_.insert(std::move(method));
}

void chrome_sink::on(const range& row) {
  project_before(row.start, row.end);
  const auto track = host_track(row.thread);
  if ((row.flags & range::mark) != 0) {
    trace_.begin_event('i', annotation, quoted(row.name), track.id, row.start);
    range_arguments(row);
    trace_.finish();
  } else if ((row.flags & range::process_wide) != 0) {
    trace_.begin_async(annotation, quoted(row.name), row.id, track.id,
                       host_track(row.end_thread).id, row.start, row.end);
    range_arguments(row);
    trace_.finish();
  } else {
    trace_.begin_slice(annotation, quoted(row.name), track, row.start, row.end);
    range_arguments(row);
    trace_.finish();
  }
}

void chrome_sink::range_arguments(const range& row) {
  auto& text = trace_.text();
  text.raw(R"("opscope":{"domain":)").raw(quoted(row.domain));
  if (row.category != string_id{}) text.raw(R"(,"category":)").raw(quoted(row.category));
  switch (row.payload_type) {
    case range::payload_kind::none:
      break;
    case range::payload_kind::unsigned_integer:
      text.raw(R"(,"payload":)").integer(row.payload);
      break;
    case range::payload_kind::signed_integer:
      text.raw(R"(,"payload":)").integer(static_cast<std::int64_t>(row.payload));
      break;
    case range::payload_kind::floating:
      text.raw(R"(,"payload":)").number(std::bit_cast<double>(row.payload));
      break;
  }
  if (row.color != 0) text.raw(R"(,"color":)").integer(row.color);
  clamp_arguments(text, row);
  text.raw("}");
}

void chrome_sink::on(const api_call& row, const correlate::op_link& link, bool outermost) {
  if (!outermost) return;
  project_before(row.start, row.end);
  std::vector<arrow_end> ends;
  const auto correlation = static_cast<std::uint64_t>(row.correlation);
  const auto full = source_.text(row.name);
  const auto plain = correlate::plain_api_name(full);
  if (options_.arrows && survey_.launches.contains(correlation)) {
    ends.push_back({arrow_kind::ac2g, true, correlation});
  }
  if (options_.arrows && launches_.erase(row.correlation) > 0) {
    ends.push_back({arrow_kind::opscope, false, link.outermost});
  }
  const auto name_text = json_text{}.quoted(plain);
  trace_.begin_slice(category(row), name_text.text(), host_track(row.thread), row.start, row.end,
                     std::move(ends));
  auto& text = trace_.text();
  if (link.innermost != 0) text.raw(R"("External id":)").integer(link.innermost).raw(",");
  text.raw(R"("cbid":)").integer(row.callback).raw(R"(,"correlation":)").integer(correlation);
  if (plain != full || row.result != 0) {
    text.raw(R"(,"opscope":{"name":)").raw(quoted(row.name));
    text.raw(R"(,"result":)").integer(row.result).raw("}");
  }
  trace_.finish();
}

void chrome_sink::on(const overhead& row) {
  project_before(row.start, row.end);
  trace_.begin_slice(category(row.kind), quoted(row.name), side_track(row.thread), row.start,
                     row.end);
  // Under our own key: readers pair whatever has a `correlation` with a kernel.
  trace_.text()
      .raw(R"("opscope":{"correlation":)")
      .integer(static_cast<std::uint32_t>(row.correlation))
      .raw("}");
  trace_.finish();
}

std::string chrome_sink::contender_name(const call_mark& row) const {
  const auto text_at = [](const nlohmann::json& list, std::size_t index) -> std::string {
    if (!list.is_array() || index >= list.size()) return {};
    const auto& entry = list[index];
    const auto& text = entry.is_object() ? entry.value("label", nlohmann::json{}) : entry;
    return text.is_string() ? text.get<std::string>() : std::string{};
  };
  const auto list = [this](const char* key) {
    return comparison_.is_object() ? comparison_.value(key, nlohmann::json{}) : nlohmann::json{};
  };
  auto contender = text_at(list("contenders"), row.contender);
  auto cell = text_at(list("cells"), row.cell);
  if (contender.empty()) contender = "contender " + std::to_string(row.contender);
  if (cell.empty()) cell = "cell " + std::to_string(row.cell);
  return contender + " \u00B7 " + cell;
}

void chrome_sink::on(const call_mark& row, const correlate::counted* counters) {
  project_before(row.start, row.end);
  std::vector<arrow_end> ends;
  const auto key = mark_key(row, source_.session_start());
  if (options_.arrows && survey_.marks.contains(key)) {
    ends.push_back({arrow_kind::opscope, true, key});
  }
  const auto name_text = json_text{}.quoted(contender_name(row));
  trace_.begin_slice(annotation, name_text.text(), host_track(row.thread), row.start, row.end,
                     std::move(ends));
  auto& text = trace_.text();
  text.raw(R"("opscope":{"cell":)").integer(row.cell);
  text.raw(R"(,"contender":)").integer(row.contender);
  text.raw(R"(,"call":)").integer(row.ordinal);
  if (counters != nullptr) counter_arguments(*counters);
  text.raw("}");
  trace_.finish();
}

}  // namespace opscope::exporter
