// SPDX-License-Identifier: Apache-2.0
#include "export/lanes.hpp"

namespace opscope::exporter {

std::size_t lanes::place(timestamp start, timestamp end) {
  for (std::size_t lane = 0; lane < open_.size(); ++lane) {
    auto& open = open_[lane];
    while (!open.empty() && open.back() <= start) open.pop_back();
    if (open.empty() || end <= open.back()) {
      open.push_back(end);
      return lane;
    }
  }
  open_.push_back({end});
  return open_.size() - 1;
}

}  // namespace opscope::exporter
