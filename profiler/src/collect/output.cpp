// SPDX-License-Identifier: Apache-2.0
#include "collect/output.hpp"

#include <utility>

#include "model/category.hpp"
#include "opscope/error.hpp"

namespace opscope::collect {
namespace {

template <record Row>
void count(ledger& to, outcome what, const std::vector<Row>& rows) {
  if constexpr (std::is_same_v<Row, api_call>) {
    std::uint64_t driver = 0;
    for (const api_call& call : rows) driver += call.api == api_call::domain::driver ? 1 : 0;
    to.add(what, "cuda_driver", driver);
    to.add(what, "cuda_runtime", rows.size() - driver);
  } else {
    to.add(what, category(Row::kind), rows.size());
  }
}

}  // namespace

output::output(capture::writer writer, const name_table& names, notes& notes)
    : writer_{std::move(writer)}, names_{names}, notes_{notes} {}

string_id output::intern(std::string_view text) try {
  return writer_.intern(text);
} catch (const error& failed) {
  disk_failed(failed.what());
  return string_id{0};
}

string_id output::intern_handle(std::uint32_t handle) {
  if (handle == 0) return string_id{0};
  if (handle >= handle_ids_.size()) handle_ids_.resize(handle + 64);
  if (handle_ids_[handle] == 0) {
    handle_ids_[handle] = static_cast<std::uint32_t>(intern(names_.text(handle)));
  }
  return string_id{handle_ids_[handle]};
}

template <record Row>
void output::write_rows() {
  auto& rows = std::get<std::vector<Row>>(rows_);
  if (rows.empty()) return;
  try {
    writer_.append(std::span{rows});
    count(ledger_, outcome::delivered, rows);
  } catch (const error& failed) {
    disk_failed(failed.what());
    count(ledger_, outcome::dropped, rows);
  }
  rows.clear();
}

void output::document(std::string_view name, std::string_view json) try {
  writer_.document(name, json);
} catch (const error& failed) {
  disk_failed(failed.what());
  ledger_.add(outcome::dropped, "document");
}

void output::flush() {
  std::apply(
      [this](auto&... rows) {
        (write_rows<typename std::decay_t<decltype(rows)>::value_type>(), ...);
      },
      rows_);
}

void output::disk_failed(std::string_view reason) {
  if (std::exchange(failed_, true)) return;
  notes_.warn(std::string{reason} + "; records are dropped and counted until it can");
}

void output::close(timestamp end, const ledger& other) {
  flush();
  ledger_.merge(other);
  try {
    writer_.close(end, ledger_);
  } catch (const error& failed) {
    const auto kept = writer_.partial();
    throw error(std::string{failed.what()} +
                (kept.empty() ? "; what was written was removed meanwhile"
                              : "; what was written is kept in '" + kept + "'"));
  }
}

template void output::write_rows<python_frame>();
template void output::write_rows<op>();
template void output::write_rows<range>();
template void output::write_rows<api_call>();
template void output::write_rows<kernel>();
template void output::write_rows<memory_copy>();
template void output::write_rows<memory_set>();
template void output::write_rows<synchronization>();
template void output::write_rows<overhead>();
template void output::write_rows<counter_range>();
template void output::write_rows<call_mark>();
template void output::write_rows<sample>();
template void output::write_rows<graph_node>();
template void output::write_rows<external_correlation>();
template void output::write_rows<clock_pair>();
template void output::write_rows<thread_info>();

}  // namespace opscope::collect
