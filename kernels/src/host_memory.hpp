// SPDX-License-Identifier: Apache-2.0
// How loops over host memory keep it busy: they ask for what comes later. Processors fetch ahead
// within a page by themselves, but not over its end, and a formula of fifty instructions leaves too
// few accesses in flight to hide that.
#pragma once

#include <cstdint>

#include "primitives.hpp"

namespace opscope::kernels::detail {

/// Asks for `Elements` elements some way behind those at `place`, which need not exist.
template <std::int64_t Elements, class Storage>
OPSCOPE_MATH void fetch_ahead(const Storage* place) {
  constexpr std::int64_t bytes_ahead = 2048;
  constexpr std::int64_t line_bytes = 64;
  constexpr auto bytes = static_cast<std::int64_t>(Elements * sizeof(Storage));
  const auto* const first = reinterpret_cast<const char*>(place) + bytes_ahead;
  for (std::int64_t at = 0; at < bytes; at += line_bytes) __builtin_prefetch(first + at);
}

/// Calls element(i) for each i < count. It reads and writes the i-th elements of `places`.
template <class Element, class... Storage>
OPSCOPE_MATH void for_each_element(const Element& element, std::int64_t count,
                                   const Storage*... places) {
  constexpr std::int64_t block = 64;
  std::int64_t first = 0;
  for (; first + block <= count; first += block) {
    (fetch_ahead<block>(places + first), ...);
    for (std::int64_t i = first; i < first + block; ++i) element(i);
  }
  for (std::int64_t i = first; i < count; ++i) element(i);
}

}  // namespace opscope::kernels::detail
