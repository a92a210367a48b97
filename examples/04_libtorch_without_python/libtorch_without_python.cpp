// SPDX-License-Identifier: Apache-2.0
//
// A libtorch module under the profiler, no Python anywhere:
//   libtorch_without_python [FOLDER]   writes module.opscope and module.json
#include <torch/torch.h>

#include <filesystem>
#include <iostream>
#include <opscope/error.hpp>
#include <opscope/profile.hpp>

int main(int argc, char** argv) try {
  const std::filesystem::path folder = argc > 1 ? argv[1] : ".";
  const auto device = torch::cuda::is_available() ? torch::kCUDA : torch::kCPU;
  torch::nn::Sequential module(torch::nn::Linear(256, 1024), torch::nn::GELU(),
                               torch::nn::Linear(1024, 256));
  module->to(device);
  const auto inputs = torch::randn({64, 256}, device);

  opscope::profile profile{
      {.output = (folder / "module.opscope").string(), .shapes = true, .force = true}};
  module->forward(inputs).square().mean().backward();
  profile.stop();

  opscope::export_trace(profile.path(), (folder / "module.json").string(), true);
  std::cout << "wrote " << profile.path() << " and its trace for https://ui.perfetto.dev\n";
  return 0;
} catch (const opscope::error& failure) {
  std::cerr << "opscope: error: " << failure.what() << '\n';
  return 3;
}
