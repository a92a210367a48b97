// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <string>

#include "collect/activity_source.hpp"
#include "cupti/api.hpp"

namespace opscope::cupti {

/// The one subscription to CUPTI that a process may have: holding it tells other tools that CUPTI
/// is taken, and it brings the callbacks that tell which thread created a graph node when.
/// Not movable: CUPTI keeps its address.
class subscriber {
 public:
  /// @throws cupti_error with the owner's name when another tool holds the subscription.
  explicit subscriber(const api& cupti);
  ~subscriber();
  subscriber(const subscriber&) = delete;
  subscriber& operator=(const subscriber&) = delete;

  /// Delivers a graph_node row for every node that is created or cloned from now on.
  /// @throws cupti_error
  void watch_graph_nodes(collect::activity_sink& sink);

  /// Notes from now on which streams capture (captures.hpp).
  /// @throws cupti_error
  void watch_captures();

  /// Ends the subscription; no callback runs when it returns. Later calls do nothing.
  void close() noexcept;

 private:
  static void on_callback(void* self, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                          const void* data);
  static void capture_changed(CUpti_CallbackDomain domain, CUpti_CallbackId id,
                              const CUpti_CallbackData& call) noexcept;
  void node_made(CUpti_CallbackId id, const CUpti_GraphData& graph) noexcept;

  const api& cupti_;
  CUpti_SubscriberHandle handle_ = nullptr;
  std::atomic<collect::activity_sink*> sink_{nullptr};
  std::atomic<int> running_{0};
};

/// Subscribes under our name.
/// @throws cupti_error with the owner's name when another tool holds the subscription.
[[nodiscard]] CUpti_SubscriberHandle subscribe(const api& cupti, CUpti_CallbackFunc callback,
                                               void* data);

/// Name of the tool that holds CUPTI's subscription; empty when it is free. Touches CUPTI.
/// @throws cupti_error when CUPTI cannot tell.
[[nodiscard]] std::string subscription_owner(const api& cupti);

}  // namespace opscope::cupti
