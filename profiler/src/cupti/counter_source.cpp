// SPDX-License-Identifier: Apache-2.0
//
// Hardware counters around the host's work, for the collector.
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "collect/activity_source.hpp"
#include "cupti/counter_session.hpp"
#include "cupti/counter_support.hpp"
#include "cupti/touched.hpp"

namespace opscope::cupti {
namespace {

class cupti_counter_source final : public collect::counter_source {
 public:
  void start(std::uint32_t capacity, collect::activity_sink& sink) override {
    const std::scoped_lock lock{mutex_};
    session_.reset();
    auto driver = open_driver();
    auto cupti = open_api();
    mark_touched();
    initialize_counters(cupti);
    session_.emplace(capacity, sink, std::move(driver), std::move(cupti));
  }

  bool begin(std::string_view name, std::uint32_t cell, std::uint32_t contender) noexcept override {
    const std::scoped_lock lock{mutex_};
    return session_ && session_->begin(name, cell, contender);
  }

  void end() noexcept override {
    const std::scoped_lock lock{mutex_};
    if (session_) {
      session_->end();
    }
  }

  void stop() noexcept override {
    const std::scoped_lock lock{mutex_};
    session_.reset();
  }

 private:
  std::mutex mutex_;
  std::optional<counter_session> session_;
};

}  // namespace
}  // namespace opscope::cupti

namespace opscope::collect {

std::unique_ptr<counter_source> make_counter_source() {
  return std::make_unique<cupti::cupti_counter_source>();
}

}  // namespace opscope::collect
