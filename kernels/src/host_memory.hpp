// SPDX-License-Identifier: Apache-2.0
// How loops over host memory keep it busy: they walk in blocks, ask for what comes later, and may
// write past the caches.
//
// Processors fetch ahead within a page by themselves, but not over its end, and a formula of fifty
// instructions leaves too few loads in flight to hide that. A store brings a line into the cache
// before it is written, a streaming store does not.
#pragma once

#include <cstdint>
#include <cstring>

#include "primitives.hpp"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace opscope::kernels::detail {

constexpr std::int64_t block_elements = 64;
constexpr std::int64_t line_bytes = 64;

/// How many elements lie before the first line that begins at or behind `elements`.
template <class Storage>
OPSCOPE_MATH std::int64_t elements_before_line(const Storage* elements) {
  const auto behind = reinterpret_cast<std::uintptr_t>(elements) % line_bytes;
  return static_cast<std::int64_t>((line_bytes - behind) % line_bytes / sizeof(Storage));
}

/// Asks for `Elements` elements some way behind those at `elements`, which need not exist.
template <std::int64_t Elements, class Storage>
OPSCOPE_MATH void fetch_ahead(const Storage* elements) {
  constexpr std::int64_t bytes_ahead = 2048;
  constexpr auto bytes = static_cast<std::int64_t>(Elements * sizeof(Storage));
  const auto* const first = reinterpret_cast<const char*>(elements) + bytes_ahead;
  for (std::int64_t at = 0; at < bytes; at += line_bytes) __builtin_prefetch(first + at);
}

/// Writes a block: `streamed`, past the caches, to an address that is a multiple of 16.
template <class Storage>
OPSCOPE_MATH void store_block(const Storage (&block)[block_elements], Storage* place,
                              bool streamed) {
#ifdef __SSE2__
  if (streamed) {
    const auto* const from = reinterpret_cast<const __m128i*>(block);
    auto* const to = reinterpret_cast<__m128i*>(place);
    constexpr auto elements = static_cast<std::int64_t>(sizeof(__m128i) / sizeof(Storage));
    for (std::int64_t k = 0; k < block_elements / elements; ++k) {
      _mm_stream_si128(to + k, _mm_load_si128(from + k));
    }
    return;
  }
#endif
  std::memcpy(place, block, sizeof(block));
}

/// Lets others see what was streamed.
OPSCOPE_MATH void finish_stores(bool streamed) {
#ifdef __SSE2__
  if (streamed) _mm_sfence();
#endif
}

/// Sets each output[i] to element(i), which reads the i-th elements of `inputs`.
template <class Storage, class Element, class... Inputs>
OPSCOPE_MATH void for_each_element(Storage* output, std::int64_t count, bool streamed,
                                   const Element& element, const Inputs*... inputs) {
  alignas(line_bytes) Storage block[block_elements];
  const std::int64_t before = elements_before_line(output);
  std::int64_t first = 0;
  for (; first < count && first < before; ++first) output[first] = element(first);
  for (; first + block_elements <= count; first += block_elements) {
    (fetch_ahead<block_elements>(inputs + first), ...);
    for (std::int64_t i = 0; i < block_elements; ++i) block[i] = element(first + i);
    store_block(block, output + first, streamed);
  }
  finish_stores(streamed);
  for (; first < count; ++first) output[first] = element(first);
}

}  // namespace opscope::kernels::detail
