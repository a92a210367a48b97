// SPDX-License-Identifier: Apache-2.0
#include "cupti/subscriber.hpp"

#include <unistd.h>

#include <array>
#include <span>
#include <thread>

#include "cupti/clock.hpp"
#include "cupti/cupti_error.hpp"

namespace opscope::cupti {
namespace {

/// Subscribes under our name; on refusal `owner` is what CUPTI says about the holder.
CUptiResult subscribe(const api& cupti, CUpti_CallbackFunc callback, void* data,
                      CUpti_SubscriberHandle& handle, std::string& owner) {
  std::array<char, 2 * CUPTI_OLD_SUBSCRIBER_NAME_MIN_LEN> name{};
  CUpti_SubscriberParams params{};
  params.structSize = CUpti_SubscriberParams_STRUCT_SIZE;
  params.subscriberName = "opscope";
  params.oldSubscriberName = name.data();
  params.oldSubscriberSize = name.size();
  const CUptiResult status = cupti.subscribe(&handle, callback, data, &params);
  owner = name.data();
  return status;
}

void ignore_callback(void* /*data*/, CUpti_CallbackDomain /*domain*/, CUpti_CallbackId /*id*/,
                     const void* /*cbdata*/) noexcept {}

}  // namespace

subscriber::subscriber(const api& cupti) : cupti_(cupti) {
  std::string owner;
  const CUptiResult status = subscribe(cupti, &on_callback, this, handle_, owner);
  if (status != CUPTI_SUCCESS) {
    throw cupti_error(status, "cuptiSubscribe_v2", owner);
  }
}

subscriber::~subscriber() { close(); }

void subscriber::watch_graph_nodes(collect::activity_sink& sink) {
  sink_.store(&sink);
  for (const CUpti_CallbackId id :
       {CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED, CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED}) {
    check(cupti_.enable_callback(1, handle_, CUPTI_CB_DOMAIN_RESOURCE, id),
          "cuptiEnableCallback(graph nodes)");
  }
}

void subscriber::close() noexcept {
  if (handle_ == nullptr) {
    return;
  }
  sink_.store(nullptr);
  while (running_.load() != 0) {
    std::this_thread::yield();
  }
  cupti_.unsubscribe(handle_);
  handle_ = nullptr;
}

void subscriber::on_callback(void* self, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                             const void* data) {
  if (domain != CUPTI_CB_DOMAIN_RESOURCE || data == nullptr) {
    return;
  }
  const auto* resource = static_cast<const CUpti_ResourceData*>(data);
  if (resource->resourceDescriptor != nullptr) {
    static_cast<subscriber*>(self)->node_made(
        id, *static_cast<const CUpti_GraphData*>(resource->resourceDescriptor));
  }
}

void subscriber::node_made(CUpti_CallbackId id, const CUpti_GraphData& graph) noexcept {
  running_.fetch_add(1);
  if (auto* sink = sink_.load(); sink != nullptr) {
    graph_node row{.start = realtime_now(),
                   .node = 0,
                   .original = 0,
                   .graph = 0,
                   .thread = thread_id{static_cast<std::uint32_t>(gettid())}};
    bool known = cupti_.get_graph_node_id(graph.node, &row.node) == CUPTI_SUCCESS;
    if (id == CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED) {
      known &= cupti_.get_graph_node_id(graph.originalNode, &row.original) == CUPTI_SUCCESS;
    }
    cupti_.get_graph_id(graph.graph, &row.graph);  // absent for some clones; the node is the key
    if (known) {
      sink->deliver(std::span<const graph_node>{&row, 1});
    } else {
      sink->account(outcome::skipped, "graph_node", 1);
    }
  }
  running_.fetch_sub(1);
}

std::string subscription_owner(const api& cupti) {
  CUpti_SubscriberHandle handle = nullptr;
  std::string owner;
  const CUptiResult status = subscribe(cupti, &ignore_callback, nullptr, handle, owner);
  if (status == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED) {
    return owner.empty() ? "an unnamed tool" : owner;
  }
  check(status, "cuptiSubscribe_v2");
  check(cupti.unsubscribe(handle), "cuptiUnsubscribe");
  return {};
}

}  // namespace opscope::cupti
