// SPDX-License-Identifier: Apache-2.0
//
// Differences are taken in float64, a slice at a time: a result of a gigabyte needs no further
// gigabytes to be checked.
#include "compare/agreement.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace opscope::comparison {
namespace {

constexpr std::int64_t slice_elements = std::int64_t{1} << 24;

struct tolerance {
  double relative;
  double absolute;
};

/// The table of torch.testing.assert_close.
tolerance tolerance_of(at::ScalarType type) {
  switch (type) {
    case at::kHalf:
    case at::kComplexHalf:
      return {1e-3, 1e-5};
    case at::kBFloat16:
      return {1.6e-2, 1e-5};
    case at::kFloat:
    case at::kComplexFloat:
      return {1.3e-6, 1e-5};
    case at::kDouble:
    case at::kComplexDouble:
      return {1e-7, 1e-7};
    default:
      return {0, 0};
  }
}

struct difference {
  double absolute = 0;
  double relative = 0;
  std::int64_t outside = 0;

  void add(const at::Tensor& actual, const at::Tensor& expected, tolerance allowed) {
    const at::Tensor both_nan = actual.isnan().logical_and(expected.isnan());
    const at::Tensor same = actual.eq(expected).logical_or(both_nan);
    const at::Tensor distance = (actual - expected).abs().masked_fill(same, 0);
    const at::Tensor size = expected.abs();
    const at::Tensor bad =
        distance.le(size * allowed.relative + allowed.absolute).logical_or(same).logical_not();
    absolute = std::max(absolute, distance.max().item<double>());
    relative = std::max(relative, (distance / size).masked_fill(same, 0).max().item<double>());
    outside += bad.sum().item<std::int64_t>();
  }
};

nlohmann::json wrong(const std::string& why) { return {{"correct", false}, {"why", why}}; }

}  // namespace

std::string type_name(at::ScalarType type) { return c10::getDtypeNames(type).first; }

nlohmann::json agreement(const at::Tensor& actual, const at::Tensor& expected,
                         at::ScalarType wanted) {
  if (actual.scalar_type() != wanted) {
    return wrong("a result is " + type_name(actual.scalar_type()) + ", not " + type_name(wanted));
  }
  if (actual.sizes() != expected.sizes()) {
    return wrong("the shapes differ");
  }
  const tolerance allowed = tolerance_of(actual.scalar_type());
  const at::Tensor left = actual.detach().reshape(-1);
  const at::Tensor right = expected.detach().reshape(-1);
  difference found;
  for (std::int64_t at = 0; at < left.numel(); at += slice_elements) {
    const std::int64_t end = std::min(left.numel(), at + slice_elements);
    found.add(left.slice(0, at, end).to(at::kDouble), right.slice(0, at, end).to(at::kDouble),
              allowed);
  }
  nlohmann::json result{{"correct", found.outside == 0},
                        {"max_abs_error", found.absolute},
                        {"max_rel_error", found.relative},
                        {"atol", allowed.absolute},
                        {"rtol", allowed.relative},
                        {"compared", left.numel()},
                        {"why", ""}};
  if (found.outside != 0) {
    result["why"] = std::to_string(found.outside) + " of " + std::to_string(left.numel()) +
                    " elements are outside the tolerances of their type";
  }
  return result;
}

}  // namespace opscope::comparison
