// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "model/ids.hpp"

namespace opscope::exporter {

/// Spreads the slices of one track over lanes so that the slices of a lane nest and never cross:
/// viewers drop or misdraw a slice that crosses another one. Slices come in order of (start, -end).
class lanes {
 public:
  /// The first lane on which [start, end] nests.
  [[nodiscard]] std::size_t place(timestamp start, timestamp end);

 private:
  std::vector<std::vector<timestamp>> open_;  // ends of the open slices, a stack a lane
};

}  // namespace opscope::exporter
