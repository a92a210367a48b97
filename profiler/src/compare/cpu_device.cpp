// SPDX-License-Identifier: Apache-2.0
#include "compare/timing_device.hpp"
#include "opscope/error.hpp"

namespace opscope::comparison {
namespace {

class cpu_device final : public timing_device {
 public:
  [[nodiscard]] std::string name() const override { return "cpu"; }
  [[nodiscard]] bool has_events() const noexcept override { return false; }
  void synchronize() override {}
  std::chrono::nanoseconds batched(const callable& /*contender*/, std::uint32_t /*calls*/,
                                   std::chrono::nanoseconds /*lead*/) override {
    throw_no_clock();
  }
  std::chrono::nanoseconds cold(const callable& /*contender*/,
                                std::chrono::nanoseconds /*lead*/) override {
    throw_no_clock();
  }
  std::unique_ptr<graph> capture(const callable& /*contender*/, std::uint32_t /*calls*/) override {
    throw_no_clock();
  }
  double copy_bandwidth(std::uint64_t /*moved_bytes*/) override { throw_no_clock(); }
  void evict() override {}

 private:
  [[noreturn]] static void throw_no_clock() {
    throw opscope::error("compare: the CPU has no device clock (host time is what there is)");
  }
};

}  // namespace

std::unique_ptr<timing_device> make_cpu_device() { return std::make_unique<cpu_device>(); }

}  // namespace opscope::comparison
