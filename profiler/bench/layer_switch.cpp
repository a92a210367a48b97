// SPDX-License-Identifier: Apache-2.0
//
// A session with chosen layers, for layer_cost.py (through ctypes). The Python package offers no
// such switches: a user wants the whole picture, only its price is asked for in parts.
#include "collect/runtime.h"
#include "collect/runtime_client.hpp"

namespace {

constexpr std::uint32_t api = 1;
constexpr std::uint32_t ops = 2;
constexpr std::uint32_t shapes = 4;
constexpr std::uint32_t gpu = 8;

}  // namespace

/// Starts a session that records the layers of the mask (gpu 8, api 1, ops 2, shapes 4) and the
/// Python mode OPSCOPE_PYTHON_*. 0, or 1 with the reason in `error`.
extern "C" __attribute__((visibility("default"))) int opscope_bench_start(
    const char* output, std::uint32_t layers, std::uint32_t python, char* error,
    std::size_t error_size) noexcept {
  const opscope_runtime* runtime = opscope::client::runtime();
  if (runtime == nullptr) {
    return 1;
  }
  opscope_session_options options{};
  options.size = sizeof options;
  options.output = output;
  options.force = 1;
  options.no_gpu = (layers & gpu) == 0 ? 1 : 0;
  options.no_api = (layers & api) == 0 ? 1 : 0;
  options.no_ops = (layers & ops) == 0 ? 1 : 0;
  options.no_nvtx = 1;
  options.shapes = (layers & shapes) != 0 ? 1 : 0;
  options.python = python;
  return runtime->session_start(&options, error, error_size);
}

/// Ends the session. 0, or 1 with the reason in `error`.
extern "C" __attribute__((visibility("default"))) int opscope_bench_stop(
    char* error, std::size_t error_size) noexcept {
  const opscope_runtime* runtime = opscope::client::runtime();
  return runtime == nullptr ? 1 : runtime->session_stop(error, error_size);
}
