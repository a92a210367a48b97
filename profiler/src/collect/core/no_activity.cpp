// SPDX-License-Identifier: Apache-2.0
//
// Stand-in for profiler/src/cupti in a build without CUDA.
#include "collect/activity_source.hpp"
#include "opscope/error.hpp"

namespace opscope::collect {
namespace {

class no_activity final : public activity_source {
 public:
  void start(const activity_config& /*config*/, activity_sink& /*sink*/) override {
    throw no_gpu(
        "cannot record GPU work: this opscope was built without CUDA (build with "
        "OPSCOPE_WITH_CUDA=ON)");
  }
  void flush() noexcept override {}
  void stop() noexcept override {}
};

class no_counters final : public counter_source {
 public:
  void start(std::uint32_t /*capacity*/, activity_sink& /*sink*/) override {
    throw error(
        "cannot read DRAM counters: this opscope was built without CUDA (build with "
        "OPSCOPE_WITH_CUDA=ON)");
  }
  bool begin(std::string_view /*name*/, std::uint32_t /*cell*/,
             std::uint32_t /*contender*/) noexcept override {
    return false;
  }
  void end() noexcept override {}
  void stop() noexcept override {}
};

}  // namespace

std::unique_ptr<activity_source> make_activity_source() { return std::make_unique<no_activity>(); }
std::unique_ptr<counter_source> make_counter_source() { return std::make_unique<no_counters>(); }

std::string describe_machine() {
  return R"({"gpu":null,"why":"built without CUDA","fix":"build with OPSCOPE_WITH_CUDA=ON"})";
}

bool activity_touched() noexcept { return false; }

void detach_activity() {}

}  // namespace opscope::collect
