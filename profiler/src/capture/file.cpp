// SPDX-License-Identifier: Apache-2.0
#include "capture/file.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "model/category.hpp"

namespace opscope::capture {
namespace {

template <typename... Rows>
std::uint64_t size_among(std::uint16_t kind, std::uint16_t schema) noexcept {
  std::uint64_t size = 0;
  ((static_cast<std::uint16_t>(Rows::kind) == kind&& Rows::schema == schema ? size = sizeof(Rows)
                                                                            : size),
   ...);
  return size;
}

/// Reads a member that holds nanoseconds, as a decimal string or a number.
std::optional<timestamp> nanoseconds_of(const nlohmann::json& json, std::string_view member) {
  if (!json.is_object()) return std::nullopt;
  const auto found = json.find(member);
  if (found == json.end()) return std::nullopt;
  if (found->is_number_integer()) return timestamp{found->get<std::int64_t>()};
  if (!found->is_string()) return std::nullopt;
  const auto& text = found->get_ref<const std::string&>();
  std::int64_t value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return timestamp{value};
}

/// Reads a u32 length and that many bytes; moves `at` behind them.
std::optional<std::string_view> read_text(std::span<const std::byte> bytes, std::size_t& at) {
  std::uint32_t size = 0;
  if (bytes.size() - at < sizeof size) return std::nullopt;
  std::memcpy(&size, bytes.data() + at, sizeof size);
  if (bytes.size() - at - sizeof size < size) return std::nullopt;
  const std::string_view text{reinterpret_cast<const char*>(bytes.data()) + at + sizeof size, size};
  at += sizeof size + size;
  return text;
}

std::string_view segment_category(const segment_header& header) {
  switch (header.kind) {
    case segment_kind::rows:
      return category(static_cast<record_kind>(header.record));
    case segment_kind::strings:
      return "strings";
    case segment_kind::document:
    case segment_kind::session:
      return "document";
    case segment_kind::footer:
      break;
  }
  return "unknown";
}

}  // namespace

std::uint64_t row_size(std::uint16_t kind, std::uint16_t schema) noexcept {
  return size_among<python_frame, op, range, api_call, kernel, memory_copy, memory_set,
                    synchronization, overhead, counter_range, call_mark, sample, graph_node,
                    external_correlation, clock_pair, thread_info>(kind, schema);
}

file::file(input source, const segment_index& index)
    : recovered{index.footer_json.empty()},
      damage_offset{index.damage_offset},
      source_{std::move(source)} {
  if (recovered && !damage_offset) damage_offset = source_.size();
  if (!recovered) {
    const auto footer = nlohmann::json::parse(index.footer_json, nullptr, false);
    if (footer.is_object() && footer.contains("ledger")) {
      collected = ledger_from_json(footer["ledger"].dump());
    }
  }
  for (const index_entry& entry : index.segments) take(entry);
  for (auto& [kind, segments] : rows_) {
    std::ranges::stable_sort(segments, {},
                             [](const auto& entry) { return entry.header.first_start; });
  }
  std::ranges::stable_sort(texts_, {}, &text_block::first);
  if (recovered) count_delivered();
  read_times(index.footer_json);
}

void file::take(const index_entry& entry) {
  std::vector<std::byte> stored;
  if (!source_.read_payload(entry, stored)) return skip(entry, true);
  if (entry.header.kind == segment_kind::rows) return take_rows(entry);
  std::vector<std::byte> raw;
  if (entry.header.kind < segment_kind::session || entry.header.kind > segment_kind::footer) {
    return skip(entry, false);
  }
  if (!decode(entry.header, std::move(stored), raw)) return skip(entry, true);
  switch (entry.header.kind) {
    case segment_kind::session:
      documents.push_back(
          {"session", std::string{reinterpret_cast<const char*>(raw.data()), raw.size()}});
      break;
    case segment_kind::strings:
      take_texts(entry, std::move(raw));
      break;
    case segment_kind::document:
      take_document(entry, std::move(raw));
      break;
    case segment_kind::rows:
    case segment_kind::footer:
      break;
  }
}

void file::take_rows(const index_entry& entry) {
  const std::uint64_t size = row_size(entry.header.record, entry.header.schema);
  if (size == 0) return skip(entry, false);
  const bool known = entry.header.encoding == codec::raw || entry.header.encoding == codec::zstd;
  if (!known) return skip(entry, false);
  if (entry.header.rows * size != entry.header.raw_size) return skip(entry, true);
  rows_[static_cast<record_kind>(entry.header.record)].push_back(entry);
}

void file::take_texts(const index_entry& entry, std::vector<std::byte> raw) {
  text_block block{.first = entry.header.extra, .bytes = std::move(raw), .texts = {}};
  std::size_t at = 0;
  while (at < block.bytes.size()) {
    const auto text = read_text(block.bytes, at);
    if (!text) return skip(entry, true);
    block.texts.push_back(*text);
  }
  texts_.push_back(std::move(block));
}

void file::take_document(const index_entry& entry, std::vector<std::byte> raw) {
  std::size_t at = 0;
  const auto name = read_text(raw, at);
  if (!name) return skip(entry, true);
  documents.push_back(
      {std::string{*name},
       std::string{reinterpret_cast<const char*>(raw.data()) + at, raw.size() - at}});
}

void file::skip(const index_entry& entry, bool damaged) {
  const std::uint64_t rows = entry.header.kind == segment_kind::rows ? entry.header.rows : 1;
  collected.add(outcome::skipped, segment_category(entry.header), std::max<std::uint64_t>(rows, 1));
  if (damaged && (!damage_offset || entry.offset < *damage_offset)) damage_offset = entry.offset;
}

void file::read_times(std::string_view footer_json) {
  for (const document& each : documents) {
    if (each.name != "session") continue;
    const auto header = nlohmann::json::parse(each.json, nullptr, false);
    session_start = nanoseconds_of(header, "start_ns").value_or(timestamp{0});
    break;
  }
  session_end = session_start;
  if (!recovered) {
    const auto footer = nlohmann::json::parse(footer_json, nullptr, false);
    session_end = nanoseconds_of(footer, "session_end_ns").value_or(session_start);
    return;
  }
  for (const auto& [kind, segments] : rows_) {
    for (const index_entry& entry : segments) {
      session_end = std::max(session_end, timestamp{static_cast<std::int64_t>(entry.header.extra)});
    }
  }
}

void file::count_delivered() {
  for (const auto& [kind, segments] : rows_) {
    if (kind != record_kind::api_call) {
      collected.add(outcome::delivered, category(kind), count(kind));
      continue;
    }
    for (const index_entry& entry : segments) {
      std::vector<std::byte> raw;
      if (!read_rows(entry, raw)) continue;
      for (std::size_t at = 0; at < raw.size(); at += sizeof(api_call)) {
        api_call call;
        std::memcpy(&call, raw.data() + at, sizeof call);
        collected.add(outcome::delivered, category(call));
      }
    }
  }
}

bool file::read_rows(const index_entry& entry, std::vector<std::byte>& raw) const {
  std::vector<std::byte> stored;
  return source_.read_payload(entry, stored) && decode(entry.header, std::move(stored), raw);
}

const std::vector<index_entry>& file::segments(record_kind kind) const noexcept {
  static const std::vector<index_entry> none;
  const auto found = rows_.find(kind);
  return found == rows_.end() ? none : found->second;
}

std::uint64_t file::count(record_kind kind) const noexcept {
  std::uint64_t rows = 0;
  for (const index_entry& entry : segments(kind)) rows += entry.header.rows;
  return rows;
}

std::string_view file::text(string_id id) const noexcept {
  const auto wanted = static_cast<std::uint64_t>(id);
  const auto after = std::ranges::upper_bound(texts_, wanted, {}, &text_block::first);
  if (after == texts_.begin()) return {};
  const text_block& block = *std::prev(after);
  const std::uint64_t position = wanted - block.first;
  return position < block.texts.size() ? block.texts[position] : std::string_view{};
}

}  // namespace opscope::capture
