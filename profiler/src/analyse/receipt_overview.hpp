// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "analyse/receipt.hpp"

namespace opscope::analyse::detail {

/// What matters most, a line a size and contender, in `width` columns; how to read it and what is
/// wrong, unstable or missing below. Empty when nothing was measured.
[[nodiscard]] std::string overview(const receipt& what, std::size_t width);

/// "0.991 – 1.068", or a dash.
[[nodiscard]] std::string interval_text(const measured<ratio_estimate>& what);

/// The letter that names a contender in tables.
[[nodiscard]] std::string contender_letter(std::uint32_t index);

}  // namespace opscope::analyse::detail
