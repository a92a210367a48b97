// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "capture/reader.hpp"

namespace opscope::exporter {

/// What the process and device tracks of a trace are called, from the capture's documents. A
/// capture without them gets the defaults.
struct session_facts {
  std::int64_t pid = 1;
  std::int64_t rank = 0;
  std::int64_t world_size = 1;

  [[nodiscard]] static session_facts of(const capture::capture& source);

  /// GPU tracks have the device's index as pid, as Kineto's have, unless the process has that pid.
  [[nodiscard]] std::int64_t gpu_pid(std::uint32_t device) const noexcept;
};

/// A document parsed; null for a missing or malformed one.
[[nodiscard]] nlohmann::json document(const capture::capture& source, std::string_view name);

/// Name of device `index`: "NVIDIA H200"; empty when the capture does not say.
[[nodiscard]] std::string device_name(const nlohmann::json& device, std::uint32_t index);

/// An integer of a JSON object, when it has it.
[[nodiscard]] std::optional<std::int64_t> integer_of(const nlohmann::json& object,
                                                     std::string_view key);

}  // namespace opscope::exporter
