// SPDX-License-Identifier: Apache-2.0
//
// Groupings of single events: kernels, API calls, streams, categories, threads.
#include <algorithm>
#include <map>
#include <unordered_map>

#include "analyse/summary_sinks.hpp"
#include "correlate/api_name.hpp"
#include "model/category.hpp"

namespace opscope::analyse::detail {
namespace {

using correlate::crossing;
using correlate::gpu_link;
using correlate::op_link;

constexpr auto record_method = "cupti-record";

bool own(const kernel& row) noexcept { return (row.flags & kernel::profiler_own) != 0; }

class kernel_rows final : public summary_sink {
 public:
  explicit kernel_rows(const capture::capture& source) : source_(source) {}

  void on(const kernel& row, const gpu_link& link) override {
    if (own(row)) return;
    auto& group = groups_[row.name];
    group.times.add(row.end - row.start);
    group.dram.add(link.counters);
  }

  void fill(summary& out) override {
    out.columns = {{"name", "kernel", text}, {"count", "count", count}};
    append(out.columns, duration_columns());
    const bool counted = std::ranges::any_of(
        groups_, [](const auto& entry) { return entry.second.dram.count != 0; });
    std::ranges::find(out.columns, "p95_ns", &summary_column::key)->shown = !counted;  // for room
    append(out.columns, dram_columns());
    out.columns.push_back({"method", "method", text, false});
    for (auto& [name, group] : groups_) {
      std::vector<summary_value> row{std::string(source_.text(name)),
                                     number(group.times.values.size())};
      append(row, group.times.statistics());
      append(row, group.dram.values(source_));
      row.emplace_back(std::string(record_method));
      out.rows.push_back(std::move(row));
    }
  }

 private:
  struct row_group {
    durations times;
    counted_bytes dram;
  };
  const capture::capture& source_;
  std::unordered_map<string_id, row_group> groups_;
};

/// The time that events cover on their tracks: what nests in another or crosses it adds only what
/// stands out. Events come by start.
class covered_time {
 public:
  template <typename Row>
  void add(std::uint64_t track, const Row& row) {
    auto& until = until_.try_emplace(track, timestamp::min()).first->second;
    total_ += std::max(row.end - std::max(row.start, until), std::chrono::nanoseconds{});
    until = std::max(until, row.end);
  }
  [[nodiscard]] std::int64_t total() const noexcept { return total_.count(); }

 private:
  std::unordered_map<std::uint64_t, timestamp> until_;
  std::chrono::nanoseconds total_{};
};

/// Rows of a name and the durations of its events.
class timed_rows : public summary_sink {
 public:
  timed_rows(std::string title, std::string method)
      : title_(std::move(title)), method_(std::move(method)) {}

  void fill(summary& out) override {
    out.columns = {{"name", title_, text}, {"count", "count", count}};
    append(out.columns, duration_columns());
    out.columns.push_back({"method", "method", text, false});
    for (auto& [name, times] : groups_) {
      std::vector<summary_value> row{name, number(times.values.size())};
      append(row, times.statistics());
      row.emplace_back(method_);
      out.rows.push_back(std::move(row));
    }
  }

 protected:
  template <typename Row>
  void add(std::string_view name, const Row& row) {
    auto at = groups_.find(name);
    if (at == groups_.end()) at = groups_.emplace(std::string(name), durations{}).first;
    at->second.add(row.end - row.start);
  }

 private:
  std::string title_;
  std::string method_;
  std::map<std::string, durations, std::less<>> groups_;
};

class api_rows final : public timed_rows {
 public:
  explicit api_rows(const capture::capture& source)
      : timed_rows("API call", record_method), source_(source) {}

  void on(const api_call& row, const op_link&, bool outermost) override {
    if (outermost) add(correlate::plain_api_name(source_.text(row.name)), row);
  }

 private:
  const capture::capture& source_;
};

class stream_rows final : public timed_rows {
 public:
  stream_rows() : timed_rows("stream", record_method) {}

  void on(const kernel& row, const gpu_link&) override {
    if (!own(row)) add_activity(row);
  }
  void on(const memory_copy& row, const gpu_link&) override { add_activity(row); }
  void on(const memory_set& row, const gpu_link&) override { add_activity(row); }

 private:
  template <typename Row>
  void add_activity(const Row& row) {
    add("GPU " + std::to_string(row.device) + " stream " + std::to_string(row.stream), row);
  }
};

/// Frames nest in frames, and ops in ops: a category's time is what its events cover.
class category_rows final : public summary_sink {
 public:
  void on(const python_frame& row) override { add(category(row.kind), of(row.thread), row); }
  void on(const op& row, const crossing*, const op_link&) override {
    add(category(row.kind), of(row.thread), row);
  }
  void on(const range& row) override {
    const bool process_wide = (row.flags & range::process_wide) != 0;
    add(category(row.kind), process_wide ? whole_process : of(row.thread), row);
  }
  void on(const api_call& row, const op_link&, bool outermost) override {
    if (outermost) add(category(row), of(row.thread), row);
  }
  void on(const kernel& row, const gpu_link&) override {
    if (!own(row)) add_gpu(row);
  }
  void on(const memory_copy& row, const gpu_link&) override { add_gpu(row); }
  void on(const memory_set& row, const gpu_link&) override { add_gpu(row); }
  void on(const synchronization& row) override { add(category(row.kind), row.stream, row); }
  void on(const overhead& row) override { add(category(row.kind), of(row.thread), row); }

  void fill(summary& out) override {
    out.columns = {{"name", "category", text},           {"count", "events", count},
                   {"total_ns", "time", nanoseconds},    {"median_ns", "median", nanoseconds},
                   {"p95_ns", "p95", nanoseconds},       {"min_ns", "min", nanoseconds, false},
                   {"max_ns", "max", nanoseconds, false}};
    for (auto& [name, group] : groups_) {
      const auto all = group.times.statistics();
      out.rows.push_back({std::string(name), number(group.times.values.size()),
                          group.covered.total(), all[2], all[3], all[4], all[5]});
    }
    out.notes.emplace_back(
        "time: that events cover, once a thread or stream however deep they nest; median and p95: "
        "of single events, with what nests in them");
  }

 private:
  static constexpr std::uint64_t whole_process = ~0ULL;
  struct row_group {
    durations times;
    covered_time covered;
  };

  static std::uint64_t of(thread_id thread) noexcept { return static_cast<std::uint64_t>(thread); }

  template <typename Row>
  void add_gpu(const Row& row) {
    add(category(row.kind), (std::uint64_t{row.device} << 32U) | row.stream, row);
  }
  template <typename Row>
  void add(std::string_view name, std::uint64_t track, const Row& row) {
    auto& group = groups_[name];
    group.times.add(row.end - row.start);
    group.covered.add(track, row);
  }

  std::map<std::string_view, row_group> groups_;  // category() gives literals
};

class thread_rows final : public summary_sink {
 public:
  explicit thread_rows(const capture::capture& source)
      : source_(source), gpu_(gpu_presence_of(source)) {
    auto rows = source.rows<thread_info>();
    while (const auto* row = rows.next()) names_.insert_or_assign(row->thread, row->name);
  }

  void on(const op& row, const crossing* outermost, const op_link&) override {
    if (outermost == nullptr) return;
    auto& group = groups_[row.thread];
    group.ops.add(row.end - row.start);
    group.launches += outermost->launches.size();
  }
  void on(const api_call& row, const op_link&, bool outermost) override {
    if (outermost) groups_[row.thread].calls.add(row.end - row.start);
  }
  void on(const python_frame& row) override { ++groups_[row.thread].frames; }

  void fill(summary& out) override {
    out.columns = {{"name", "thread", text},
                   {"thread", "id", text},
                   {"frames", "Python frames", count},
                   {"ops", "outermost ops", count},
                   {"op_ns", "op time", nanoseconds},
                   {"launches", "launches", count},
                   {"api_calls", "API calls", count, false},
                   {"api_ns", "API time", nanoseconds}};
    for (const auto& [id, group] : groups_) {
      const auto number_text = std::to_string(static_cast<std::uint32_t>(id));
      const auto named = names_.find(id);
      const auto name = named == names_.end() ? std::string_view{} : source_.text(named->second);
      out.rows.push_back({name.empty() ? "thread " + number_text : std::string(name), number_text,
                          number(group.frames), number(group.ops.values.size()), group.ops.total(),
                          number(gpu_, group.launches), number(gpu_, group.calls.values.size()),
                          present(gpu_.recorded, group.calls.total())});
    }
  }

 private:
  struct row_group {
    durations ops;
    durations calls;
    std::uint64_t launches = 0;
    std::uint64_t frames = 0;
  };
  const capture::capture& source_;
  gpu_presence gpu_;
  std::unordered_map<thread_id, string_id> names_;
  std::map<thread_id, row_group> groups_;
};

}  // namespace

std::unique_ptr<summary_sink> make_kernel_rows(const capture::capture& source) {
  return std::make_unique<kernel_rows>(source);
}
std::unique_ptr<summary_sink> make_api_rows(const capture::capture& source) {
  return std::make_unique<api_rows>(source);
}
std::unique_ptr<summary_sink> make_stream_rows() { return std::make_unique<stream_rows>(); }
std::unique_ptr<summary_sink> make_category_rows() { return std::make_unique<category_rows>(); }
std::unique_ptr<summary_sink> make_thread_rows(const capture::capture& source) {
  return std::make_unique<thread_rows>(source);
}

}  // namespace opscope::analyse::detail
