// SPDX-License-Identifier: Apache-2.0
//
// What stands below a table: how its numbers came about where the columns do not say it, and why
// numbers are missing.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>

#include "analyse/summary_sinks.hpp"

namespace opscope::analyse::detail {
namespace {

template <record Row>
bool has_rows(const capture::capture& source) {
  return source.rows<Row>().next() != nullptr;
}

/// The first warning of the session that is about the GPU.
std::string gpu_warning(const capture::capture& source) {
  constexpr std::array<std::string_view, 5> words{"GPU", "CUDA", "CUPTI", "cupti", "NVIDIA"};
  for (const auto& document : source.documents()) {
    if (document.name != "warning") continue;
    const auto warning = nlohmann::json::parse(document.json, nullptr, false);
    if (!warning.is_object() || !warning.contains("text") || !warning["text"].is_string()) continue;
    auto text = warning["text"].get<std::string>();
    const auto occurs = [&](auto word) { return text.find(word) != std::string::npos; };
    if (std::ranges::any_of(words, occurs)) return text;
  }
  return "the capture holds no record of one";
}

/// An option of the session; true where it is not said.
bool option(const capture::capture& source, const char* name) {
  const auto text = source.document_json("session");
  const auto session =
      text ? nlohmann::json::parse(*text, nullptr, false) : nlohmann::json::object();
  const nlohmann::json::json_pointer at(std::string("/options/") + name);
  return !session.is_object() || !session.contains(at) || session[at] != false;
}

std::size_t index_of(const summary& table, std::string_view key) {
  const auto at = std::ranges::find(table.columns, key, &summary_column::key);
  return static_cast<std::size_t>(at - table.columns.begin());
}

void add_dram_notes(summary& table) {
  const auto read = index_of(table, "dram_read_bytes");
  if (read == table.columns.size()) return;
  const auto text = [&table](const auto& row, std::string_view key) {
    return std::get<std::string>(row[index_of(table, key)]);
  };
  std::set<std::string> methods;
  bool all = true;
  for (const auto& row : table.rows) {
    if (std::holds_alternative<std::monostate>(row[read])) continue;
    methods.insert(text(row, "dram_method") + ", " + text(row, "dram_of"));
    const auto calls = std::min(index_of(table, "calls"), index_of(table, "count"));
    all = all && row[index_of(table, "dram_count")] == row[calls];
  }
  if (methods.empty()) return;
  table.notes.push_back(fmt::format("DRAM: {}; summed over {}", fmt::join(methods, "; "),
                                    all ? "all calls" : "the calls that were counted"));
}

}  // namespace

gpu_presence gpu_presence_of(const capture::capture& source) {
  if (!option(source, "gpu")) return {false, "the session was to leave the GPU out"};
  if (!option(source, "api")) return {false, "the session was to leave the launches out"};
  const bool seen = source.document_json("cupti") || has_rows<api_call>(source) ||
                    has_rows<kernel>(source) || has_rows<memory_copy>(source) ||
                    has_rows<memory_set>(source);
  return seen ? gpu_presence{true, ""} : gpu_presence{false, gpu_warning(source)};
}

void add_notes(const gpu_presence& gpu, summary& table) {
  add_dram_notes(table);
  if (!gpu.recorded) table.notes.push_back("GPU work: not recorded: " + gpu.why);
}

}  // namespace opscope::analyse::detail
