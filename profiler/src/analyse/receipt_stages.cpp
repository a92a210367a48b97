// SPDX-License-Identifier: Apache-2.0
#include "analyse/receipt_stages.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "analyse/statistics.hpp"
#include "correlate/stages.hpp"

namespace opscope::analyse::detail {
namespace {

/// In the order of the receipt. `launch_overhead` is t3 - t0 and `launch_latency` t4 - t2 of the
/// first launch; `queue` is clamped at 0, `queue_raw` is not.
constexpr std::array<std::string_view, 12> stage_names{
    "python", "dispatch", "launch", "between",   "return",          "op",
    "total",  "queue",    "kernel", "queue_raw", "launch_overhead", "launch_latency"};

/// Values of a stage over calls, as recorded and without the collector's own cost.
struct stage_series {
  std::vector<std::int64_t> raw;
  std::vector<std::int64_t> corrected;
};
using stage_values = std::map<std::string_view, stage_series>;

double cost_of(traced_call::own_stamp::stored what, const own_cost& own) {
  using enum traced_call::own_stamp::stored;
  switch (what) {
    case op:
      return own.op;
    case range:
      return own.range;
    case frame:
      return own.frame;
    case nothing:
      break;
  }
  return 0;
}

/// A stamp's clock read lies before it, what it stores after it.
std::int64_t own_cost_between(const traced_call& call, const own_cost& own, timestamp begin,
                              timestamp end) {
  double sum = 0;
  for (const auto& stamp : call.own_stamps) {
    if (begin < stamp.when && stamp.when <= end) sum += own.clock;
    if (begin <= stamp.when && stamp.when < end) sum += cost_of(stamp.what, own);
  }
  return std::llround(sum);
}

bool has_whole_crossing(const traced_call& call) {
  return call.op_begin && call.op_end && !call.outside_op;
}

correlate::stages stages_of(const traced_call& call) {
  return correlate::make_stages(call.mark.start, *call.op_begin, *call.op_end, call.launches);
}

void add_host_stage(const traced_call& call, const std::optional<own_cost>& own,
                    std::string_view name, timestamp begin, timestamp end, stage_values& out) {
  const auto raw = (end - begin).count();
  out[name].raw.push_back(raw);
  if (!own) return;
  const auto less = raw - own_cost_between(call, *own, begin, end);
  out[name].corrected.push_back(std::clamp<std::int64_t>(less, 0, std::max<std::int64_t>(raw, 0)));
}

void add_host_stages(const traced_call& call, const std::optional<own_cost>& own,
                     stage_values& out) {
  const auto add = [&](std::string_view name, timestamp begin, timestamp end) {
    add_host_stage(call, own, name, begin, end, out);
  };
  add("python", call.mark.start, *call.op_begin);
  if (call.launches.empty()) {
    add("op", *call.op_begin, *call.op_end);
  } else {
    add("dispatch", *call.op_begin, call.launches.front().start);
    add("launch", call.launches.front().start, call.launches.front().end);
    add("between", call.launches.front().end, call.launches.back().end);
    add("return", call.launches.back().end, *call.op_end);
  }
  add("total", call.mark.start, *call.op_end);
}

void add_gpu_stages(const traced_call& call, const std::optional<own_cost>& own,
                    stage_values& out) {
  if (!call.launches.empty()) {
    const auto returned = call.launches.front().end;
    add_host_stage(call, own, "launch_overhead", call.mark.start, returned, out);
  }
  for (std::size_t i = 0; i < call.activities.size(); ++i) {
    const auto& activity = call.activities[i];
    const auto queue = (activity.start - activity.launch_end).count();
    out["queue"].raw.push_back(std::max<std::int64_t>(queue, 0));
    out["queue_raw"].raw.push_back(queue);
    out["kernel"].raw.push_back((activity.end - activity.start).count());
    if (i == 0) {
      out["launch_latency"].raw.push_back((activity.start - activity.launch_start).count());
    }
  }
}

bool in_order(const traced_call& call) {
  if (call.op_begin) {
    if (call.mark.start > *call.op_begin) return false;
    if (!call.launches.empty() && !call.outside_op &&
        (*call.op_begin > call.launches.front().start || *call.op_end < call.launches.back().end)) {
      return false;
    }
  }
  const auto launch_holds = [](const correlate::launch& l) { return l.start <= l.end; };
  const auto activity_holds = [](const traced_call::activity& a) {
    return a.launch_start <= a.start && a.start < a.end;
  };
  return std::ranges::all_of(call.launches, launch_holds) &&
         std::ranges::all_of(call.activities, activity_holds);
}

std::uint64_t launches_without_activity(const traced_call& call) {
  return static_cast<std::uint64_t>(std::ranges::count_if(call.launches, [&](const auto& launch) {
    return std::ranges::none_of(call.activities, [&](const traced_call::activity& a) {
      return a.launch_start == launch.start && a.launch_end == launch.end;
    });
  }));
}

}  // namespace

std::optional<timing> timing_of(std::vector<std::int64_t> values) {
  if (values.empty()) return std::nullopt;
  std::ranges::sort(values);
  return timing{median_sorted(values), percentile_sorted(values, 0.95), values.size()};
}

void fill_stages(const std::vector<traced_call>& calls, const std::optional<own_cost>& own,
                 contender_receipt& out) {
  stage_values values;
  bool any_crossing = false;
  for (const auto& call : calls) {
    if (has_whole_crossing(call)) {
      add_host_stages(call, own, values);
      any_crossing = true;
    }
    add_gpu_stages(call, own, values);
  }
  if (calls.empty()) {
    out.stages_why = "the capture has no timeline pass of it";
  } else if (!any_crossing) {
    out.stages_why = "its calls launch outside of any dispatcher op, or reach none";
  }
  for (const auto name : stage_names) {
    const auto at = values.find(name);
    if (at == values.end()) continue;
    out.stages.push_back(
        {name, *timing_of(std::move(at->second.raw)), timing_of(std::move(at->second.corrected))});
  }
}

chain chain_of(const std::vector<traced_call>& calls) {
  chain out;
  for (const auto& call : calls) {
    ++out.calls;
    if (!call.op_begin) ++out.without_op;
    out.launches += call.launches.size();
    out.gpu_activities += call.activities.size();
    out.kernels += static_cast<std::uint64_t>(
        std::ranges::count_if(call.activities, &traced_call::activity::is_kernel));
    out.unlinked += launches_without_activity(call);
    if (!in_order(call)) ++out.out_of_order;
    if (has_whole_crossing(call)) {
      const auto parts = stages_of(call);
      if (correlate::sum(parts) != *call.op_end - call.mark.start) ++out.sums_broken;
    }
  }
  return out;
}

std::vector<std::int64_t> kernel_sums(const std::vector<traced_call>& calls) {
  std::vector<std::int64_t> sums;
  for (const auto& call : calls) {
    std::int64_t sum = 0;
    bool any = false;
    for (const auto& activity : call.activities) {
      if (!activity.is_kernel) continue;
      sum += (activity.end - activity.start).count();
      any = true;
    }
    if (any) sums.push_back(sum);
  }
  return sums;
}

}  // namespace opscope::analyse::detail
