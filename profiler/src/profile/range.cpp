// SPDX-License-Identifier: Apache-2.0
#include "opscope/range.hpp"

#include <nvtx3/nvToolsExt.h>

#include <map>
#include <mutex>
#include <string>

namespace opscope {
namespace {

/// Domains and categories by name, made once and kept: NVTX has no cheap look-up of its own.
class nvtx_names {
 public:
  nvtxDomainHandle_t domain(std::string_view name) {
    const std::scoped_lock hold{mutex_};
    return find_domain(name).handle;
  }

  std::uint32_t category(std::string_view domain, std::string_view name) {
    if (name.empty()) return 0;
    const std::scoped_lock hold{mutex_};
    entry& in = find_domain(domain);
    if (const auto found = in.categories.find(name); found != in.categories.end())
      return found->second;
    const auto id = static_cast<std::uint32_t>(in.categories.size()) + 1;
    const auto made = in.categories.emplace(name, id).first;
    nvtxDomainNameCategoryA(in.handle, id, made->first.c_str());
    return id;
  }

 private:
  struct entry {
    nvtxDomainHandle_t handle = nullptr;
    std::map<std::string, std::uint32_t, std::less<>> categories;
  };

  entry& find_domain(std::string_view name) {
    if (const auto found = domains_.find(name); found != domains_.end()) return found->second;
    const auto made = domains_.emplace(name, entry{}).first;
    made->second.handle = nvtxDomainCreateA(made->first.c_str());
    return made->second;
  }

  std::mutex mutex_;
  std::map<std::string, entry, std::less<>> domains_;
};

nvtx_names& names() {
  static auto* const kept = new nvtx_names;  // ranges may end after static objects do
  return *kept;
}

nvtxEventAttributes_t attributes_of(const range_options& options) {
  nvtxEventAttributes_t attributes{};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.category = names().category(options.domain, options.category);
  if (options.color != 0) {
    attributes.colorType = NVTX_COLOR_ARGB;
    attributes.color = options.color;
  }
  if (const auto* value = std::get_if<std::uint64_t>(&options.payload)) {
    attributes.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
    attributes.payload.ullValue = *value;
  } else if (const auto* signed_value = std::get_if<std::int64_t>(&options.payload)) {
    attributes.payloadType = NVTX_PAYLOAD_TYPE_INT64;
    attributes.payload.llValue = *signed_value;
  } else if (const auto* real = std::get_if<double>(&options.payload)) {
    attributes.payloadType = NVTX_PAYLOAD_TYPE_DOUBLE;
    attributes.payload.dValue = *real;
  }
  return attributes;
}

}  // namespace

registered_name::registered_name(std::string_view name, std::string_view domain) {
  nvtxDomainHandle_t const in = names().domain(domain);
  domain_ = in;
  handle_ = nvtxDomainRegisterStringA(in, std::string{name}.c_str());
}

scoped_range::scoped_range(std::string_view name, const range_options& options) noexcept {
  try {
    nvtxDomainHandle_t const domain = names().domain(options.domain);
    nvtxEventAttributes_t attributes = attributes_of(options);
    const std::string text{name};
    attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
    attributes.message.ascii = text.c_str();
    nvtxDomainRangePushEx(domain, &attributes);
    domain_ = domain;
    open_ = true;
  } catch (...) {  // a range that cannot be named is not opened; the program runs on
  }
}

scoped_range::scoped_range(const registered_name& name, const range_options& options) noexcept {
  try {
    nvtxEventAttributes_t attributes = attributes_of(options);
    attributes.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    attributes.message.registered = static_cast<nvtxStringHandle_t>(name.handle_);
    nvtxDomainRangePushEx(static_cast<nvtxDomainHandle_t>(name.domain_), &attributes);
    domain_ = name.domain_;
    open_ = true;
  } catch (...) {  // as above
  }
}

scoped_range::~scoped_range() {
  if (open_) nvtxDomainRangePop(static_cast<nvtxDomainHandle_t>(domain_));
}

}  // namespace opscope
