// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "analyse/receipt.hpp"

namespace opscope::analyse::detail {

/// The boundary's stages of one size in microseconds, lines a contender: median, 95th percentile,
/// and the median without the collector's own cost; below them how whole the links are. Empty when
/// there are none.
[[nodiscard]] std::string stage_table(const receipt& what, const cell_receipt& cell,
                                      std::size_t width);

}  // namespace opscope::analyse::detail
