// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <opscope/kernels/dropout.hpp>

namespace opscope::kernels {
namespace {

constexpr std::int64_t aten_block_threads = 256;
constexpr std::int64_t aten_draws_a_call = 4;

}  // namespace

dropout_rule make_dropout_rule(double p) noexcept {
  if (p <= 0.0) return {draw::keep_all, 0, 1.0, 1.0, {}};
  if (p >= 1.0) return {draw::drop_all, 0, 0.0, 0.0, {}};
  const double coarse = std::nearbyint(p * 0x1p16);
  if (coarse > 0.0 && coarse < 0x1p16) {
    const double scale = 0x1p16 / (0x1p16 - coarse);
    return {draw::bits_16, static_cast<std::uint32_t>(coarse), 1.0 - p, scale, {}};
  }
  const double fine = std::min(std::nearbyint(p * 0x1p32), 0x1p32 - 1.0);
  const double scale = 0x1p32 / (0x1p32 - fine);
  return {draw::bits_32, static_cast<std::uint32_t>(fine), 1.0 - p, scale, {}};
}

dropout_rule make_aten_dropout_rule(double p, aten_layout layout) noexcept {
  return {draw::aten, 0, 1.0 - p, 1.0 / (1.0 - p), layout};
}

aten_layout aten_dropout_layout(std::int64_t count, std::int64_t element_bytes,
                                std::int64_t multiprocessors, std::int64_t threads_each) noexcept {
  const std::int64_t most = multiprocessors * (threads_each / aten_block_threads);
  const std::int64_t blocks = (count + aten_block_threads - 1) / aten_block_threads;
  std::int64_t width = std::min<std::int64_t>(16 / element_bytes, 8);
  while (width > 1 && count % width != 0) width /= 2;
  return {std::min(most, blocks) * aten_block_threads, width};
}

std::uint64_t aten_dropout_increment(std::int64_t count, aten_layout layout) noexcept {
  const std::int64_t a_round = layout.threads * aten_draws_a_call;
  return static_cast<std::uint64_t>(((count - 1) / a_round + 1) * aten_draws_a_call);
}

}  // namespace opscope::kernels
