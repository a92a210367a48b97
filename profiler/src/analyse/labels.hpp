// SPDX-License-Identifier: Apache-2.0
//
// Names that differ, cut to a width, differ still: a reader tells the rows of a table by them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace opscope::analyse {

/// Labels that are alike show, in `width` columns (0: no limit), the place where their `texts`
/// part.
void show_the_difference(const std::vector<std::string>& texts, std::size_t width,
                         std::vector<std::string>& labels);

/// Labels that are alike get a number each.
void number_the_rest(std::size_t width, std::vector<std::string>& labels);

/// A label of at most `width` columns for each of `texts`: what fits stays whole, the middle of the
/// rest is left out; labels are alike where the texts are, and nowhere else.
[[nodiscard]] std::vector<std::string> elide_each(const std::vector<std::string>& texts,
                                                  std::size_t width);

}  // namespace opscope::analyse
