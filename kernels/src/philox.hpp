// SPDX-License-Identifier: Apache-2.0
// Philox4x32-10 and the draws of dropout, once for CUDA and host.
#pragma once

#include <opscope/kernels/dropout.hpp>

#include "primitives.hpp"

namespace opscope::kernels::detail {

struct philox_words {
  std::uint32_t word[4];
};

struct wide_product {
  std::uint32_t low;
  std::uint32_t high;
};

/// a·b in full: one instruction, where the compiler's own 64-bit product adds zeros to it.
OPSCOPE_MATH wide_product multiply_wide(std::uint32_t a, std::uint32_t b) {
#ifdef __CUDA_ARCH__
  wide_product result;
  asm("{.reg .b64 p; mul.wide.u32 p, %2, %3; mov.b64 {%0, %1}, p;}"
      : "=r"(result.low), "=r"(result.high)
      : "r"(a), "r"(b));
  return result;
#else
  const std::uint64_t product = std::uint64_t{a} * b;
  return {static_cast<std::uint32_t>(product), static_cast<std::uint32_t>(product >> 32U)};
#endif
}

/// The four words of one counter. Subsequence and counter are the upper and the lower half of
/// Philox's counter, as cuRAND and ATen use them.
OPSCOPE_MATH philox_words philox(std::uint64_t seed, std::uint64_t subsequence,
                                 std::uint64_t counter) {
  auto c0 = static_cast<std::uint32_t>(counter);
  auto c1 = static_cast<std::uint32_t>(counter >> 32U);
  auto c2 = static_cast<std::uint32_t>(subsequence);
  auto c3 = static_cast<std::uint32_t>(subsequence >> 32U);
  auto k0 = static_cast<std::uint32_t>(seed);
  auto k1 = static_cast<std::uint32_t>(seed >> 32U);
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
  for (int round = 0; round < 10; ++round) {
    const wide_product first = multiply_wide(0xD2511F53U, c0);
    const wide_product second = multiply_wide(0xCD9E8D57U, c2);
    c0 = second.high ^ c1 ^ k0;
    c1 = second.low;
    c2 = first.high ^ c3 ^ k1;
    c3 = first.low;
    k0 += 0x9E3779B9U;
    k1 += 0xBB67AE85U;
  }
  return {{c0, c1, c2, c3}};
}

OPSCOPE_MATH std::uint32_t word_of(const philox_words& words, std::uint64_t index) {
  const std::uint32_t low = (index & 1U) != 0 ? words.word[1] : words.word[0];
  const std::uint32_t high = (index & 1U) != 0 ? words.word[3] : words.word[2];
  return (index & 2U) != 0 ? high : low;
}

/// Is element `i` kept by draw::bits_16?
OPSCOPE_MATH bool keeps_16(const dropout_rule& rule, std::uint64_t seed, std::uint64_t counter,
                           std::uint64_t i) {
  const std::uint32_t pair = word_of(philox(seed, i / 8, counter), i / 2 % 4);
  return ((i & 1U) != 0 ? pair >> 16U : pair & 0xFFFFU) >= rule.threshold;
}

/// Is element `i` kept by draw::bits_32?
OPSCOPE_MATH bool keeps_32(const dropout_rule& rule, std::uint64_t seed, std::uint64_t counter,
                           std::uint64_t i) {
  return word_of(philox(seed, i / 4, counter), i % 4) >= rule.threshold;
}

/// Is element `i` kept by draw::aten? A thread strides over the vectors and draws four words for
/// each four elements of one; without vectors it draws four words for the next four elements of
/// its stride. Words become floats in (0, 1] as cuRAND makes them.
template <class Value>
OPSCOPE_MATH bool keeps_aten(const dropout_rule& rule, std::uint64_t seed, std::uint64_t counter,
                             std::uint64_t i) {
  const auto threads = static_cast<std::uint64_t>(rule.layout.threads);
  const auto width = static_cast<std::uint64_t>(rule.layout.vector_width);
  const std::uint64_t step = i / width / threads;
  const std::uint64_t lane = width == 1 ? step % 4 : i % width;
  const std::uint64_t call = width == 1 ? step / 4 : step * (width == 8 ? 2 : 1) + lane / 4;
  const std::uint32_t word = word_of(philox(seed, i / width % threads, counter + call), lane % 4);
  const float uniform = fused(static_cast<float>(word), 0x1p-32F, 0x1p-33F);
  return static_cast<Value>(uniform) < static_cast<Value>(rule.keep_probability);
}

/// Is element `i` kept?
template <class Value>
OPSCOPE_MATH bool keeps(const dropout_rule& rule, std::uint64_t seed, std::uint64_t counter,
                        std::uint64_t i) {
  switch (rule.kind) {
    case draw::keep_all:
      return true;
    case draw::drop_all:
      return false;
    case draw::bits_16:
      return keeps_16(rule, seed, counter, i);
    case draw::bits_32:
      return keeps_32(rule, seed, counter, i);
    case draw::aten:
      return keeps_aten<Value>(rule, seed, counter, i);
  }
  return true;
}

}  // namespace opscope::kernels::detail
