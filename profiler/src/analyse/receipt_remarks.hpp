// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "analyse/receipt.hpp"

namespace opscope::analyse::detail {

/// Which numbers have their absence explained.
enum class shown : std::uint8_t { in_short, in_full };

/// Why something is wrong, unstable or missing, each reason once with the contenders that it is
/// about; a verdict's with its size where there are several.
[[nodiscard]] std::string remarks(const receipt& what, std::span<const cell_receipt> cells,
                                  shown numbers, std::size_t width);

/// How near the results are, over all sizes: one sentence. Empty when none was checked.
[[nodiscard]] std::string agreement_text(const receipt& what);

/// A largest error, as "4.8e-07"; an absent one as a dash.
[[nodiscard]] std::string error_text(std::optional<double> error);

/// "1e-05 + 1.3e-06", or a dash.
[[nodiscard]] std::string tolerance_text(const contender_receipt& contender);

}  // namespace opscope::analyse::detail
