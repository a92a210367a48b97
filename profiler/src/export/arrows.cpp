// SPDX-License-Identifier: Apache-2.0
#include "export/arrows.hpp"

namespace opscope::exporter {

std::string_view name(arrow_kind kind) noexcept {
  switch (kind) {
    case arrow_kind::ac2g:
      return "ac2g";
    case arrow_kind::fwdbwd:
      return "fwdbwd";
    case arrow_kind::opscope:
      return "opscope";
  }
  return "opscope";
}

void arrows::open(const track_id& track, timestamp start, timestamp end,
                  std::vector<arrow_end> ends) {
  for (auto& opened : unsettled_) {
    if (opened.track == track) opened.covered = true;
  }
  if (!ends.empty()) unsettled_.push_back({track, start, end <= start, std::move(ends)});
}

bool arrows::admit(const arrow_end& end, bool covered) {
  const std::pair key{end.kind, end.id};
  if (end.source) {
    if (covered) without_source_.insert(key);
    return !covered;
  }
  const bool drawable = !covered && !without_source_.contains(key);
  ++(drawable ? drawn_ : left_out_)[static_cast<std::size_t>(end.kind)];
  return drawable;
}

}  // namespace opscope::exporter
