// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace at {
class Tensor;
}

namespace opscope::comparison {

/// Does `actual` agree with `expected` within torch.testing's tolerances for actual's type?
/// NaN agrees with NaN.
/// @return the `contenders` entry of a comparison's cell: correct, max_abs_error, max_rel_error,
/// why.
[[nodiscard]] nlohmann::json agreement(const at::Tensor& actual, const at::Tensor& expected);

}  // namespace opscope::comparison
