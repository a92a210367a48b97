// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cupti/api.hpp"

namespace opscope::cupti {

/// The metrics of a counter range, in the order of `counter_values`. Together they need one pass on
/// GH100, which is what makes ranges without replay possible.
inline constexpr std::array<const char*, 4> counter_metrics{
    "dram__bytes_read.sum", "dram__bytes_write.sum", "gpu__time_duration.sum", "lts__t_bytes.sum"};

/// Values of counter_metrics over one range.
struct counter_values {
  double dram_read_bytes;
  double dram_write_bytes;
  double duration_ns;
  double l2_bytes;

  /// Every value is a number: a range that was never closed evaluates to NaN.
  [[nodiscard]] bool complete() const noexcept;
};

/// CUPTI's host side for range counters of one kind of chip: schedules metrics, evaluates counter
/// data. Needs neither a GPU nor a driver. Not thread-safe.
class profiler_host {
 public:
  /// @param chip CUPTI's chip name, e.g. "GH100".
  /// @throws cupti_error, for instance when libnvperf_host.so is missing beside CUPTI.
  profiler_host(const api& cupti, const std::string& chip);
  /// The schedule for the range profiler; valid as long as this object.
  [[nodiscard]] const std::vector<std::uint8_t>& config_image() const noexcept { return image_; }

  /// Passes that the metrics need on this chip.
  [[nodiscard]] std::size_t passes() const noexcept { return passes_; }

  /// @param index of the range within the decoded counter data.
  /// @throws cupti_error
  [[nodiscard]] counter_values evaluate(const std::vector<std::uint8_t>& counter_data,
                                        std::size_t index) const;

 private:
  struct deinitialize {
    const api* cupti;
    void operator()(CUpti_Profiler_Host_Object* host) const noexcept;
  };

  void schedule();

  const api& cupti_;
  std::unique_ptr<CUpti_Profiler_Host_Object, deinitialize> host_;
  std::vector<std::uint8_t> image_;
  std::size_t passes_ = 0;
};

/// Opens the libraries that CUPTI itself looks for by plain name when counters are used; they lie
/// beside it, seldom on the loader's path.
void open_counter_libraries(const api& cupti) noexcept;

}  // namespace opscope::cupti
