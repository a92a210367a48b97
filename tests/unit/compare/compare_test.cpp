// SPDX-License-Identifier: Apache-2.0
//
// opscope::compare over tensors on the CPU, as a C++ program uses it: no Python anywhere.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <opscope/compare.hpp>
#include <opscope/error.hpp>
#include <string>

namespace {

using opscope::contender;

const contender builtin{"at::gelu", [](const auto& in) { return at::gelu(in[0]); }};
const contender composed{"composed", [](const auto& in) {
                           return in[0] * 0.5 * (at::erf(in[0] * 0.7071067811865476) + 1);
                         }};
const contender wrong{"wrong", [](const auto& in) { return at::gelu(in[0]) + 0.01; }};

class compare : public testing::Test {
 protected:
  compare() {
    const std::string name = testing::UnitTest::GetInstance()->current_test_info()->name();
    options_.output = std::filesystem::temp_directory_path() / ("opscope-" + name + ".opscope");
    options_.force = true;
    options_.warmup = 2;
    options_.pairs = 5;
    options_.inputs = {{"", {at::randn({64, 64})}}};
  }
  ~compare() override { std::filesystem::remove(options_.output); }

  [[nodiscard]] nlohmann::json contender_of(const opscope::compare_receipt& receipt,
                                            std::size_t index) const {
    return nlohmann::json::parse(receipt.json()).at("cells").at(0).at("contenders").at(index);
  }

  opscope::compare_options options_;
};

TEST_F(compare, an_equal_function_is_correct_and_every_call_has_its_op) {
  const auto receipt = opscope::compare(composed, builtin, options_);
  EXPECT_FALSE(receipt.any_wrong());
  EXPECT_EQ(receipt.path(), options_.output);
  EXPECT_TRUE(std::filesystem::exists(receipt.path()));
  const auto entry = contender_of(receipt, 1);
  EXPECT_EQ(entry.at("correct"), true);
  EXPECT_EQ(entry.at("links").at("calls"), 20);
  EXPECT_EQ(entry.at("host_call").at("count"), 5);
  EXPECT_NE(receipt.table().find("composed"), std::string::npos);
}

TEST_F(compare, a_result_of_another_type_is_wrong_though_its_values_are_near) {
  const contender halves{"halves", [](const auto& in) { return at::gelu(in[0]).to(at::kHalf); }};
  options_.inputs = {{"", {at::zeros({64})}}};
  const auto receipt = opscope::compare(halves, builtin, options_);
  EXPECT_TRUE(receipt.any_wrong());
  EXPECT_NE(receipt.table().find("a result is float16, not float32"), std::string::npos);
}

TEST_F(compare, a_function_that_changes_its_input_is_wrong_and_the_input_stays) {
  const contender doubles{"doubles", [](const auto& in) {
                            const at::Tensor& input = in[0];
                            input.mul_(2);
                            return at::gelu(input / 2);
                          }};
  const at::Tensor before = options_.inputs[0].tensors[0].clone();
  const auto receipt = opscope::compare(doubles, builtin, options_);
  EXPECT_EQ(contender_of(receipt, 0).at("correct"), true);
  EXPECT_EQ(contender_of(receipt, 1).at("verdict"), "wrong");
  EXPECT_NE(receipt.table().find("it changes its input"), std::string::npos);
  EXPECT_TRUE(at::equal(options_.inputs[0].tensors[0], before));
}

TEST_F(compare, a_different_result_is_wrong) {
  const auto receipt = opscope::compare(wrong, builtin, options_);
  EXPECT_TRUE(receipt.any_wrong());
  EXPECT_EQ(contender_of(receipt, 1).at("verdict"), "wrong");
  const auto found = contender_of(receipt, 1);
  EXPECT_NEAR(found.at("max_abs_error").get<double>(), 0.01, 1e-4);
  EXPECT_EQ(found.at("atol"), 1e-5);
  EXPECT_EQ(found.at("rtol"), 1.3e-6);
  EXPECT_EQ(found.at("compared"), options_.inputs[0].tensors[0].numel());
}

TEST_F(compare, backward_measures_the_gradient_too) {
  options_.backward = true;
  const auto receipt = opscope::compare(composed, builtin, options_);
  EXPECT_EQ(contender_of(receipt, 1).at("correct"), true);
}

TEST_F(compare, an_empty_comparison_says_what_is_missing) {
  options_.inputs.clear();
  EXPECT_THROW((void)opscope::compare(composed, builtin, options_), opscope::error);
}

TEST_F(compare, an_exception_of_a_contender_passes_through) {
  const contender breaks{"breaks",
                         [](const auto&) -> at::Tensor { throw std::logic_error("the op's own"); }};
  EXPECT_THROW((void)opscope::compare(breaks, builtin, options_), std::logic_error);
}

}  // namespace
