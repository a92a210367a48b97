// SPDX-License-Identifier: Apache-2.0
#include "collect/session_sink.hpp"

#include <nlohmann/json.hpp>
#include <utility>

#include "model/category.hpp"

namespace opscope::collect {
namespace {

/// Replaces registered handles by the capture's own ids.
template <record Row>
void translate(Row& row, output& to) {
  const auto translated = [&to](string_id id) {
    return to.intern_handle(static_cast<std::uint32_t>(id));
  };
  if constexpr (requires { row.name; }) row.name = translated(row.name);
  if constexpr (requires { row.method; }) row.method = translated(row.method);
}

}  // namespace

string_id session_sink::intern(std::string_view name) noexcept try {
  return name.empty() ? string_id{0} : string_id{names_.intern(name)};
} catch (...) {
  return string_id{0};
}

template <record Row>
void session_sink::keep(std::span<const Row> rows) noexcept {
  try {
    const std::scoped_lock hold{mutex_};
    if (kept_bytes_.load(std::memory_order_relaxed) + rows.size_bytes() <= limit_bytes_) {
      auto& kept = std::get<std::vector<Row>>(kept_);
      kept.insert(kept.end(), rows.begin(), rows.end());
      kept_bytes_.fetch_add(rows.size_bytes(), std::memory_order_relaxed);
      return;
    }
  } catch (...) {  // no memory: dropped like rows above the limit
  }
  if constexpr (std::is_same_v<Row, api_call>) {
    for (const api_call& call : rows) notes_.account(outcome::dropped, category(call), 1);
  } else {
    notes_.account(outcome::dropped, category(Row::kind), rows.size());
  }
}

void session_sink::document(std::string_view name, std::string_view json) noexcept try {
  if (name != "warning") return notes_.add(name, json);
  const auto parsed = nlohmann::json::parse(json, nullptr, false);
  if (parsed.is_object() && parsed.contains("text") && parsed["text"].is_string()) {
    notes_.warn(parsed["text"].get<std::string>());
  } else {
    notes_.warn(json);
  }
} catch (...) {
  notes_.add(name, json);
}

void session_sink::drain(output& to) {
  row_lists taken;
  {
    const std::scoped_lock hold{mutex_};
    std::swap(taken, kept_);
    kept_bytes_.store(0, std::memory_order_relaxed);
  }
  const auto move_on = [&to](auto& rows) {
    for (auto& row : rows) {
      translate(row, to);
      to.add(row);
    }
  };
  std::apply([&](auto&... each) { (move_on(each), ...); }, taken);
}

}  // namespace opscope::collect
