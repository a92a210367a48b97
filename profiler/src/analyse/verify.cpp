// SPDX-License-Identifier: Apache-2.0
#include "analyse/verify.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "analyse/text_layout.hpp"
#include "correlate/correlate.hpp"

namespace opscope::analyse {
namespace {

using json = nlohmann::ordered_json;

/// Union of a device's kernel intervals, which come by start.
class busy_time {
 public:
  void add(timestamp start, timestamp end) {
    const auto from = std::max(start, until_);
    if (end > from) total_ += (end - from).count();
    until_ = std::max(until_, end);
  }
  [[nodiscard]] std::int64_t total() const noexcept { return total_; }

 private:
  timestamp until_ = timestamp::min();
  std::int64_t total_ = 0;
};

class census_sink final : public correlate::linked_sink {
 public:
  void on(const python_frame& row) override { see(row); }
  void on(const op& row, const correlate::crossing*, const correlate::op_link&) override {
    see(row);
  }
  void on(const range& row) override { see(row); }
  void on(const api_call& row, const correlate::op_link&, bool) override { see(row); }
  void on(const memory_copy& row, const correlate::gpu_link&) override { see(row); }
  void on(const memory_set& row, const correlate::gpu_link&) override { see(row); }
  void on(const synchronization& row) override { see(row); }
  void on(const overhead& row) override { see(row); }
  void on(const call_mark& row, const correlate::counted*) override { see(row); }
  void on(const counter_range& row) override { see(row); }
  void on(const kernel& row, const correlate::gpu_link&) override {
    see(row);
    if ((row.flags & kernel::profiler_own) != 0) return;
    ++count_;
    names_.insert(static_cast<std::uint32_t>(row.name));
    correlations_.insert(static_cast<std::uint32_t>(row.correlation));
    busy_[row.device].add(row.start, row.end);
  }

  void fill(verification& out) const {
    out.first = first_;
    out.last = last_;
    out.kernels.count = count_;
    out.kernels.distinct_names = names_.size();
    out.kernels.distinct_correlations = correlations_.size();
    for (const auto& [device, busy] : busy_) {
      out.kernels.busy_ns_by_device[std::to_string(device)] = busy.total();
    }
  }

 private:
  template <typename Row>
  void see(const Row& row) {
    first_ = std::min(first_.value_or(row.start), row.start);
    last_ = std::max(last_.value_or(row.end), row.end);
  }

  std::optional<timestamp> first_;
  std::optional<timestamp> last_;
  std::uint64_t count_ = 0;
  std::unordered_set<std::uint32_t> names_;
  std::unordered_set<std::uint32_t> correlations_;
  std::map<std::uint32_t, busy_time> busy_;
};

/// What a ledger's entry means for whoever relies on the trace. `skipped` is what was not
/// measurable where it stood, such as an arrow without a place: nothing that was recorded is gone.
std::optional<problem> problem_of(outcome what, std::string_view record, std::uint64_t count) {
  const auto made = [&](problem::severity weight, std::string_view kind, std::string detail) {
    return problem{std::string(kind), weight, count, std::nullopt, std::move(detail)};
  };
  using enum problem::severity;
  switch (what) {
    case outcome::dropped:
      return made(loss, fmt::format("dropped_{}", record),
                  fmt::format("{} {} records were lost for want of room", count, record));
    case outcome::untimed:
      return made(loss, fmt::format("untimed_{}", record),
                  fmt::format("{} {} records came without usable timestamps", count, record));
    case outcome::unlinked:
      if (record == "launch") {
        return made(loss, "launch_without_activity",
                    fmt::format("{} launches have no GPU activity", count));
      }
      return made(loss, fmt::format("{}_without_partner", record),
                  fmt::format("{} {} records have no partner on the host", count, record));
    case outcome::clamped:
      return made(info, fmt::format("clamped_{}", record),
                  fmt::format("{} {} records were cut at the session's ends or lie out of order",
                              count, record));
    case outcome::skipped:
      return made(record == "segment" ? loss : info, fmt::format("skipped_{}", record),
                  fmt::format("{} {} records could not be read or measured", count, record));
    case outcome::delivered:
      break;
  }
  return std::nullopt;
}

void judge(const capture::capture& source, verification& out) {
  using enum problem::severity;
  if (source.recovered()) {
    out.problems.push_back({"no_footer", loss, 1, source.damage_offset(),
                            "the capture was not closed: read up to its last whole segment"});
  } else if (source.damage_offset()) {
    out.problems.push_back({"damaged_segment", loss, 1, source.damage_offset(),
                            "a part of the capture cannot be read"});
  }
  for (const auto what : outcomes) {
    for (const auto& [record, count] : out.ledger.of(what)) {
      if (count == 0) continue;
      if (auto found = problem_of(what, record, count)) out.problems.push_back(std::move(*found));
    }
  }
  const bool lost =
      std::ranges::any_of(out.problems, [](const problem& p) { return p.weight == loss; });
  out.verdict = lost ? integrity::loss : integrity::complete;
  if (source.recovered()) out.verdict = integrity::recovered;
}

json time_text(const std::optional<timestamp>& time) {
  return time ? json(std::to_string(time->count())) : json(nullptr);
}

json categories_of(const trace_census& census) {
  json out = json::object();
  for (const auto& [name, category] : census.by_category) {
    out[name] = {{"count", category.count}, {"duration_ns", category.duration_ns}};
  }
  return out;
}

std::string category_table(const trace_census& census) {
  std::vector<std::vector<std::string>> rows;
  rows.reserve(census.by_category.size());
  for (const auto& [name, category] : census.by_category) {
    rows.push_back({name, count_text(static_cast<std::int64_t>(category.count)),
                    duration_text(category.duration_ns)});
  }
  return render_table({{"category"}, {"events", true}, {"duration", true}}, rows, 80);
}

}  // namespace

std::string_view name(integrity verdict) noexcept {
  switch (verdict) {
    case integrity::complete:
      return "complete";
    case integrity::loss:
      return "loss";
    case integrity::recovered:
      break;
  }
  return "recovered";
}

verification verify(const capture::capture& source, std::optional<trace_census> exported) {
  verification out;
  census_sink sink;
  out.ledger = correlate::link(source, sink);
  out.exported = std::move(exported);
  sink.fill(out);
  judge(source, out);
  return out;
}

std::string to_json(const verification& report) {
  json out{{"schema", "opscope.verify/1"},
           {"source", "capture"},
           {"verdict", name(report.verdict)},
           {"events", nullptr},
           {"by_phase", nullptr},
           {"by_category", nullptr},
           {"first_ns", time_text(report.first)},
           {"last_ns", time_text(report.last)}};
  if (report.exported) {
    out["events"] = report.exported->events;
    out["by_phase"] = report.exported->by_phase;
    out["by_category"] = categories_of(*report.exported);
  }
  out["kernels"] = {{"count", report.kernels.count},
                    {"distinct_names", report.kernels.distinct_names},
                    {"distinct_correlations", report.kernels.distinct_correlations},
                    {"busy_ns_by_pid", report.kernels.busy_ns_by_device}};
  out["ledger"] = json::parse(to_json(report.ledger));
  out["problems"] = json::array();
  for (const auto& found : report.problems) {
    json entry{{"kind", found.kind},
               {"severity", found.weight == problem::severity::loss ? "loss" : "info"},
               {"count", found.count}};
    if (found.first_offset) entry["first_offset"] = *found.first_offset;
    entry["detail"] = found.detail;
    out["problems"].push_back(std::move(entry));
  }
  return out.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string to_table(const verification& report) {
  auto out = fmt::format("verdict: {}\n", name(report.verdict));
  out += fmt::format("kernels: {}, {} distinct names, {} launches\n",
                     count_text(static_cast<std::int64_t>(report.kernels.count)),
                     report.kernels.distinct_names, report.kernels.distinct_correlations);
  for (const auto& [device, busy] : report.kernels.busy_ns_by_device) {
    out += fmt::format("GPU {} busy with kernels: {}\n", device, duration_text(busy));
  }
  if (report.exported) out += '\n' + category_table(*report.exported);
  if (report.problems.empty()) return out;
  out += '\n';
  for (const auto& found : report.problems) {
    const auto place =
        found.first_offset ? fmt::format(" (byte {})", *found.first_offset) : std::string{};
    const std::string_view weight = found.weight == problem::severity::loss ? "loss" : "info";
    out += wrapped(fmt::format("{}: {}{}", weight, on_one_line(found.detail), place), 80, 2);
  }
  return out;
}

}  // namespace opscope::analyse
