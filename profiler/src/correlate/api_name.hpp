// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace opscope::correlate {

/// An API name as Kineto writes it, which readers match exactly: without leading `__` and without
/// the suffixes `_ptsz`, `_ptds` and `_v<digits>`. `__cudaLaunchKernel_v13000` is
/// `cudaLaunchKernel`.
[[nodiscard]] std::string_view plain_api_name(std::string_view name) noexcept;

/// What GPU work an API call starts.
enum class launch_kind : std::uint8_t { none, kernel, copy, fill, graph };

/// By name. Calls that may or may not reach the GPU (allocation, synchronisation) are `none`.
[[nodiscard]] launch_kind launch_kind_of(std::string_view api_name) noexcept;

}  // namespace opscope::correlate
