// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "analyse/receipt.hpp"
#include "analyse/receipt_calls.hpp"
#include "analyse/receipt_stages.hpp"

namespace opscope::analyse::detail {

/// What a receipt is evaluated from.
struct receipt_input {
  receipt frame;  ///< filled from the comparison document: names, cells, correctness
  /// Values of each metric and subject by ordinal.
  std::map<std::tuple<sample::metric, std::uint32_t, std::uint32_t>,
           std::map<std::uint32_t, std::int64_t>>
      samples;
  std::map<subject, std::vector<traced_call>> calls;
  /// Counter ranges by subject and name ("warm", "cold"), those of a pass's first left out.
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::string>, std::vector<counter_range>>
      counters;
  std::set<std::tuple<std::uint32_t, std::uint32_t, std::string>> impossible_counters;
  std::optional<own_cost> own;                           ///< of the collector
  std::map<subject, std::string> no_graph_replay;        ///< why
  std::map<std::uint32_t, std::string> counter_methods;  ///< text of string ids that occur
  std::string no_counters;                               ///< why there are none, when it is known
};

/// Reads everything once, linking `source`.
/// @throws opscope::error when it holds no comparison, or one that cannot be read.
[[nodiscard]] receipt_input read_receipt_input(const capture::capture& source);

}  // namespace opscope::analyse::detail
