// SPDX-License-Identifier: Apache-2.0
//
// One round takes 100 us. Times are hand-placed so that each layer nests in the one around it.
#include "synthetic_capture.hpp"

#include <span>
#include <string>
#include <vector>

#include "capture/writer.hpp"

namespace opscope::support {
namespace {

using std::chrono::nanoseconds;

constexpr timestamp epoch{1'760'000'000'123'456'789};
constexpr nanoseconds round_length{100'000};
constexpr thread_id main_thread{4242};
constexpr thread_id autograd_thread{4243};

/// Collects the rows of a capture and writes them a batch at a time.
class builder {
 public:
  explicit builder(const std::filesystem::path& path)
      : writer_{
            path, true,
            R"({"start_ns":"1760000000123456789","pid":4242,"process":"python","rank":0,"world_size":1,"host":"synthetic"})"} {
    writer_.document("device", R"({"devices":[{"ordinal":0,"name":"NVIDIA H200"}]})");
    writer_.document("deviceProperties", R"([{"id":0,"name":"NVIDIA H200","numSms":132}])");
    writer_.document("comparison", R"({"schema":"opscope.comparison/1","title":"gelu",)"
                                   R"("contenders":["torch.nn.functional.gelu","opscope::gelu"],)"
                                   R"("cells":[{"cell":0,"label":"1,024 fp32"}]})");
    std::vector<thread_info> threads{{epoch, main_thread, writer_.intern("python")},
                                     {epoch, autograd_thread, writer_.intern("autograd")}};
    writer_.append(std::span{threads});
  }

  void round(std::uint32_t number);
  void write();
  synthetic_contents close(std::uint32_t rounds) {
    write();
    ledger delivered;
    delivered.add(outcome::delivered, "cpu_op", contents_.ops);
    delivered.add(outcome::delivered, "kernel", contents_.activities);
    writer_.close(epoch + round_length * (rounds + 1), delivered);
    return contents_;
  }

 private:
  struct interval {
    timestamp start;
    timestamp end;
  };
  [[nodiscard]] interval at(int start, int end) const {
    return {base_ + nanoseconds{start}, base_ + nanoseconds{end}};
  }
  string_id name(std::string_view text) { return writer_.intern(text); }

  span_id frame(interval when, std::string_view text, span_id parent, std::uint32_t flags = 0);
  span_id call(interval when, std::string_view text, span_id frame, std::uint32_t flags = 0);
  correlation_id api(interval when, std::string_view text, thread_id thread = main_thread);
  void gpu(interval when, correlation_id correlation, std::string_view text,
           std::uint32_t stream = 7, std::uint64_t node = 0);
  void annotation(interval when, std::string_view text, std::uint32_t flags = 0);

  void forward();
  void backward();
  void transfers();
  void graph_replay();
  void compared_call(std::uint32_t number);

  capture::writer writer_;
  synthetic_contents contents_;
  timestamp base_{epoch};
  span_id next_id_ = 1;
  std::uint32_t next_correlation_ = 1;
  std::uint64_t counted_ = 0;
  span_id last_frame_ = 0;
  std::int64_t sequence_ = 0;
  std::vector<python_frame> frames_;
  std::vector<op> ops_;
  std::vector<range> ranges_;
  std::vector<api_call> calls_;
  std::vector<kernel> kernels_;
  std::vector<memory_copy> copies_;
  std::vector<memory_set> fills_;
  std::vector<synchronization> waits_;
  std::vector<overhead> overheads_;
  std::vector<counter_range> counters_;
  std::vector<call_mark> marks_;
};

span_id builder::frame(interval when, std::string_view text, span_id parent, std::uint32_t flags) {
  python_frame row{};
  row.start = when.start;
  row.end = when.end;
  row.id = next_id_++;
  row.parent = parent;
  row.name = name(text);
  row.file = name("/home/user/model \"v2\"/train.py");
  row.line = 12;
  row.thread = main_thread;
  row.flags = flags;
  frames_.push_back(row);
  ++contents_.frames;
  return row.id;
}

span_id builder::call(interval when, std::string_view text, span_id frame, std::uint32_t flags) {
  op row{};
  row.start = when.start;
  row.end = when.end;
  row.id = next_id_++;
  row.python_frame = frame;
  row.sequence = sequence_;
  row.logical_thread = 1;
  row.name = name(text);
  row.thread = main_thread;
  row.input_dims = name("[[1024],[]]");
  row.input_types = name(R"(["float","Scalar"])");
  row.input_bytes = 4096;
  row.output_bytes = 4096;
  row.flags = flags | op::has_bytes;
  ops_.push_back(row);
  ++contents_.ops;
  if ((flags & op::outermost) != 0 && frame != 0) ++contents_.called_ops;
  return row.id;
}

correlation_id builder::api(interval when, std::string_view text, thread_id thread) {
  api_call row{};
  row.start = when.start;
  row.end = when.end;
  row.name = name(text);
  row.correlation = correlation_id{next_correlation_++};
  row.thread = thread;
  row.callback = 211;
  calls_.push_back(row);
  return row.correlation;
}

void builder::gpu(interval when, correlation_id correlation, std::string_view text,
                  std::uint32_t stream, std::uint64_t node) {
  kernel row{};
  row.start = when.start;
  row.end = when.end;
  row.graph_node = node;
  row.name = name(text);
  row.correlation = correlation;
  row.context = 1;
  row.stream = stream;
  row.grid[0] = 4;
  row.grid[1] = row.grid[2] = 1;
  row.block[0] = 256;
  row.block[1] = row.block[2] = 1;
  row.registers_per_thread = 32;
  row.static_shared_bytes = 1024;
  kernels_.push_back(row);
  ++contents_.activities;
}

void builder::annotation(interval when, std::string_view text, std::uint32_t flags) {
  range row{};
  row.start = when.start;
  row.end = when.end;
  row.id = next_id_++;
  row.name = name(text);
  row.domain = name("opscope");
  row.thread = row.end_thread = main_thread;
  row.payload = 1024;
  row.payload_type = range::payload_kind::unsigned_integer;
  row.flags = flags;
  ranges_.push_back(row);
}

void builder::forward() {
  const auto step = frame(at(100, 95'000), "train_step", 0);
  annotation(at(200, 94'000), "ProfilerStep#" + std::to_string(sequence_), range::step);
  const auto module = frame(at(300, 20'000), "nn.Module: GELU_0", step, python_frame::module_call);
  const auto function = frame(at(1'000, 9'000), "gelu", module, python_frame::c_call);
  call(at(2'000, 8'000), "opscope::gelu", function, op::outermost | op::counted);
  annotation(at(2'100, 7'900), "opscope::gelu");
  const auto launch = api(at(4'000, 7'000), "cudaLaunchKernel_v7000");
  gpu(at(8'500, 10'500), launch, "void gelu_kernel<float, 4>(float const*, float*, long)");
  counter_range counted{};
  counted.start = base_ + nanoseconds{1'900};
  counted.end = base_ + nanoseconds{11'000};
  counted.dram_read_bytes = 4128;
  counted.dram_write_bytes = 4096;
  counted.duration_ns = 2'000;
  counted.l2_bytes = 9000;
  counted.ordinal = counted_++;
  counted.name = name("opscope::gelu");
  counted.method = name("counter:user-range");
  counted.cell = no_cell;
  counted.thread = main_thread;
  counters_.push_back(counted);
  const auto softmax = frame(at(10'000, 19'000), "softmax", module, python_frame::c_call);
  call(at(11'000, 18'000), "aten::softmax", softmax, op::outermost);
  call(at(11'500, 17'500), "aten::_softmax", softmax);
  gpu(at(14'000, 15'000), api(at(12'000, 13'000), "cudaLaunchKernel_v7000"), "softmax_1");
  gpu(at(15'000, 16'000), api(at(13'100, 14'100), "cudaLaunchKernel_v7000"), "softmax_2");
  gpu(at(16'200, 17'200), api(at(14'200, 15'300), "cuLaunchKernelEx_ptsz"), "softmax \"3\" \xFF",
      9);
  contents_.launches += 4;
  call(at(19'200, 19'500), "aten::view", module, op::outermost);
  last_frame_ = step;
}

void builder::backward() {
  const auto run = frame(at(21'000, 35'000), "backward", last_frame_, python_frame::c_call);
  (void)run;
  op row{};
  row.start = base_ + nanoseconds{22'000};
  row.end = base_ + nanoseconds{29'000};
  row.id = next_id_++;
  row.sequence = sequence_;
  row.forward_thread = 1;
  row.logical_thread = 2;
  row.name = name("autograd::engine::evaluate_function: GeluBackward0");
  row.thread = autograd_thread;
  row.flags = op::outermost | op::backward;
  ops_.push_back(row);
  ++contents_.ops;
  const auto launch = api(at(24'000, 26'000), "cudaLaunchKernel_v7000", autograd_thread);
  gpu(at(27'000, 30'000), launch, "void gelu_backward_kernel<float>");
  ++contents_.launches;
}

void builder::transfers() {
  const auto copy_api = api(at(36'000, 38'000), "cudaMemcpyAsync_v3020");
  copies_.push_back({base_ + nanoseconds{39'000}, base_ + nanoseconds{41'000}, 8192, 0, copy_api, 0,
                     1, 7, 1, 1, 3, 0});
  const auto fill_api = api(at(42'000, 43'000), "cudaMemsetAsync");
  fills_.push_back(
      {base_ + nanoseconds{43'500}, base_ + nanoseconds{44'000}, 4096, 0, fill_api, 0, 1, 7, 0, 3});
  const auto wait_api = api(at(45'000, 47'000), "cudaStreamSynchronize");
  waits_.push_back(
      {base_ + nanoseconds{45'100}, base_ + nanoseconds{46'900}, wait_api, 3, 1, 7, 0, 0});
  overheads_.push_back({base_ + nanoseconds{47'100}, base_ + nanoseconds{47'600}, correlation_id{},
                        main_thread, name("Activity Buffer Request"), 0});
  contents_.activities += 2;
  // Two start/end ranges that cross, an instant, and two push/pop ranges that cross by mistake.
  annotation(at(36'500, 44'500), "prefetch", range::process_wide);
  annotation(at(40'500, 46'000), "upload", range::process_wide);
  annotation(at(47'700, 47'700), "checkpoint", range::mark);
  annotation(at(48'000, 50'000), "first");
  annotation(at(49'000, 51'000), "crossing");
}

void builder::graph_replay() {
  const auto replay = frame(at(52'000, 56'000), "replay", last_frame_, python_frame::c_call);
  (void)replay;
  const auto launch = api(at(53'000, 55'000), "cudaGraphLaunch_v10000");
  gpu(at(56'000, 57'000), launch, "graph_kernel_a", 7, 31);
  gpu(at(57'000, 58'000), launch, "graph_kernel_b", 7, 32);
}

void builder::compared_call(std::uint32_t number) {
  const auto loop = frame(at(61'000, 90'000), "compare", 0, python_frame::library);
  marks_.push_back(
      {base_ + nanoseconds{62'000}, base_ + nanoseconds{72'000}, 0, 1, number, main_thread});
  call(at(63'000, 71'000), "opscope::gelu", loop, op::outermost);
  gpu(at(69'000, 70'000), api(at(65'000, 68'000), "cudaLaunchKernel_v7000"), "gelu_kernel");
  ++contents_.launches;
}

void builder::round(std::uint32_t number) {
  base_ = epoch + round_length * number;
  sequence_ = number;
  forward();
  backward();
  transfers();
  graph_replay();
  compared_call(number);
}

void builder::write() {
  const auto flush = [this](auto& rows) {
    writer_.append(std::span{rows});
    rows.clear();
  };
  flush(frames_);
  flush(ops_);
  flush(ranges_);
  flush(calls_);
  flush(kernels_);
  flush(copies_);
  flush(fills_);
  flush(waits_);
  flush(overheads_);
  flush(counters_);
  flush(marks_);
}

}  // namespace

synthetic_contents write_synthetic_capture(const std::filesystem::path& path, std::uint32_t calls) {
  constexpr std::uint32_t batch = 1000;
  builder made{path};
  for (std::uint32_t number = 0; number < calls; ++number) {
    made.round(number);
    if (number % batch == batch - 1) made.write();
  }
  return made.close(calls);
}

}  // namespace opscope::support
