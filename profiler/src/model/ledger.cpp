// SPDX-License-Identifier: Apache-2.0
#include "model/ledger.hpp"

#include <nlohmann/json.hpp>

namespace opscope {

std::string_view name(outcome what) noexcept {
  switch (what) {
    case outcome::delivered:
      return "delivered";
    case outcome::dropped:
      return "dropped";
    case outcome::untimed:
      return "untimed";
    case outcome::unlinked:
      return "unlinked";
    case outcome::clamped:
      return "clamped";
    case outcome::skipped:
      return "skipped";
  }
  return "unknown";
}

void ledger::add(outcome what, std::string_view record, std::uint64_t count) {
  if (count == 0) return;
  auto& kinds = counts_.at(static_cast<std::size_t>(what));
  const auto found = kinds.find(record);
  if (found == kinds.end()) {
    kinds.emplace(record, count);
  } else {
    found->second += count;
  }
}

void ledger::merge(const ledger& other) {
  for (const outcome what : outcomes) {
    for (const auto& [record, count] : other.of(what)) add(what, record, count);
  }
}

std::uint64_t ledger::count(outcome what, std::string_view record) const {
  const auto& kinds = of(what);
  const auto found = kinds.find(record);
  return found == kinds.end() ? 0 : found->second;
}

std::uint64_t ledger::total(outcome what) const {
  std::uint64_t sum = 0;
  for (const auto& [record, count] : of(what)) sum += count;
  return sum;
}

const ledger::counts& ledger::of(outcome what) const noexcept {
  return counts_[static_cast<std::size_t>(what) % outcomes.size()];
}

bool ledger::complete() const {
  return total(outcome::dropped) == 0 && total(outcome::untimed) == 0 &&
         total(outcome::skipped) == 0;
}

std::string to_json(const ledger& ledger) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const outcome what : outcomes) {
    auto& kinds = json[std::string{name(what)}] = nlohmann::ordered_json::object();
    for (const auto& [record, count] : ledger.of(what)) kinds[record] = count;
  }
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

ledger ledger_from_json(std::string_view text) {
  ledger read;
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) return read;
  for (const outcome what : outcomes) {
    const auto kinds = json.find(name(what));
    if (kinds == json.end() || !kinds->is_object()) continue;
    for (const auto& [record, count] : kinds->items()) {
      if (count.is_number_unsigned()) read.add(what, record, count.get<std::uint64_t>());
    }
  }
  return read;
}

}  // namespace opscope
