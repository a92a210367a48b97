// SPDX-License-Identifier: Apache-2.0
//
// Two passes over the linked capture: a survey of what later events will need of earlier ones, then
// the writing, in time order. The document's own facts stand before the events, what was counted
// while writing stands after them.
#include "export/chrome.hpp"

#include <nlohmann/json.hpp>

#include "correlate/correlate.hpp"
#include "export/chrome_sink.hpp"

namespace opscope::exporter {
namespace {

std::string dump(const nlohmann::json& value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

nlohmann::json device_properties(const nlohmann::json& device) {
  if (device.is_array()) return device;
  if (device.is_object() && device.contains("devices") && device["devices"].is_array()) {
    return device["devices"];
  }
  if (!device.is_object() || !device.contains("name")) return nlohmann::json::array();
  auto entry = device;
  if (!entry.contains("id")) entry["id"] = 0;
  return nlohmann::json::array({entry});
}

void write_head(const capture::capture& source, const chrome_options& options, json_text& text) {
  const auto facts = session_facts::of(source);
  const nlohmann::json distributed{
      {"backend", ""}, {"rank", facts.rank}, {"world_size", facts.world_size}};
  text.raw("{\"schemaVersion\":1,\n\"deviceProperties\":");
  text.raw(dump(device_properties(document(source, "device"))));
  text.raw(",\n\"distributedInfo\":").raw(dump(distributed));
  text.raw(",\n\"baseTimeNanoseconds\":").integer(source.session_start().count());
  text.raw(",\n\"displayTimeUnit\":\"ns\"");
  if (!options.trace_name.empty()) text.raw(",\n\"traceName\":").quoted(options.trace_name);
  text.raw(",\n\"traceEvents\":[\n");
}

nlohmann::json methods(const std::set<std::string>& dram) {
  return {{"kernel", "cupti-record"},
          {"bytes_ideal", "ideal"},
          {"dram", dram.empty() ? nlohmann::json("not measured") : nlohmann::json(dram)}};
}

/// Every document of the capture under its name, the last of a name.
nlohmann::json documents(const capture::capture& source) {
  auto all = nlohmann::json::object();
  for (const auto& entry : source.documents()) all[entry.name] = document(source, entry.name);
  return all;
}

void write_tail(const capture::capture& source, const chrome_report& report,
                const std::set<std::string>& dram, json_text& text) {
  nlohmann::json block{{"schema", "opscope.trace/1"},
                       {"recovered", source.recovered()},
                       {"methods", methods(dram)},
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
