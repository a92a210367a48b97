// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

namespace opscope::analyse {

/// Bytes of the UTF-8 character that `text` begins with; 0: its first byte begins none.
[[nodiscard]] std::size_t character_size(std::string_view text) noexcept;

/// Columns that a UTF-8 character takes on a terminal: 2 in the scripts of East Asia and for emoji,
/// 0 for a mark on the character before it, else 1.
[[nodiscard]] std::size_t columns_of(std::string_view character) noexcept;

}  // namespace opscope::analyse
