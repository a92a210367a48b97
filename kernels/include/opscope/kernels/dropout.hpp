// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace opscope::kernels {

/// A dense matrix of `rows` × `columns` elements. Element (r, c) has logical index r·columns + c.
struct matrix_size {
  std::int64_t rows;
  std::int64_t columns;
};

/// How the draw of an element is made.
enum class draw : std::uint8_t {
  keep_all,  ///< p = 0, or evaluation: no draw
  drop_all,  ///< p = 1: no draw
  bits_16,   ///< 16-bit lane i mod 8 of Philox(seed, subsequence i/8, counter offset/4)
  bits_32,   ///< 32-bit word i mod 4 of Philox(seed, subsequence i/4, counter offset/4)
  aten,      ///< as torch.nn.functional.dropout on CUDA lays out its threads
};

/// Threads and vector width of ATen's dropout kernel: what its mask depends on beside the state.
struct aten_layout {
  std::int64_t threads;
  std::int64_t vector_width;  ///< 1, 2, 4 or 8 elements
};

/// Which elements are dropped, as a function of their logical index i and a (seed, offset): of
/// nothing else, so not of launch shapes, strides or the device. The generator is Philox4x32-10
/// (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
struct dropout_rule {
  draw kind;
  std::uint32_t threshold;  ///< a draw below it drops the element
  double keep_probability;  ///< 1 − p, as asked for; read by draw::aten alone
  double scale;             ///< factor of what is kept
  aten_layout layout;       ///< read by draw::aten alone
};

/// Draws that one call takes from the generator, for every kind but draw::aten.
constexpr std::uint64_t dropout_increment = 4;

/// The rule for probability p.
///
/// p is rounded to q/65536, and the scale is that of the rounded value, 65536/(65536 − q); where
/// that would drop nothing or everything although 0 < p < 1, draws have 32 bits. The expectation
/// of the result is exact in both cases.
///
/// @param p  probability that an element is dropped, in [0, 1]
dropout_rule make_dropout_rule(double p) noexcept;

/// ATen's rule for probability p and one thread layout: 32-bit draws, scale 1/(1 − p).
///
/// @param p       probability that an element is dropped, 0 < p < 1
/// @param layout  as aten_dropout_layout gives it
dropout_rule make_aten_dropout_rule(double p, aten_layout layout) noexcept;

/// The layout that ATen takes for a dense tensor whose data is 16-byte aligned.
///
/// @param count            number of elements, at least 1
/// @param element_bytes    size of an element
/// @param multiprocessors  of the device
/// @param threads_each     resident threads of a multiprocessor
aten_layout aten_dropout_layout(std::int64_t count, std::int64_t element_bytes,
                                std::int64_t multiprocessors, std::int64_t threads_each) noexcept;

/// Draws that ATen takes from the generator for `count` elements in one layout.
std::uint64_t aten_dropout_increment(std::int64_t count, aten_layout layout) noexcept;

}  // namespace opscope::kernels
