// SPDX-License-Identifier: Apache-2.0
#include "analyse/kernel_name.hpp"

#include <gtest/gtest.h>

#include <set>

#include "analyse/text_layout.hpp"

namespace opscope::analyse {
namespace {

std::string gelu(std::string_view form) {
  const auto functor =
      "at::native::GeluCUDAKernelImpl(at::TensorIteratorBase&, at::native::GeluType)::{lambda()#" +
      std::string(form) +
      "}::operator()() const::{lambda()#2}::operator()() const::{lambda(float)#1}";
  return "void at::native::vectorized_elementwise_kernel<4, " + functor +
         ", std::array<char*, 2ul> >(int, " + functor + ", std::array<char*, 2ul>)";
}

TEST(kernel_name, loses_what_its_whole_family_has) {
  EXPECT_EQ(short_kernel_name(gelu("1")),
            "vectorized_elementwise_kernel<4, GeluCUDAKernelImpl#1#2#1, array<char*, 2ul>>");
  EXPECT_EQ(short_kernel_name(
                "opscope::kernels::(anonymous namespace)::gelu_naive_kernel(float const*, long)"),
            "gelu_naive_kernel");
  EXPECT_EQ(short_kernel_name("void a::k<(a::mode)3, &a::f, -1>(void (*)(int))"),
            "k<(a::mode)3, f, -1>");
  EXPECT_EQ(short_kernel_name("void a::outer<int>::k<void const*, unsigned int>(a::b<1>)"),
            "outer<int>::k<void const*, unsigned int>");
}

TEST(kernel_name, keeps_the_functor_in_its_telling_form) {
  const auto telling = [](std::string_view name) {
    return short_kernel_name(name, kept_arguments::telling);
  };
  EXPECT_EQ(telling(gelu("2")), "vectorized_elementwise_kernel<GeluCUDAKernelImpl#2#2#1>");
  EXPECT_EQ(telling("void at::native::vectorized_elementwise_kernel<4, "
                    "at::native::FillFunctor<float>, std::array<char*, 1ul> >(int)"),
            "vectorized_elementwise_kernel<FillFunctor<float>>");
  EXPECT_EQ(telling("void cudnn::convert<true, 4>(void const*)"), "convert<true, 4>");
}

TEST(kernel_name, of_another_form_stays_as_it_is) {
  for (const std::string name :
       {"nvjet_sm90_tst_64x8_64x16_1x2_h_bz_NNT", "triton_poi_fused_add_0", "_Z6kernelPf", "",
        "a<b", "a(b", "operator_kernel", "a::operator()(int)", "k<(x < y)>(int)"}) {
    EXPECT_EQ(short_kernel_name(name), name);
  }
}

TEST(kernel_name, nested_deeper_than_kernels_are_stays_as_it_is) {
  const auto nested = [](std::size_t depth) {
    std::string name;
    for (std::size_t i = 0; i < depth; ++i) name += "n::a<";
    return name + std::string(depth, '>');
  };
  EXPECT_EQ(short_kernel_name(nested(40)).substr(0, 4), "a<a<");
  for (const std::size_t depth : {100U, 200'000U}) {
    EXPECT_EQ(short_kernel_name(nested(depth)), nested(depth));
    EXPECT_EQ(display_width(kernel_labels({nested(depth)}, 60).front()), 60U);
  }
}

TEST(kernel_labels, fit_and_keep_the_functor) {
  for (const std::size_t width : {20U, 26U, 39U, 60U}) {
    const auto labels = kernel_labels({gelu("1"), gelu("2")}, width);
    EXPECT_NE(labels[0], labels[1]);
    for (const auto& label : labels) {
      EXPECT_LE(display_width(label), width);
      EXPECT_NE(label.find("#2#1"), std::string::npos) << label;
    }
  }
  EXPECT_EQ(kernel_labels({gelu("1")}, 39)[0], "vector…kernel<GeluCUDAKernelImpl#1#2#1>");
}

TEST(kernel_labels, of_different_kernels_always_differ) {
  const std::vector<std::string> names{
      "void a::k<1, 2>(int)",
      "void a::k<1, 2>(float)",
      "void b::k<1, 2>(int)",
      "nvjet_sm90_tst_64x8_64x16_1x2_h_bz_bias_TNT_and_more",
      "nvjet_sm90_tst_64x8_64x16_1x4_h_bz_bias_TNT_and_more",
      "nvjet_sm90_tst_64x8_64x16_1x4_h_bz_bias_TNT_and_more_of_it",
      std::string(100, 'x') + "a" + std::string(100, 'x'),
      std::string(100, 'x') + "b" + std::string(100, 'x'),
      "k\xC3\xA4rnel_" + std::string(50, 'x') + "a" + std::string(50, 'x'),
      "k\xC3\xA4rnel_" + std::string(50, 'x') + "b" + std::string(50, 'x'),
  };
  for (const std::size_t width : {0U, 12U, 20U, 39U, 80U}) {
    const auto labels = kernel_labels(names, width);
    EXPECT_EQ(std::set(labels.begin(), labels.end()).size(), names.size()) << width;
    for (const auto& label : labels) {
      EXPECT_TRUE(width == 0 || display_width(label) <= width) << label;
    }
  }
}

TEST(kernel_labels, with_a_number_are_not_another_kernels_name) {
  const std::vector<std::string> names{"k ~1",  "a::k<1>(int)", "b::k<1>(int)", "k<1> ~1",
                                       "k\x01", "k\x02",        "k  ~1"};
  for (const std::size_t width : {0U, 20U}) {
    const auto labels = kernel_labels(names, width);
    EXPECT_EQ(std::set(labels.begin(), labels.end()).size(), names.size()) << width;
  }
  const auto labels = kernel_labels({"k", "k", "k ~1"}, 0);
  EXPECT_EQ(labels, (std::vector<std::string>{"k ~2", "k ~3", "k ~1"}));
}

}  // namespace
}  // namespace opscope::analyse
