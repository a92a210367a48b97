// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <map>
#include <string>

#include "capture/reader.hpp"
#include "model/ledger.hpp"

namespace opscope::exporter {

/// What a Chrome-trace export contains.
struct chrome_options {
  bool python = true;       ///< Python frames
  bool arrows = true;       ///< ac2g, fwdbwd, and opscope's own
  bool annotations = true;  ///< ranges projected on the GPU, as gpu_user_annotation
  bool counters = true;     ///< C events where there is data
  std::string trace_name;   ///< `traceName` of the document; empty: left out
};

/// What was written.
struct chrome_report {
  using counts = std::map<std::string, std::uint64_t, std::less<>>;
  counts slices;                     ///< X, b/e and instant events, by category
  counts arrows;                     ///< pairs, by category
  std::uint64_t counter_values = 0;  ///< C events times their keys
  std::uint64_t events = 0;          ///< all events, metadata included
  std::uint64_t bytes = 0;           ///< uncompressed
  /// The capture's ledger after linking, with the arrows that had no place counted as skipped.
  ledger written;
};

/// Writes `source` as Chrome-trace JSON that Perfetto, chrome://tracing and Kineto's readers open.
///
/// Times are microseconds with three decimals since the session's start; strict JSON whatever the
/// capture holds. Streams: keeps open slices, and one word a launch and a projected range of the
/// survey that precedes the writing. Leaves `out` in a failed state when it refuses data.
chrome_report write_chrome(const capture::capture& source, std::ostream& out,
                           const chrome_options& options = {});

}  // namespace opscope::exporter
