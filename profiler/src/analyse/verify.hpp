// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyse/census.hpp"
#include "capture/reader.hpp"
#include "model/ledger.hpp"

namespace opscope::analyse {

enum class integrity : std::uint8_t { complete, loss, recovered };

/// "complete", "loss", "recovered".
[[nodiscard]] std::string_view name(integrity verdict) noexcept;

struct problem {
  enum class severity : std::uint8_t { info, loss };
  std::string kind;
  severity weight = severity::info;
  std::uint64_t count = 0;
  std::optional<std::uint64_t> first_offset;  ///< byte in the file, where it has one
  std::string detail;                         ///< one line for a person
};

/// GPU kernels of a capture; CUPTI's own are left out.
struct kernel_census {
  std::uint64_t count = 0;
  std::uint64_t distinct_names = 0;
  std::uint64_t distinct_correlations = 0;
  std::map<std::string, std::int64_t> busy_ns_by_device;  ///< union of the intervals
};

/// What a capture holds and what it lost.
struct verification {
  integrity verdict = integrity::complete;
  std::optional<trace_census> exported;  ///< what `export` would write; absent when not counted
  std::optional<timestamp> first;        ///< earliest start in the capture
  std::optional<timestamp> last;         ///< latest end
  kernel_census kernels;
  opscope::ledger ledger;
  std::vector<problem> problems;
};

/// Links `source` and judges it: `recovered` when the footer is missing, `loss` when anything was
/// dropped, untimed, skipped, damaged, or a GPU activity or launch lacks its partner.
/// @param exported counts of the Chrome trace, which a later stage makes: exporter::verify of
///        export/count.hpp is the one call that fills everything.
[[nodiscard]] verification verify(const capture::capture& source,
                                  std::optional<trace_census> exported = std::nullopt);

/// {"schema": "opscope.verify/1", "source": "capture", ...}.
[[nodiscard]] std::string to_json(const verification& report);

[[nodiscard]] std::string to_table(const verification& report);

}  // namespace opscope::analyse
