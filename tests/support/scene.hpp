// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "capture/reader.hpp"
#include "capture/writer.hpp"
#include "support/temporary_folder.hpp"

namespace opscope::test {

inline timestamp at(std::int64_t nanoseconds) { return timestamp{nanoseconds}; }

/// Events told in a few words and read back as a capture. Times are nanoseconds.
class scene {
 public:
  static constexpr std::uint32_t main_thread = 10;
  static constexpr std::uint32_t other_thread = 20;

  span_id frame(std::string_view name, std::int64_t start, std::int64_t end,
                std::uint32_t flags = 0, std::uint32_t thread = main_thread) {
    python_frame row{};
    row.start = at(start);
    row.end = at(end);
    row.id = next_id_++;
    row.name = id(name);
    row.thread = thread_id{thread};
    row.flags = flags;
    frames_.push_back(row);
    return row.id;
  }

  span_id op(std::string_view name, std::int64_t start, std::int64_t end, std::uint32_t flags = 0,
             std::uint32_t thread = main_thread, std::string_view shapes = "") {
    opscope::op row{};
    row.start = at(start);
    row.end = at(end);
    row.id = next_id_++;
    row.sequence = -1;
    row.name = id(name);
    row.thread = thread_id{thread};
    row.input_dims = id(shapes);
    row.flags = flags;
    ops_.push_back(row);
    return row.id;
  }

  span_id range(std::string_view name, std::int64_t start, std::int64_t end,
                std::uint32_t flags = 0, std::uint32_t thread = main_thread) {
    opscope::range row{};
    row.start = at(start);
    row.end = at(end);
    row.id = next_id_++;
    row.name = id(name);
    row.thread = row.end_thread = thread_id{thread};
    row.flags = flags;
    ranges_.push_back(row);
    return row.id;
  }

  void call(std::string_view name, std::uint32_t correlation, std::int64_t start, std::int64_t end,
            std::uint32_t thread = main_thread, std::int32_t result = 0) {
    api_call row{};
    row.start = at(start);
    row.end = at(end);
    row.name = id(name);
    row.correlation = correlation_id{correlation};
    row.thread = thread_id{thread};
    row.api = name.starts_with("cuda") ? api_call::domain::runtime : api_call::domain::driver;
    row.result = result;
    calls_.push_back(row);
  }

  void kernel(std::string_view name, std::uint32_t correlation, std::int64_t start,
              std::int64_t end, std::uint64_t node = 0, std::uint32_t flags = 0) {
    opscope::kernel row{};
    row.start = at(start);
    row.end = at(end);
    row.graph_node = node;
    row.name = id(name);
    row.correlation = correlation_id{correlation};
    row.stream = 7;
    row.flags = flags;
    kernels_.push_back(row);
  }

  /// A launch call and its kernel.
  void launch(std::uint32_t correlation, std::int64_t start, std::int64_t end,
              std::int64_t kernel_start, std::int64_t kernel_end,
              std::uint32_t thread = main_thread) {
    call("cudaLaunchKernel", correlation, start, end, thread);
    kernel("some_kernel", correlation, kernel_start, kernel_end);
  }

  void node(std::uint64_t node, std::uint64_t original, std::int64_t time) {
    graph_node row{};
    row.start = at(time);
    row.node = node;
    row.original = original;
    row.thread = thread_id{main_thread};
    nodes_.push_back(row);
  }

  void mark(std::uint32_t cell, std::uint32_t contender, std::uint32_t ordinal, std::int64_t start,
            std::int64_t end) {
    marks_.push_back({at(start), at(end), cell, contender, ordinal, thread_id{main_thread}});
  }

  counter_range& counters(std::string_view name, std::uint64_t ordinal, std::int64_t start,
                          std::int64_t end, double read, double write) {
    counter_range row{};
    row.start = at(start);
    row.end = at(end);
    row.dram_read_bytes = read;
    row.dram_write_bytes = write;
    row.ordinal = ordinal;
    row.name = id(name);
    row.method = id("counter:user-range");
    row.cell = no_cell;
    counters_.push_back(row);
    return counters_.back();
  }

  void samples(sample::metric what, std::uint32_t cell, std::uint32_t contender,
               const std::vector<std::int64_t>& values) {
    for (std::uint32_t i = 0; i < values.size(); ++i) {
      samples_.push_back({values[i], cell, contender, i, what});
    }
  }

  void document(std::string_view name, std::string_view json) { documents_.emplace(name, json); }

  /// The n-th kernel told, to be altered.
  opscope::kernel& kernel_row(std::size_t index) { return kernels_.at(index); }

  /// Writes everything and opens it. Once.
  capture::capture open(const ledger& collected = {}) {
    const auto path = folder_ / "scene.opscope";
    {
      capture::writer out(path, true, "{}");
      for (const auto& name : names_) written_.push_back(out.intern(name));
      append(out, frames_);
      append(out, ops_);
      append(out, ranges_);
      append(out, calls_);
      append(out, kernels_);
      append(out, nodes_);
      append(out, marks_);
      append(out, counters_);
      out.append(std::span<sample>(samples_));
      for (const auto& [name, json] : documents_) out.document(name, json);
      out.close(at(1'000'000'000), collected);
    }
    auto opened = capture::capture::open(path);
    if (!opened) throw std::runtime_error(opened.error().message);
    return std::move(opened).value();
  }

 private:
  string_id id(std::string_view name) {
    for (std::uint32_t i = 0; i < names_.size(); ++i) {
      if (names_[i] == name) return string_id{i};
    }
    names_.emplace_back(name);
    return string_id{static_cast<std::uint32_t>(names_.size() - 1)};
  }

  [[nodiscard]] string_id of_file(string_id id) const {
    return written_[static_cast<std::uint32_t>(id)];
  }

  template <record Row>
  void append(capture::writer& out, std::vector<Row>& rows) const {
    for (auto& row : rows) {
      if constexpr (requires { row.name; }) row.name = of_file(row.name);
      if constexpr (requires { row.input_dims; }) row.input_dims = of_file(row.input_dims);
      if constexpr (requires { row.method; }) row.method = of_file(row.method);
    }
    out.append(std::span<Row>(rows));
  }

  temporary_folder folder_;
  span_id next_id_ = 1;
  std::vector<std::string> names_{""};
  std::vector<string_id> written_;
  std::vector<python_frame> frames_;
  std::vector<opscope::op> ops_;
  std::vector<opscope::range> ranges_;
  std::vector<api_call> calls_;
  std::vector<opscope::kernel> kernels_;
  std::vector<graph_node> nodes_;
  std::vector<call_mark> marks_;
  std::vector<counter_range> counters_;
  std::vector<sample> samples_;
  std::multimap<std::string, std::string> documents_;
};

}  // namespace opscope::test
