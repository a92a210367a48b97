// SPDX-License-Identifier: Apache-2.0
//
// Two passes over the linked capture: a survey of what later events will need of earlier ones, then
// the writing, in time order. The document's own facts stand before the events, what was counted
// while writing stands after them.
#include "export/chrome.hpp"

#include <map>
#include <nlohmann/json.hpp>

#include "correlate/correlate.hpp"
#include "export/chrome_sink.hpp"

namespace opscope::exporter {
namespace {

std::string dump(const nlohmann::json& value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// Kineto's list of devices, which the collector writes as it stands.
nlohmann::json device_properties(const capture::capture& source) {
  auto properties = document(source, "deviceProperties");
  return properties.is_array() ? properties : nlohmann::json::array();
}

void write_head(const capture::capture& source, const chrome_options& options, json_text& text) {
  const auto facts = session_facts::of(source);
  const nlohmann::json distributed{
      {"backend", ""}, {"rank", facts.rank}, {"world_size", facts.world_size}};
  text.raw("{\"schemaVersion\":1,\n\"deviceProperties\":");
  text.raw(dump(device_properties(source)));
  text.raw(",\n\"distributedInfo\":").raw(dump(distributed));
  text.raw(",\n\"baseTimeNanoseconds\":").integer(source.session_start().count());
  text.raw(",\n\"displayTimeUnit\":\"ns\"");
  if (!options.trace_name.empty()) text.raw(",\n\"traceName\":").quoted(options.trace_name);
  text.raw(",\n\"traceEvents\":[\n");
}

/// How the numbers in the args were obtained: the session's own words, and what counters said.
nlohmann::json methods(const capture::capture& source, const std::set<std::string>& dram) {
  auto session = document(source, "session");
  auto all = session.is_object() ? session.value("methods", nlohmann::json::object())
                                 : nlohmann::json::object();
  if (!all.is_object()) all = nlohmann::json::object();
  all["bytes_ideal"] = "ideal";
  if (!dram.empty()) all["dram_bytes"] = dram;
  return all;
}

/// The capture's documents by name; a name that occurs again makes a list.
nlohmann::json documents(const capture::capture& source) {
  std::map<std::string, nlohmann::json> all;
  for (const auto& entry : source.documents()) {
    auto parsed = nlohmann::json::parse(entry.json, nullptr, /*allow_exceptions=*/false);
    if (parsed.is_discarded() || entry.name == "deviceProperties") continue;
    auto& list = all.try_emplace(entry.name, nlohmann::json::array()).first->second;
    list.push_back(std::move(parsed));
  }
  auto object = nlohmann::json::object();
  for (auto& [name, list] : all) object[name] = list.size() == 1 ? list[0] : list;
  return object;
}

void write_tail(const capture::capture& source, const chrome_report& report,
                const std::set<std::string>& dram, json_text& text) {
  nlohmann::json block{{"schema", "opscope.trace/1"},
                       {"recovered", source.recovered()},
                       {"methods", methods(source, dram)},
                       {"ledger", nlohmann::json::parse(to_json(report.written))},
                       {"exported",
                        {{"slices", report.slices},
                         {"arrows", report.arrows},
                         {"counter_values", report.counter_values}}},
                       {"documents", documents(source)}};
  text.raw("\n],\n\"opscope\":").raw(dump(block)).raw("}\n");
}

}  // namespace

chrome_report write_chrome(const capture::capture& source, std::ostream& out,
                           const chrome_options& options) {
  const auto found = take_survey(source);
  trace_text trace{out, source.session_start()};
  write_head(source, options, trace.text());
  chrome_sink sink{source, found, options, trace};
  auto written = correlate::link(source, sink);
  sink.finish();
  for (const auto kind : arrow_kinds) {
    const std::string category{name(kind)};
    const auto& arrows = trace.arrows();
    if (arrows.drawn(kind) > 0) trace.report().arrows[category] = arrows.drawn(kind);
    if (arrows.left_out(kind) > 0) written.add(outcome::skipped, category, arrows.left_out(kind));
  }
  trace.report().written = std::move(written);
  write_tail(source, trace.report(), sink.methods(), trace.text());
  trace.flush();
  out.flush();
  return trace.report();
}

}  // namespace opscope::exporter
