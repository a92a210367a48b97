// SPDX-License-Identifier: Apache-2.0
#include "cupti/range_profiler.hpp"

#include <charconv>
#include <cstring>
#include <optional>

#include "cupti/cupti_error.hpp"

namespace opscope::cupti {
namespace {

constexpr const char* warm_up_name = "warm-up";

std::optional<std::size_t> number_of(const char* name) noexcept {
  if (name == nullptr) {
    return std::nullopt;
  }
  const char* end = name + std::strlen(name);
  std::size_t number = 0;
  const auto [stopped, failure] = std::from_chars(name, end, number);
  if (failure != std::errc{} || stopped != end) {
    return std::nullopt;
  }
  return number;
}

}  // namespace

std::string_view method_of(const CUpti_RangeProfiler_SetConfig_Params& config) noexcept {
  if (config.range == CUPTI_UserRange && config.replayMode == CUPTI_UserReplay) {
    return "counter:user-range";
  }
  if (config.range == CUPTI_AutoRange && config.replayMode == CUPTI_KernelReplay) {
    return "counter:kernel-replay";
  }
  return "counter:other";
}

range_profiler::range_profiler(const api& cupti, const driver_api& driver,
                               const profiler_host& host, CUcontext context, std::size_t capacity)
    : cupti_(cupti),
      driver_(driver),
      host_(host),
      context_(context),
      capacity_(capacity),
      config_image_(host.config_image()) {
  const scoped_context scope{driver_, context_};
  enable();
  try {
    configure();
    CUpti_RangeProfiler_Start_Params start{};
    start.structSize = CUpti_RangeProfiler_Start_Params_STRUCT_SIZE;
    start.pRangeProfilerObject = profiler_;
    check(cupti_.range_start(&start), "cuptiRangeProfilerStart");
    started_ = true;
  } catch (...) {
    CUpti_RangeProfiler_Disable_Params disable{};
    disable.structSize = CUpti_RangeProfiler_Disable_Params_STRUCT_SIZE;
    disable.pRangeProfilerObject = profiler_;
    cupti_.range_disable(&disable);
    throw;
  }
  warm_up();
}

range_profiler::~range_profiler() {
  const scoped_context scope{driver_, context_};
  if (started_) {
    CUpti_RangeProfiler_Stop_Params stop{};
    stop.structSize = CUpti_RangeProfiler_Stop_Params_STRUCT_SIZE;
    stop.pRangeProfilerObject = profiler_;
    cupti_.range_stop(&stop);
  }
  CUpti_RangeProfiler_Disable_Params disable{};
  disable.structSize = CUpti_RangeProfiler_Disable_Params_STRUCT_SIZE;
  disable.pRangeProfilerObject = profiler_;
  cupti_.range_disable(&disable);
}

void range_profiler::enable() {
  CUpti_RangeProfiler_Enable_Params params{};
  params.structSize = CUpti_RangeProfiler_Enable_Params_STRUCT_SIZE;
  params.ctx = context_;
  check(cupti_.range_enable(&params), "cuptiRangeProfilerEnable");
  profiler_ = params.pRangeProfilerObject;
}

void range_profiler::configure() {
  const std::size_t ranges = capacity_ + 1;  // and the one spent on warming up
  auto metrics = counter_metrics;
  CUpti_RangeProfiler_GetCounterDataSize_Params size{};
  size.structSize = CUpti_RangeProfiler_GetCounterDataSize_Params_STRUCT_SIZE;
  size.pRangeProfilerObject = profiler_;
  size.pMetricNames = metrics.data();
  size.numMetrics = metrics.size();
  size.maxNumOfRanges = ranges;
  size.maxNumRangeTreeNodes = static_cast<std::uint32_t>(ranges);
  check(cupti_.range_get_counter_data_size(&size), "cuptiRangeProfilerGetCounterDataSize");
  counter_data_.resize(size.counterDataSize);

  CUpti_RangeProfiler_CounterDataImage_Initialize_Params image{};
  image.structSize = CUpti_RangeProfiler_CounterDataImage_Initialize_Params_STRUCT_SIZE;
  image.pRangeProfilerObject = profiler_;
  image.counterDataSize = counter_data_.size();
  image.pCounterData = counter_data_.data();
  check(cupti_.range_initialize_image(&image), "cuptiRangeProfilerCounterDataImageInitialize");

  config_.structSize = CUpti_RangeProfiler_SetConfig_Params_STRUCT_SIZE;
  config_.pRangeProfilerObject = profiler_;
  config_.configSize = config_image_.size();
  config_.pConfig = config_image_.data();
  config_.counterDataImageSize = counter_data_.size();
  config_.pCounterDataImage = counter_data_.data();
  config_.range = CUPTI_UserRange;
  config_.replayMode = CUPTI_UserReplay;
  config_.maxRangesPerPass = ranges;
  config_.numNestingLevels = 1;
  config_.minNestingLevel = 1;
  config_.passIndex = 0;
  config_.targetNestingLevel = 1;
  check(cupti_.range_set_config(&config_), "cuptiRangeProfilerSetConfig");
}

void range_profiler::warm_up() noexcept {
  CUpti_RangeProfiler_PushRange_Params push{};
  push.structSize = CUpti_RangeProfiler_PushRange_Params_STRUCT_SIZE;
  push.pRangeProfilerObject = profiler_;
  push.pRangeName = warm_up_name;
  if (cupti_.range_push(&push) != CUPTI_SUCCESS) {
    return;
  }
  CUpti_RangeProfiler_PopRange_Params pop{};
  pop.structSize = CUpti_RangeProfiler_PopRange_Params_STRUCT_SIZE;
  pop.pRangeProfilerObject = profiler_;
  warmed_ = cupti_.range_pop(&pop) == CUPTI_SUCCESS;
}

std::size_t range_profiler::push() {
  const scoped_context scope{driver_, context_};
  open_name_ = std::to_string(pushed_);
  CUpti_RangeProfiler_PushRange_Params params{};
  params.structSize = CUpti_RangeProfiler_PushRange_Params_STRUCT_SIZE;
  params.pRangeProfilerObject = profiler_;
  params.pRangeName = open_name_.c_str();
  check(cupti_.range_push(&params), "cuptiRangeProfilerPushRange");
  return pushed_++;
}

void range_profiler::pop() {
  const scoped_context scope{driver_, context_};
  CUpti_RangeProfiler_PopRange_Params params{};
  params.structSize = CUpti_RangeProfiler_PopRange_Params_STRUCT_SIZE;
  params.pRangeProfilerObject = profiler_;
  check(cupti_.range_pop(&params), "cuptiRangeProfilerPopRange");
}

void range_profiler::stop() {
  driver_.context_synchronize();
  CUpti_RangeProfiler_Stop_Params params{};
  params.structSize = CUpti_RangeProfiler_Stop_Params_STRUCT_SIZE;
  params.pRangeProfilerObject = profiler_;
  started_ = false;
  check(cupti_.range_stop(&params), "cuptiRangeProfilerStop");
  if (params.isAllPassSubmitted == 0) {
    throw opscope::error(
        "read counters: the GPU needs more than one pass for them (report the GPU's model)");
  }
}

std::vector<measured_range> range_profiler::collect() {
  const scoped_context scope{driver_, context_};
  stop();
  CUpti_RangeProfiler_DecodeData_Params decode{};
  decode.structSize = CUpti_RangeProfiler_DecodeData_Params_STRUCT_SIZE;
  decode.pRangeProfilerObject = profiler_;
  check(cupti_.range_decode_data(&decode), "cuptiRangeProfilerDecodeData");

  CUpti_RangeProfiler_GetCounterDataInfo_Params info{};
  info.structSize = CUpti_RangeProfiler_GetCounterDataInfo_Params_STRUCT_SIZE;
  info.pCounterDataImage = counter_data_.data();
  info.counterDataImageSize = counter_data_.size();
  check(cupti_.range_get_counter_data_info(&info), "cuptiRangeProfilerGetCounterDataInfo");

  std::vector<measured_range> ranges;
  ranges.reserve(info.numTotalRanges);
  for (std::size_t index = 0; index < info.numTotalRanges; ++index) {
    CUpti_RangeProfiler_CounterData_GetRangeInfo_Params range{};
    range.structSize = CUpti_RangeProfiler_CounterData_GetRangeInfo_Params_STRUCT_SIZE;
    range.pCounterDataImage = counter_data_.data();
    range.counterDataImageSize = counter_data_.size();
    range.rangeIndex = index;
    range.rangeDelimiter = "/";
    check(cupti_.range_get_range_info(&range), "cuptiRangeProfilerCounterDataGetRangeInfo");
    if (const auto number = number_of(range.rangeName)) {  // the warm-up has no number
      ranges.push_back({*number, host_.evaluate(counter_data_, index)});
    }
  }
  return ranges;
}

}  // namespace opscope::cupti
