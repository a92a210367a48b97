// SPDX-License-Identifier: Apache-2.0
#include "analyse/labels.hpp"

#include <gtest/gtest.h>

#include <set>

#include "analyse/text_layout.hpp"

namespace opscope::analyse {
namespace {

const std::string node = "autograd::engine::evaluate_function: ";

TEST(labels, of_texts_that_differ_differ) {
  const std::vector<std::string> texts{
      node + "GeluBackward0",
      node + "AddmmBackward0",
      node + "MulBackward0",
      node + "MulBackward1",
      node + "MulBackward0 of more",
      "[[64, 64], [64, 64], [64], [], [], [128, 64], [64]]",
      "[[64, 64], [64, 64], [64], [], [], [64, 128], [64]]",
      "[[64, 64], [64, 64], [65], [], [], [64, 128], [64]]",
      "a\nb",
      "a b",
      "\u6838\u6838\u6838\u6838\u6838\u6838\u6838\u6838\u6838\u6838\u6838\u6838\u6838",
      "\u6838\u6838\u6838\u6838\u6838\u6838\u6807\u6838\u6838\u6838\u6838\u6838\u6838",
  };
  for (const std::size_t width : {12U, 14U, 20U, 24U, 80U}) {
    const auto labels = elide_each(texts, width);
    EXPECT_EQ(std::set(labels.begin(), labels.end()).size(), texts.size()) << width;
    for (const auto& label : labels) EXPECT_LE(display_width(label), width) << label;
  }
}

TEST(labels, show_where_long_texts_part) {
  const auto labels = elide_each({node + "GeluBackward0", node + "SiluBackward0"}, 20);
  EXPECT_NE(labels[0].find("Gelu"), std::string::npos) << labels[0];
  EXPECT_NE(labels[1].find("Silu"), std::string::npos) << labels[1];
}

TEST(labels, of_texts_that_are_alike_are_alike) {
  const auto labels = elide_each({node + "GeluBackward0", "a", node + "GeluBackward0"}, 20);
  EXPECT_EQ(labels[0], labels[2]);
  EXPECT_EQ(labels[1], "a");
}

}  // namespace
}  // namespace opscope::analyse
