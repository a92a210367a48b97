// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/ScalarType.h>

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace at {
class Tensor;
}

namespace opscope::comparison {

/// Does `actual` agree with `expected`, computed in whatever type, within torch.testing's
/// tolerances for `wanted`, the type that it must be of? NaN agrees with NaN.
/// @return the `contenders` entry of a comparison's cell: correct, max_abs_error, max_rel_error,
/// atol, rtol, compared (elements), why.
[[nodiscard]] nlohmann::json agreement(const at::Tensor& actual, const at::Tensor& expected,
                                       c10::ScalarType wanted);

/// As torch has it in Python: `float32`.
[[nodiscard]] std::string type_name(c10::ScalarType type);

}  // namespace opscope::comparison
