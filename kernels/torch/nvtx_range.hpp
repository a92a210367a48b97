// SPDX-License-Identifier: Apache-2.0
// An operator's NVTX range, as Nsight Systems and any other NVTX tool sees it: domain `opscope`, a
// registered string as the message, the element count as the payload. Without a tool each call is
// one load and a branch.
#pragma once

#include <cstdint>

#ifdef OPSCOPE_WITH_NVTX
#include <nvtx3/nvToolsExt.h>
#endif

namespace opscope::ops {

#ifdef OPSCOPE_WITH_NVTX

inline nvtxDomainHandle_t nvtx_domain() {
  static nvtxDomainHandle_t const domain = nvtxDomainCreateA("opscope");
  return domain;
}

/// A range name, registered with the domain once. Make it a function-local static.
class nvtx_name {
 public:
  explicit nvtx_name(const char* text) : handle_(nvtxDomainRegisterStringA(nvtx_domain(), text)) {}
  nvtxStringHandle_t handle() const { return handle_; }

 private:
  nvtxStringHandle_t handle_;
};

/// Range on the calling thread from construction to destruction.
class nvtx_range {
 public:
  nvtx_range(const nvtx_name& name, std::int64_t elements) {
    nvtxEventAttributes_t attributes{};
    attributes.version = NVTX_VERSION;
    attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    attributes.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    attributes.message.registered = name.handle();
    attributes.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
    attributes.payload.ullValue = static_cast<std::uint64_t>(elements);
    nvtxDomainRangePushEx(nvtx_domain(), &attributes);
  }
  ~nvtx_range() { nvtxDomainRangePop(nvtx_domain()); }
  nvtx_range(const nvtx_range&) = delete;
  nvtx_range& operator=(const nvtx_range&) = delete;
};

#else

class nvtx_name {
 public:
  explicit nvtx_name(const char*) {}
};

class nvtx_range {
 public:
  nvtx_range(const nvtx_name&, std::int64_t) {}
  ~nvtx_range() {}
  nvtx_range(const nvtx_range&) = delete;
  nvtx_range& operator=(const nvtx_range&) = delete;
};

#endif

}  // namespace opscope::ops
