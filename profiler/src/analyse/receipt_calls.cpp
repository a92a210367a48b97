// SPDX-License-Identifier: Apache-2.0
#include "analyse/receipt_calls.hpp"

#include <algorithm>

#include "correlate/api_name.hpp"

namespace opscope::analyse::detail {

call_collector::call_collector(const capture::capture& source,
                               std::set<std::uint32_t> cells_with_backward)
    : source_(source), with_backward_(std::move(cells_with_backward)) {}

void call_collector::on(const call_mark& row, const correlate::counted*) {
  last_on_thread_[row.thread] = calls_.size();
  calls_.emplace_back().mark = row;
}

traced_call* call_collector::around(thread_id thread, timestamp from, timestamp to) {
  const auto contains = [&](const traced_call& call) {
    return call.mark.start <= from && to <= call.mark.end;
  };
  if (const auto own = last_on_thread_.find(thread); own != last_on_thread_.end()) {
    if (auto& call = calls_[own->second]; contains(call)) return &call;
  }
  if (calls_.empty()) return nullptr;
  auto& latest = calls_.back();
  return with_backward_.contains(latest.mark.cell) && contains(latest) ? &latest : nullptr;
}

template <typename Row>
void call_collector::stamp(traced_call* call, const Row& row, traced_call::own_stamp::stored what) {
  if (call == nullptr) return;
  call->own_stamps.push_back({row.start});
  call->own_stamps.push_back({row.end, what});
}

void call_collector::on(const python_frame& row) {
  stamp(around(row.thread, row.start, row.end), row, traced_call::own_stamp::stored::frame);
}

void call_collector::on(const range& row) {
  stamp(around(row.thread, row.start, row.end), row, traced_call::own_stamp::stored::range);
}

void call_collector::on(const op& row, const correlate::crossing* outermost,
                        const correlate::op_link&) {
  auto* call = around(row.thread, row.start, row.end);
  stamp(call, row, traced_call::own_stamp::stored::op);
  if (outermost == nullptr || call == nullptr) return;
  call->op_begin = std::min(call->op_begin.value_or(row.start), row.start);
  call->op_end = std::max(call->op_end.value_or(row.end), row.end);
}

void call_collector::on(const api_call& row, const correlate::op_link& link, bool outermost) {
  if (!outermost || row.result != 0 || row.correlation == correlation_id{}) return;
  if (correlate::launch_kind_of(source_.text(row.name)) == correlate::launch_kind::none) return;
  auto* call = around(row.thread, row.start, row.end);
  if (call == nullptr) return;
  call->launches.push_back({row.start, row.end, row.correlation});
  call->outside_op = call->outside_op || link.outermost == 0;
  call_of_launch_.insert_or_assign(row.correlation, static_cast<std::size_t>(call - calls_.data()));
}

template <typename Row>
void call_collector::add_activity(const Row& row, const correlate::gpu_link& link, bool is_kernel) {
  if (!link.launch) return;
  const auto at = call_of_launch_.find(link.launch->correlation);
  if (at == call_of_launch_.end()) return;
  calls_[at->second].activities.push_back(
      {row.start, row.end, link.launch->start, link.launch->end, is_kernel});
}

void call_collector::on(const kernel& row, const correlate::gpu_link& link) {
  if ((row.flags & kernel::profiler_own) == 0) add_activity(row, link, true);
}
void call_collector::on(const memory_copy& row, const correlate::gpu_link& link) {
  add_activity(row, link, false);
}
void call_collector::on(const memory_set& row, const correlate::gpu_link& link) {
  add_activity(row, link, false);
}

std::map<subject, std::vector<traced_call>> call_collector::take() {
  std::map<subject, std::vector<traced_call>> out;
  for (auto& call : calls_) {
    out[{call.mark.cell, call.mark.contender}].push_back(std::move(call));
  }
  calls_.clear();
  return out;
}

}  // namespace opscope::analyse::detail
