// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "cupti/api.hpp"

namespace opscope::cupti {

/// Is this API function recorded? Launches, copies, fills, allocations, synchronisation, events and
/// graph instantiation and launch are; queries, attributes and capture bookkeeping are not. Decided
/// by name, so that a newer CUPTI's variants are taken without a list of numbers.
/// @param name as CUPTI gives it, e.g. "__cudaLaunchKernel_v13000", "cuMemcpyHtoDAsync_v2_ptsz".
[[nodiscard]] bool is_traced(std::string_view name) noexcept;

/// Callback ids of the recorded functions of a domain that the opened CUPTI knows.
[[nodiscard]] std::vector<CUpti_CallbackId> traced_functions(const api& cupti,
                                                             CUpti_CallbackDomain domain);

/// All others that it knows.
[[nodiscard]] std::vector<CUpti_CallbackId> untraced_functions(const api& cupti,
                                                               CUpti_CallbackDomain domain);

}  // namespace opscope::cupti
