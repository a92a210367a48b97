// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "cupti/driver.hpp"
#include "cupti/profiler_host.hpp"

namespace opscope::cupti {

/// Initialises CUPTI's counter side; may be called again.
/// @throws cupti_error
void initialize_counters(const api& cupti);

/// CUPTI's name of a device's chip, e.g. "GH100".
/// @throws cupti_error; opscope::error saying why the device's counters cannot be read.
[[nodiscard]] std::string chip_name(const api& cupti, CUdevice device);

/// The host side for a chip on which counter_metrics need one pass.
/// @throws opscope::error when they need more: ranges without replay are then impossible.
[[nodiscard]] std::unique_ptr<profiler_host> make_one_pass_host(const api& cupti,
                                                                const std::string& chip);

}  // namespace opscope::cupti
