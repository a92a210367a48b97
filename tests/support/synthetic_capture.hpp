// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>

namespace opscope::support {

/// What a synthetic capture holds, for the tests to compare with.
struct synthetic_contents {
  std::uint64_t frames = 0;
  std::uint64_t ops = 0;
  std::uint64_t launches = 0;    ///< by ops
  std::uint64_t activities = 0;  ///< kernels, copies and fills
  std::uint64_t called_ops = 0;  ///< outermost ops that a Python call began
};

/// Writes a capture of `calls` rounds of everything that a trace shows: Python frames and calls,
/// ops with no, one and three launches, a backward op on a second thread, ranges of all kinds,
/// copies, fills, waits, a graph launch of two kernels, counters, call marks, and names that JSON
/// dislikes.
synthetic_contents write_synthetic_capture(const std::filesystem::path& path, std::uint32_t calls);

}  // namespace opscope::support
