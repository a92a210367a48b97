// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "collect/runtime.h"
#include "compare/timing_device.hpp"

namespace opscope::comparison {

/// How often each thing is measured.
struct limits {
  std::uint32_t warmup = 50;  ///< rounds before counting
  std::uint32_t pairs = 200;  ///< counted rounds
  std::uint32_t fewest = 6;   ///< counted rounds even where they exceed `budget`: a verdict's
  std::chrono::nanoseconds budget = std::chrono::seconds(2);  ///< of one cell and kind of timing
  std::uint32_t timeline_calls = 20;                          ///< traced calls of each contender
  std::uint32_t counter_calls = 5;  ///< counted calls of each contender, warm and cold each
};

/// A comparison whose correctness pass is done: contenders by cell, and the document about them.
struct plan {
  /// The contenders of each cell, in the document's order. Cells that are skipped have none.
  std::vector<std::vector<callable>> cells;
  std::filesystem::path output;  ///< of the capture
  bool force = false;            ///< replace an existing one
  bool strict = false;           ///< refuse when something cannot be recorded
  std::uint32_t python = OPSCOPE_PYTHON_OFF;
  comparison::limits limits;
  std::function<void()> poll;  ///< called between rounds; may throw to end the comparison
  std::function<void(std::uint32_t cell)> timing;  ///< called before a cell is timed
  std::function<void()> attach;  ///< called once timing is over, before the session starts
  /// Runs what waits for other threads (a session's start and stop) without the caller's lock.
  std::function<void(const std::function<void()>&)> unlocked =
      [](const std::function<void()>& work) { work(); };
};

/// Runs the untraced timing of all cells, then the timeline pass, then the counter pass, and writes
/// them to one capture. Contenders take turns call by call (or batch by batch) and each round
/// begins with another one, so that drift meets all alike. An exception of a contender ends the
/// comparison; the capture is closed first.
///
/// @param document the `comparison` document; how the timing went is added to it.
/// @throws opscope::error when a session is on already, or the capture cannot be written.
void run(const plan& what, nlohmann::json& document, timing_device& device,
         const opscope_runtime& runtime);

}  // namespace opscope::comparison
