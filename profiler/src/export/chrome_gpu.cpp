// SPDX-License-Identifier: Apache-2.0
//
// GPU events: a track a stream (tid = stream x 100 + lane), with the ranges projected on it.

#include "export/chrome_sink.hpp"
#include "export/names.hpp"
#include "model/category.hpp"

namespace opscope::exporter {
namespace {

constexpr std::int64_t lanes_a_stream = 100;
constexpr std::int64_t wait_base = 1'000'000'000;  // waits cross kernels: tracks of their own
constexpr std::uint32_t any_stream = 0xFFFFFFFF;

}  // namespace

void chrome_sink::name_device(std::uint32_t device) {
  if (!named_devices_.insert(device).second) return;
  auto name = "rank " + std::to_string(facts_.rank) + " GPU " + std::to_string(device);
  if (const auto model = device_name(device_, device); !model.empty()) name += " " + model;
  trace_.name_process(facts_.gpu_pid(device), name);
}

base_track chrome_sink::stream_track(std::uint32_t device, std::uint32_t stream) {
  name_device(device);
  return {{facts_.gpu_pid(device), stream * lanes_a_stream}, 1, [stream] {
            return "stream " + std::to_string(stream);
          }};
}

base_track chrome_sink::wait_track(std::uint32_t device, std::uint32_t stream) {
  name_device(device);
  const bool any = stream == any_stream;
  const auto tid = wait_base + (any ? -lanes_a_stream : stream * lanes_a_stream);
  return {{facts_.gpu_pid(device), tid}, 1, [stream, any] {
            return any ? std::string{"waits"} : "waits for stream " + std::to_string(stream);
          }};
}

void chrome_sink::project_before(timestamp start, timestamp end) {
  if (!options_.annotations) return;
  const auto& all = survey_.projections;
  while (projected_ < all.size()) {
    const auto& next = all[projected_];
    if (next.start > start || (next.start == start && next.end < end)) return;
    ++projected_;
    write_projection(next);
  }
}

void chrome_sink::write_projection(const projection& row) {
  trace_.begin_slice("gpu_user_annotation", quoted(row.name), stream_track(row.device, row.stream),
                     row.start, row.end);
  trace_.text().raw(R"("device":)").integer(row.device);
  trace_.text().raw(R"(,"stream":)").integer(row.stream);
  trace_.text().raw(R"(,"External id":)").integer(row.range);
  trace_.finish();
}

void chrome_sink::finish() {
  project_before(timestamp::max(), timestamp::min());
  trace_.drain();
}

std::vector<arrow_end> chrome_sink::gpu_ends(correlation_id correlation, timestamp start,
                                             const correlate::gpu_link& link) {
  std::vector<arrow_end> ends;
  if (!options_.arrows || !link.launch) return ends;
  if (link.launch->start > start) {
    trace_.arrows().leave_out(arrow_kind::ac2g);  // an arrow cannot run back in time
  } else {
    ends.push_back({arrow_kind::ac2g, false, static_cast<std::uint64_t>(correlation)});
  }
  return ends;
}

template <typename Row>
void chrome_sink::gpu_arguments(const Row& row, const correlate::gpu_link& link) {
  auto& text = trace_.text();
  if (link.op.innermost != 0) {
    text.raw(R"("External id":)").integer(link.op.innermost).raw(",");
  }
  text.raw(R"("device":)").integer(row.device).raw(R"(,"context":)").integer(row.context);
  text.raw(R"(,"stream":)").integer(row.stream);
  text.raw(R"(,"correlation":)").integer(static_cast<std::uint32_t>(row.correlation));
  device_of_context_[row.context] = row.device;
}

template <typename Row>
void chrome_sink::own_gpu_arguments(const Row& row, const correlate::gpu_link& link) {
  auto& text = trace_.text();
  text.raw(R"(,"opscope":{"op":)");
  if (link.op.outermost != 0) {
    text.raw(quoted(link.op.name));
  } else {
    text.raw("null");
  }
  if (link.queue) text.raw(R"(,"queue_ns":)").integer(link.queue->count());
  if (row.graph_node != 0) text.raw(R"(,"graph_node":)").integer(row.graph_node);
  if (link.captured_earlier) text.raw(R"(,"captured":"earlier")");
  if (const auto only = only_launches_.find(link.op.outermost); only != only_launches_.end()) {
    if (only->second.has_bytes && row.graph_node == 0) {
      ideal_bytes(only->second.bytes_ideal, only->second.at_least);
    }
    only_launches_.erase(only);
  }
  if (link.counters != nullptr) counter_arguments(*link.counters);
}

void chrome_sink::on(const kernel& row, const correlate::gpu_link& link) {
  project_before(row.start, row.end);
  // What CUPTI itself runs to count is no kernel of the program: readers sum by category.
  const bool own = (row.flags & kernel::profiler_own) != 0;
  trace_.begin_slice(category(own ? record_kind::overhead : row.kind), quoted(row.name),
                     stream_track(row.device, row.stream), row.start, row.end,
                     gpu_ends(row.correlation, row.start, link));
  gpu_arguments(row, link);
  auto& text = trace_.text();
  const auto triple = [&text](std::string_view key, const std::uint32_t (&value)[3]) {
    text.raw(",\"").raw(key).raw("\":[").integer(value[0]).raw(",").integer(value[1]);
    text.raw(",").integer(value[2]).raw("]");
  };
  triple("grid", row.grid);
  triple("block", row.block);
  text.raw(R"(,"registers per thread":)").integer(row.registers_per_thread);
  text.raw(R"(,"shared memory":)")
      .integer(std::uint64_t{row.static_shared_bytes} + row.dynamic_shared_bytes);
  own_gpu_arguments(row, link);
  if (own) text.raw(R"(,"profiler_own":true)");
  text.raw("}");
  trace_.finish();
  if (link.counters != nullptr) traffic_counters(row, link.counters->values);
}

void chrome_sink::traffic_counters(const kernel& row, const counter_range& counters) {
  const auto length = static_cast<double>((row.end - row.start).count());
  auto& until = counted_until_[row.device];
  const bool overlapping = row.start < until;  // one value a device at a time
  const bool counted = correlate::is_possible(counters.dram_read_bytes) &&
                       correlate::is_possible(counters.dram_write_bytes);
  if (!options_.counters || length <= 0 || overlapping || !counted) return;
  until = row.end;
  const auto members = [](double read, double write) {
    return json_text{}
        .raw(R"("read GB/s":)")
        .number(read)
        .raw(R"(,"write GB/s":)")
        .number(write)
        .text();
  };
  const auto pid = facts_.gpu_pid(row.device);
  trace_.counter("DRAM", pid, row.start,
                 members(counters.dram_read_bytes / length, counters.dram_write_bytes / length), 2);
  trace_.counter_later("DRAM", pid, row.end, members(0, 0), 2);
}

void chrome_sink::moved_bytes(const std::string& name, std::string_view category, const auto& row,
                              const correlate::gpu_link& link) {
  project_before(row.start, row.end);
  const auto quoted_name = json_text{}.quoted(name);
  trace_.begin_slice(category, quoted_name.text(), stream_track(row.device, row.stream), row.start,
                     row.end, gpu_ends(row.correlation, row.start, link));
  gpu_arguments(row, link);
  auto& text = trace_.text();
  text.raw(R"(,"bytes":)").integer(row.bytes);
  if (row.end > row.start) {
    const auto length = static_cast<double>((row.end - row.start).count());
    text.raw(",\"memory bandwidth (GB/s)\":").number(static_cast<double>(row.bytes) / length);
  }
  own_gpu_arguments(row, link);
  text.raw("}");
  trace_.finish();
}

void chrome_sink::on(const memory_copy& row, const correlate::gpu_link& link) {
  moved_bytes(copy_name(row.copy_kind, row.source_kind, row.target_kind), category(row.kind), row,
              link);
}

void chrome_sink::on(const memory_set& row, const correlate::gpu_link& link) {
  moved_bytes(fill_name(row.memory_kind), category(row.kind), row, link);
}

void chrome_sink::on(const synchronization& row) {
  project_before(row.start, row.end);
  const auto known = device_of_context_.find(row.context);
  const auto device = known == device_of_context_.end() ? 0U : known->second;
  const auto name_text = json_text{}.quoted(synchronization_name(row.type));
  trace_.begin_slice(category(row.kind), name_text.text(), wait_track(device, row.stream),
                     row.start, row.end);
  auto& text = trace_.text();
  text.raw(R"("cuda_sync_kind":)").quoted(synchronization_name(row.type));
  text.raw(R"(,"device":)").integer(device).raw(R"(,"context":)").integer(row.context);
  text.raw(R"(,"stream":)")
      .integer(row.stream == any_stream ? std::int64_t{-1} : std::int64_t{row.stream});
  text.raw(R"(,"correlation":)").integer(static_cast<std::uint32_t>(row.correlation));
  trace_.finish();
}

}  // namespace opscope::exporter
