// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "capture/reader.hpp"
#include "model/records.hpp"

namespace opscope::test {

/// A row whose every byte differs from row to row, so that a lost or swapped field shows. Times,
/// where the kind has them, are `start` and `end`.
template <record Row>
Row make_row(std::int64_t start, std::int64_t end, std::uint8_t seed = 1) {
  Row row{};
  auto* bytes = reinterpret_cast<std::uint8_t*>(&row);
  // Small values: doubles stay finite and compare equal to themselves.
  for (std::size_t i = 0; i < sizeof row; ++i)
    bytes[i] = static_cast<std::uint8_t>((seed + i) % 100);
  if constexpr (requires { row.start; }) row.start = timestamp{start};
  if constexpr (requires { row.end; }) row.end = timestamp{end};
  return row;
}

/// All rows of a kind, in the order that the cursor gives them.
template <record Row>
std::vector<Row> all(const capture::capture& from) {
  std::vector<Row> rows;
  auto cursor = from.rows<Row>();
  while (const Row* row = cursor.next()) rows.push_back(*row);
  return rows;
}

}  // namespace opscope::test
