// SPDX-License-Identifier: Apache-2.0
#include "correlate/stages.hpp"

namespace opscope::correlate {

stages make_stages(std::optional<timestamp> called, timestamp begin, timestamp end,
                   std::span<const launch> launches) {
  stages parts;
  parts.total = end - called.value_or(begin);
  if (called) parts.python = begin - *called;
  if (launches.empty()) {
    parts.op = end - begin;
    return parts;
  }
  const launch& first = launches.front();
  // Launches of one thread do not overlap, so the last to start is the last to end.
  const launch& last = launches.back();
  parts.dispatch = first.start - begin;
  parts.launch = first.end - first.start;
  parts.between = last.end - first.end;
  parts.return_ = end - last.end;
  return parts;
}

std::chrono::nanoseconds sum(const stages& parts) noexcept {
  constexpr std::chrono::nanoseconds none{};
  return parts.python.value_or(none) + parts.dispatch.value_or(none) + parts.launch.value_or(none) +
         parts.between.value_or(none) + parts.return_.value_or(none) + parts.op.value_or(none);
}

}  // namespace opscope::correlate
