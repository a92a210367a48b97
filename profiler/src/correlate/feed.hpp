// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string_view>
#include <tuple>

#include "capture/reader.hpp"
#include "model/records.hpp"

namespace opscope::correlate {

/// Rows of one kind in order of (start, -end): the next one, or nullptr. Valid until the next call.
template <record Row>
using row_source = std::function<const Row*()>;

/// What link() reads: a capture's cursors, or vectors in a test. A source left empty has no rows.
struct feed {
  row_source<call_mark> marks;
  row_source<python_frame> frames;
  row_source<range> ranges;
  row_source<counter_range> counters;
  row_source<op> ops;
  row_source<api_call> calls;
  row_source<graph_node> nodes;
  row_source<synchronization> synchronizations;
  row_source<overhead> overheads;
  row_source<kernel> kernels;
  row_source<memory_copy> copies;
  row_source<memory_set> fills;
  std::function<std::string_view(string_id)> text;
};

/// The cursors of `source`, which outlives the feed.
[[nodiscard]] feed feed_of(const capture::capture& source);

}  // namespace opscope::correlate
