// SPDX-License-Identifier: Apache-2.0
#include "export/session_facts.hpp"

#include <nlohmann/json.hpp>
#include <utility>

namespace opscope::exporter {
namespace {

const nlohmann::json* member(const nlohmann::json& object, std::string_view key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

}  // namespace

std::optional<std::int64_t> integer_of(const nlohmann::json& object, std::string_view key) {
  const auto* value = member(object, key);
  if (value == nullptr || !value->is_number_integer()) return std::nullopt;
  return value->get<std::int64_t>();
}

session_facts session_facts::of(const capture::capture& source) {
  const auto session = document(source, "session");
  session_facts facts;
  facts.pid = integer_of(session, "pid").value_or(facts.pid);
  facts.rank = integer_of(session, "rank").value_or(facts.rank);
  facts.world_size = integer_of(session, "world_size").value_or(facts.world_size);
  return facts;
}

std::int64_t session_facts::gpu_pid(std::uint32_t device) const noexcept {
  constexpr std::int64_t beyond_pids = 10'000'000;  // Linux's largest pid is 4,194,304
  return std::cmp_equal(device, pid) ? beyond_pids + device : device;
}

nlohmann::json document(const capture::capture& source, std::string_view name) {
  const auto text = source.document_json(name);
  if (!text) return nullptr;
  auto parsed = nlohmann::json::parse(*text, nullptr, /*allow_exceptions=*/false);
  return parsed.is_discarded() ? nlohmann::json(nullptr) : parsed;
}

std::string device_name(const nlohmann::json& device, std::uint32_t index) {
  const nlohmann::json* entry = &device;
  if (const auto* devices = member(device, "devices")) entry = devices;
  if (entry->is_array()) {
    if (index >= entry->size()) return {};
    entry = &(*entry)[index];
  } else if (const auto id = integer_of(*entry, "id"); id && std::cmp_not_equal(*id, index)) {
    return {};
  }
  const auto* name = member(*entry, "name");
  return name != nullptr && name->is_string() ? name->get<std::string>() : std::string{};
}

}  // namespace opscope::exporter
