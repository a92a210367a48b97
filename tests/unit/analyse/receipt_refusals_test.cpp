// SPDX-License-Identifier: Apache-2.0
//
// Captures of which no receipt can be made.
#include <gtest/gtest.h>

#include <string>

#include "analyse/receipt.hpp"
#include "opscope/error.hpp"
#include "support/scene.hpp"

namespace opscope::analyse {
namespace {

using test::scene;

void expect_refusal(scene& scene) {
  const auto capture = scene.open();
  EXPECT_THROW((void)make_receipt(capture), error);
}

TEST(receipt_refusals, needs_a_comparison) {
  scene scene;
  scene.op("a", 0, 1);
  expect_refusal(scene);
}

TEST(receipt_refusals, a_comparison_that_it_cannot_read) {
  scene scene;
  scene.document("comparison", R"({"contenders": 3})");
  expect_refusal(scene);
}

TEST(receipt_refusals, a_baseline_that_the_comparison_lacks) {
  scene scene;
  const std::string document = R"({"schema": "opscope.comparison/1", "title": "gelu",
    "device": "cpu", "contenders": ["a", "b"], "cells": [{"cell": 0, "label": "1", "shape": [1],
    "dtype": "float32", "elements": 1, "read_bytes_ideal": 4, "write_bytes_ideal": 4,
    "backward": false, "skipped": null, "contenders": []}], "baselines": [0, )";
  scene.document("comparison", document + "7]}");
  expect_refusal(scene);
  test::scene right;
  right.document("comparison", document + "0]}");
  const auto capture = right.open();
  EXPECT_NO_THROW((void)make_receipt(capture));
}

}  // namespace
}  // namespace opscope::analyse
