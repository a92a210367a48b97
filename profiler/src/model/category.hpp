// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "model/records.hpp"

namespace opscope {

/// The category under which a trace shows records of this kind and the ledger counts them:
/// `kernel`, `cpu_op`, `python_function`, ... API calls of both domains are `cuda_runtime` here,
/// use category(const api_call&) for one call. "unknown" for a kind that this version does not
/// know.
[[nodiscard]] std::string_view category(record_kind kind) noexcept;

/// `cuda_runtime` or `cuda_driver`.
[[nodiscard]] std::string_view category(const api_call& call) noexcept;

}  // namespace opscope
