// SPDX-License-Identifier: Apache-2.0
#include "analyse/receipt_input.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "analyse/text_layout.hpp"
#include "correlate/correlate.hpp"
#include "opscope/error.hpp"

namespace opscope::analyse::detail {
namespace {

using nlohmann::json;

template <typename Value>
std::optional<Value> optional_of(const json& object, std::string_view key) {
  const auto at = object.find(key);
  if (at == object.end() || at->is_null()) return std::nullopt;
  return at->get<Value>();
}

/// A text of the document, which prints as a part of one line.
std::string text_of(const json& value) { return on_one_line(value.get<std::string>()); }

std::string text_of(const json& object, std::string_view key) {
  const auto at = object.find(key);
  return at == object.end() || at->is_null() ? std::string{} : text_of(*at);
}

/// Errors that are no number (an infinite one has no form in JSON) are absent.
std::optional<double> number_of(const json& object, std::string_view key) {
  const auto at = object.find(key);
  if (at == object.end() || !at->is_number()) return std::nullopt;
  return at->get<double>();
}

contender_receipt contender_of(const json& document, std::uint32_t index) {
  contender_receipt out;
  out.index = index;
  out.name = text_of(document.at("contenders").at(index));
  const auto baselines = document.find("baselines");
  if (baselines != document.end() && baselines->is_array() && index < baselines->size() &&
      baselines->at(index).is_number_unsigned()) {
    out.baseline = baselines->at(index).get<std::uint32_t>();
  }
  if (out.baseline >= document.at("contenders").size()) {
    throw error("receipt: the comparison names a baseline that it lacks");
  }
  return out;
}

cell_receipt cell_of(const json& document, const json& cell) {
  cell_receipt out;
  out.cell = cell.at("cell").get<std::uint32_t>();
  out.label = text_of(cell, "label");
  out.dtype = text_of(cell, "dtype");
  out.shape = cell.value("shape", std::vector<std::int64_t>{});
  out.elements = cell.value("elements", std::int64_t{0});
  out.read_bytes_ideal = cell.value("read_bytes_ideal", std::int64_t{0});
  out.write_bytes_ideal = cell.value("write_bytes_ideal", std::int64_t{0});
  out.backward = cell.value("backward", false);
  if (const auto skipped = optional_of<std::string>(cell, "skipped")) {
    out.skipped = on_one_line(*skipped);
    return out;
  }
  const auto names = document.at("contenders").size();
  for (std::uint32_t i = 0; i < names; ++i) out.contenders.push_back(contender_of(document, i));
  for (const auto& entry : cell.value("contenders", json::array())) {
    const auto index = entry.at("contender").get<std::uint32_t>();
    if (index >= names) throw error("receipt: the comparison names a contender that it lacks");
    auto& contender = out.contenders[index];
    contender.correct = optional_of<bool>(entry, "correct");
    contender.max_abs_error = number_of(entry, "max_abs_error");
    contender.max_rel_error = number_of(entry, "max_rel_error");
    contender.absolute_tolerance = number_of(entry, "atol");
    contender.relative_tolerance = number_of(entry, "rtol");
    contender.compared = optional_of<std::int64_t>(entry, "compared");
    contender.correctness = text_of(entry, "why");
  }
  return out;
}

void read_document(const json& document, receipt_input& out) {
  auto& frame = out.frame;
  frame.title = text_of(document, "title");
  frame.device = on_one_line(document.value("device", "cpu"));
  frame.approximate = text_of(document, "approximate");
  frame.on_gpu = frame.device != "cpu";
  for (const auto& name : document.at("contenders")) frame.contenders.push_back(text_of(name));
  for (const auto& cell : document.at("cells")) {
    frame.cells.push_back(cell_of(document, cell));
    const auto number = frame.cells.back().cell;
    const auto reasons = cell.find("no_graph_replay");
    if (reasons == cell.end() || !reasons->is_array()) continue;
    for (std::uint32_t i = 0; i < reasons->size(); ++i) {
      const auto& why = reasons->at(i);
      if (why.is_string()) out.no_graph_replay[{number, i}] = text_of(why);
    }
  }
  if (frame.on_gpu && document.value("cupti_touched_before_timing", false)) {
    frame.notes.emplace_back(
        "CUPTI was used in this process before the untraced timing: host times are 0.4-0.6 us "
        "longer than in a fresh process");
  }
}

/// {"clock_ns", "op_ns", "range_ns", "frame_ns"} in the session's header, or a document of its own.
void read_own_cost(const capture::capture& source, receipt_input& out) {
  json cost;
  if (const auto own = source.document_json("own_cost")) {
    cost = json::parse(*own, nullptr, false);
  } else if (const auto session = source.document_json("session")) {
    const auto header = json::parse(*session, nullptr, false);
    if (header.is_object() && header.contains("own_cost")) cost = header["own_cost"];
  }
  if (!cost.is_object() || !number_of(cost, "clock_ns")) return;
  const auto part = [&](std::string_view key) { return number_of(cost, key).value_or(0); };
  out.own = own_cost{part("clock_ns"), part("op_ns"), part("range_ns"), part("frame_ns")};
}

/// Warnings are texts, or objects with one.
void read_warnings(const capture::capture& source, receipt_input& out) {
  for (const auto& document : source.documents()) {
    if (document.name != "warning") continue;
    const auto warning = json::parse(document.json, nullptr, false);
    std::string text;
    if (warning.is_string()) text = warning.get<std::string>();
    if (warning.is_object()) text = warning.value("text", "");
    if (text.empty()) continue;
    text = on_one_line(text);
    if (text.find("counter") != std::string::npos) out.no_counters = text;
    out.frame.notes.push_back(std::move(text));
  }
  if (source.recovered()) {
    out.frame.notes.emplace_back("the capture was cut short: read up to its last whole segment");
  }
}

void read_rows(const capture::capture& source, receipt_input& out) {
  auto samples = source.rows<sample>();
  while (const auto* row = samples.next()) {
    out.samples[{row->what, row->cell, row->contender}][row->ordinal] = row->value;
  }
  auto counters = source.rows<counter_range>();
  while (const auto* row = counters.next()) {
    const bool first = (row->flags & counter_range::first_of_pass) != 0;
    if (row->cell == no_cell || first) continue;
    const std::tuple who{row->cell, row->contender, std::string(source.text(row->name))};
    if (!correlate::is_clean(*row)) {
      out.impossible_counters.insert(who);
      continue;
    }
    out.counters[who].push_back(*row);
    out.counter_methods.try_emplace(static_cast<std::uint32_t>(row->method),
                                    source.text(row->method));
  }
}

}  // namespace

receipt_input read_receipt_input(const capture::capture& source) {
  const auto text = source.document_json("comparison");
  if (!text) {
    throw error(
        "receipt: the capture holds no comparison: it was not written by compare, bench or demo "
        "(use summary for a profile)");
  }
  receipt_input out;
  try {
    read_document(json::parse(*text), out);
  } catch (const json::exception& problem) {
    throw error(fmt::format(
        "receipt: cannot read the capture's comparison: {} (record it again with this version)",
        problem.what()));
  }
  read_own_cost(source, out);
  read_warnings(source, out);
  read_rows(source, out);
  std::set<std::uint32_t> with_backward;
  for (const auto& cell : out.frame.cells) {
    if (cell.backward) with_backward.insert(cell.cell);
  }
  call_collector collector(source, std::move(with_backward));
  out.frame.ledger = correlate::link(source, collector);
  out.calls = collector.take();
  return out;
}

}  // namespace opscope::analyse::detail
