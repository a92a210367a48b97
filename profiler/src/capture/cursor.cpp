// SPDX-License-Identifier: Apache-2.0
//
// A cursor merges the segments of one kind. Segments are taken by their first start; one is decoded
// when the merge reaches its first start and freed when its last row was handed out, so that only
// segments which overlap in time are in memory.
#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "capture/file.hpp"
#include "capture/reader.hpp"
#include "capture/row_order.hpp"

namespace opscope::capture {

template <record Row>
class cursor<Row>::state {
 public:
  explicit state(const file& source) : file_{&source}, segments_{&source.segments(Row::kind)} {}

  const Row* next() {
    if (handed_out_) advance();
    handed_out_ = false;
    while (unopened_ < segments_->size()) {
      const index_entry& entry = (*segments_)[unopened_];
      if (!open_.empty() && entry.header.first_start > start_of(open_.front().current())) break;
      ++unopened_;
      open(entry);
    }
    if (open_.empty()) return nullptr;
    handed_out_ = true;
    return &open_.front().current();
  }

 private:
  struct run {
    std::vector<Row> rows;
    std::size_t position = 0;
    std::size_t ordinal = 0;  // keeps the order of equal rows that of the file
    [[nodiscard]] const Row& current() const { return rows[position]; }
  };

  /// Heap order: the front is the run whose row comes first.
  static bool later(const run& left, const run& right) {
    if (row_order{}(right.current(), left.current())) return true;
    return !row_order{}(left.current(), right.current()) && right.ordinal < left.ordinal;
  }

  void open(const index_entry& entry) {
    std::vector<std::byte> raw;
    if (!file_->read_rows(entry, raw) || raw.empty()) return;
    run opened{.rows = std::vector<Row>(raw.size() / sizeof(Row)), .ordinal = unopened_};
    std::memcpy(opened.rows.data(), raw.data(), opened.rows.size() * sizeof(Row));
    // The order inside a segment is the writer's promise, which an untrusted file need not keep.
    if (!std::is_sorted(opened.rows.begin(), opened.rows.end(), row_order{})) {
      std::stable_sort(opened.rows.begin(), opened.rows.end(), row_order{});
    }
    open_.push_back(std::move(opened));
    std::push_heap(open_.begin(), open_.end(), later);
  }

  void advance() {
    std::pop_heap(open_.begin(), open_.end(), later);
    run& front = open_.back();
    if (++front.position == front.rows.size()) {
      open_.pop_back();
    } else {
      std::push_heap(open_.begin(), open_.end(), later);
    }
  }

  const file* file_;
  const std::vector<index_entry>* segments_;
  std::size_t unopened_ = 0;
  bool handed_out_ = false;
  std::vector<run> open_;
};

template <record Row>
cursor<Row>::cursor(std::unique_ptr<state> merged) : state_{std::move(merged)} {}
template <record Row>
cursor<Row>::cursor(cursor&&) noexcept = default;
template <record Row>
cursor<Row>& cursor<Row>::operator=(cursor&&) noexcept = default;
template <record Row>
cursor<Row>::~cursor() = default;

template <record Row>
const Row* cursor<Row>::next() {
  return state_->next();
}

template <record Row>
cursor<Row> capture::rows() const {
  return cursor<Row>{std::make_unique<typename cursor<Row>::state>(*file_)};
}

#define OPSCOPE_INSTANTIATE(Row) \
  template class cursor<Row>;    \
  template cursor<Row> capture::rows<Row>() const

OPSCOPE_INSTANTIATE(python_frame);
OPSCOPE_INSTANTIATE(op);
OPSCOPE_INSTANTIATE(range);
OPSCOPE_INSTANTIATE(api_call);
OPSCOPE_INSTANTIATE(kernel);
OPSCOPE_INSTANTIATE(memory_copy);
OPSCOPE_INSTANTIATE(memory_set);
OPSCOPE_INSTANTIATE(synchronization);
OPSCOPE_INSTANTIATE(overhead);
OPSCOPE_INSTANTIATE(counter_range);
OPSCOPE_INSTANTIATE(call_mark);
OPSCOPE_INSTANTIATE(sample);
OPSCOPE_INSTANTIATE(graph_node);
OPSCOPE_INSTANTIATE(external_correlation);
OPSCOPE_INSTANTIATE(clock_pair);
OPSCOPE_INSTANTIATE(thread_info);

#undef OPSCOPE_INSTANTIATE

}  // namespace opscope::capture
