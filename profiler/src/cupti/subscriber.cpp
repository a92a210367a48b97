// SPDX-License-Identifier: Apache-2.0
#include "cupti/subscriber.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <span>
#include <thread>

#include "cupti/captures.hpp"
#include "cupti/clock.hpp"
#include "cupti/cupti_error.hpp"

namespace opscope::cupti {
namespace {

/// On refusal `owner` is what CUPTI says about the holder.
CUptiResult try_to_subscribe(const api& cupti, CUpti_CallbackFunc callback, void* data,
                             CUpti_SubscriberHandle& handle, std::string& owner) {
  std::array<char, 2UL * CUPTI_OLD_SUBSCRIBER_NAME_MIN_LEN> name{};
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

constexpr std::array driver_begins{CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture,
                                   CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_ptsz,
                                   CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_v2,
                                   CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_v2_ptsz,
                                   CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCaptureToGraph,
                                   CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCaptureToGraph_ptsz};
constexpr std::array driver_ends{CUPTI_DRIVER_TRACE_CBID_cuStreamEndCapture,
                                 CUPTI_DRIVER_TRACE_CBID_cuStreamEndCapture_ptsz};
constexpr std::array runtime_begins{
    CUPTI_RUNTIME_TRACE_CBID_cudaStreamBeginCapture_v10000,
    CUPTI_RUNTIME_TRACE_CBID_cudaStreamBeginCapture_ptsz_v10000,
    CUPTI_RUNTIME_TRACE_CBID_cudaStreamBeginCaptureToGraph_v12030,
    CUPTI_RUNTIME_TRACE_CBID_cudaStreamBeginCaptureToGraph_ptsz_v12030};
constexpr std::array runtime_ends{CUPTI_RUNTIME_TRACE_CBID_cudaStreamEndCapture_v10000,
                                  CUPTI_RUNTIME_TRACE_CBID_cudaStreamEndCapture_ptsz_v10000};

bool contains(const auto& ids, CUpti_CallbackId id) noexcept {
  return std::ranges::any_of(ids,
                             [id](auto one) { return static_cast<CUpti_CallbackId>(one) == id; });
}

}  // namespace

CUpti_SubscriberHandle subscribe(const api& cupti, CUpti_CallbackFunc callback, void* data) {
  CUpti_SubscriberHandle handle = nullptr;
  std::string owner;
  const CUptiResult status = try_to_subscribe(cupti, callback, data, handle, owner);
  if (status != CUPTI_SUCCESS) {
    throw cupti_error(status, "cuptiSubscribe_v2", owner);
  }
  return handle;
}

subscriber::subscriber(const api& cupti)
    : cupti_(cupti), handle_(subscribe(cupti, &on_callback, this)) {}

subscriber::~subscriber() { close(); }

void subscriber::watch_graph_nodes(collect::activity_sink& sink) {
  sink_.store(&sink);
  for (const CUpti_CallbackId id :
       {CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED, CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED}) {
    check(cupti_.enable_callback(1, handle_, CUPTI_CB_DOMAIN_RESOURCE, id),
          "cuptiEnableCallback(graph nodes)");
  }
}

void subscriber::watch_captures() {
  const auto watch = [this](CUpti_CallbackDomain domain, const auto& ids) {
    for (const auto id : ids) {
      check(cupti_.enable_callback(1, handle_, domain, id), "cuptiEnableCallback(stream capture)");
    }
  };
  watch(CUPTI_CB_DOMAIN_DRIVER_API, driver_begins);
  watch(CUPTI_CB_DOMAIN_DRIVER_API, driver_ends);
  watch(CUPTI_CB_DOMAIN_RUNTIME_API, runtime_begins);
  watch(CUPTI_CB_DOMAIN_RUNTIME_API, runtime_ends);
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
  forget_captures();
}

void subscriber::on_callback(void* self, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                             const void* data) {
  if (data == nullptr) {
    return;
  }
  if (domain != CUPTI_CB_DOMAIN_RESOURCE) {
    capture_changed(domain, id, *static_cast<const CUpti_CallbackData*>(data));
    return;
  }
  const auto* resource = static_cast<const CUpti_ResourceData*>(data);
  if (resource->resourceDescriptor != nullptr) {
    static_cast<subscriber*>(self)->node_made(
        id, *static_cast<const CUpti_GraphData*>(resource->resourceDescriptor));
  }
}

void subscriber::capture_changed(CUpti_CallbackDomain domain, CUpti_CallbackId id,
                                 const CUpti_CallbackData& call) noexcept {
  if (call.callbackSite != CUPTI_API_EXIT || call.functionParams == nullptr) {
    return;
  }
  // The stream is the first parameter of all of these functions.
  const CUstream stream = *static_cast<const CUstream*>(call.functionParams);
  const bool driver = domain == CUPTI_CB_DOMAIN_DRIVER_API;
  const bool failed = call.functionReturnValue != nullptr &&
                      *static_cast<const int*>(call.functionReturnValue) != 0;
  if (driver ? contains(driver_begins, id) : contains(runtime_begins, id)) {
    if (!failed) {
      note_capture_begun(stream);
    }
  } else if (driver ? contains(driver_ends, id) : contains(runtime_ends, id)) {
    note_capture_ended(stream);
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
  const CUptiResult status = try_to_subscribe(cupti, &ignore_callback, nullptr, handle, owner);
  if (status == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED) {
    return owner.empty() ? "an unnamed tool" : owner;
  }
  check(status, "cuptiSubscribe_v2");
  check(cupti.unsubscribe(handle), "cuptiUnsubscribe");
  return {};
}

}  // namespace opscope::cupti
