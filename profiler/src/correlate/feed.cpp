// SPDX-License-Identifier: Apache-2.0
#include "correlate/feed.hpp"

#include <memory>

namespace opscope::correlate {
namespace {

template <record Row>
row_source<Row> source_of(const capture::capture& source) {
  // std::function wants a copyable target; the cursor is only movable.
  auto cursor = std::make_shared<capture::cursor<Row>>(source.rows<Row>());
  return [cursor] { return cursor->next(); };
}

}  // namespace

feed feed_of(const capture::capture& source) {
  return {.marks = source_of<call_mark>(source),
          .frames = source_of<python_frame>(source),
          .ranges = source_of<range>(source),
          .counters = source_of<counter_range>(source),
          .ops = source_of<op>(source),
          .calls = source_of<api_call>(source),
          .nodes = source_of<graph_node>(source),
          .synchronizations = source_of<synchronization>(source),
          .overheads = source_of<overhead>(source),
          .kernels = source_of<kernel>(source),
          .copies = source_of<memory_copy>(source),
          .fills = source_of<memory_set>(source),
          .text = [&source](string_id id) { return source.text(id); }};
}

}  // namespace opscope::correlate
