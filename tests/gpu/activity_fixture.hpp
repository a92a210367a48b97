// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "collect/activity_source.hpp"
#include "device.hpp"
#include "support/collecting_sink.hpp"

namespace opscope::test {

inline constexpr std::size_t small = 1U << 16U;

/// A session of the real activity source.
class activity_test : public gpu_test {
 protected:
  void start(const collect::activity_config& config = {}) { source_->start(config, sink_); }
  void stop() { source_->stop(); }

  /// The outermost API call of a correlation id: the one that encloses the others.
  std::optional<api_call> call_of(correlation_id correlation) const {
    std::optional<api_call> outermost;
    for (const auto& call : sink_.api_calls) {
      if (call.correlation == correlation && (!outermost || call.start < outermost->start)) {
        outermost = call;
      }
    }
    return outermost;
  }

  std::size_t calls_named(std::string_view part) const {
    return static_cast<std::size_t>(std::ranges::count_if(sink_.api_calls, [&](const auto& call) {
      return sink_.text(call.name).find(part) != std::string::npos;
    }));
  }

  std::size_t kernels_named(std::string_view part) const {
    return static_cast<std::size_t>(std::ranges::count_if(sink_.kernels, [&](const auto& row) {
      return sink_.text(row.name).find(part) != std::string::npos;
    }));
  }

  nlohmann::json document(std::string_view name) const {
    const auto found = sink_.documents.find(name);
    return found == sink_.documents.end() ? nlohmann::json{} : nlohmann::json::parse(found->second);
  }

  collecting_sink sink_;
  std::unique_ptr<collect::activity_source> source_ = collect::make_activity_source();
};

}  // namespace opscope::test
