// SPDX-License-Identifier: Apache-2.0
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <opscope/compare.hpp>
#include <opscope/error.hpp>
#include <opscope/kernels/gelu_host.hpp>
#include <opscope/profile.hpp>
#include <string>

namespace {

at::Tensor registered(const at::Tensor& input) {
  static const auto gelu = c10::Dispatcher::singleton()
                               .findSchemaOrThrow("opscope::gelu", "")
                               .typed<at::Tensor(const at::Tensor&, c10::string_view)>();
  return gelu.call(input, "none");
}

bool kernels_agree(const at::Tensor& input) {
  auto own = at::empty_like(input);
  opscope::kernels::host::gelu_forward(input.data_ptr(), own.data_ptr(), input.numel(),
                                       opscope::kernels::dtype::fp32,
                                       opscope::kernels::approximate::none);
  return at::allclose(own, at::gelu(input), 1e-5, 1e-6);
}

/// The observer that lies beside the library records ops.
bool ops_are_recorded(const at::Tensor& input) {
  opscope::profile profile{{.output = "one.opscope", .force = true}};
  registered(input);
  profile.stop();
  opscope::export_trace(profile.path(), "one.json", true);
  std::ifstream trace{"one.json"};
  const std::string text{std::istreambuf_iterator<char>{trace}, {}};
  return text.find("opscope::gelu") != std::string::npos;
}

}  // namespace

int main() try {
  at::set_num_threads(1);  // whatever else runs meanwhile
  const auto input = at::randn({1024});
  if (!kernels_agree(input)) return 2;
  if (!ops_are_recorded(input)) return 3;
  const auto receipt = opscope::compare(
      {"opscope::gelu", [](const auto& tensors) { return registered(tensors.at(0)); }},
      {"aten::gelu", [](const auto& tensors) { return at::gelu(tensors.at(0)); }},
      {.inputs = {{.tensors = {input}}}, .output = "two.opscope", .force = true, .pairs = 20});
  std::fputs(receipt.table().c_str(), stdout);
  return receipt.any_wrong() ? 4 : 0;
} catch (const std::exception& failure) {
  std::fprintf(stderr, "%s\n", failure.what());
  return 1;
}
