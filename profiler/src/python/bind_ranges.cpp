// SPDX-License-Identifier: Apache-2.0
//
// The user's ranges, emitted as NVTX so that any NVTX tool shows them. opscope's own capture sees
// them through its injection library; where another tool holds the injection (nsys), or there is
// none, they are written to the capture from here as well.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nvtx3/nvToolsExt.h>

#include <bit>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "collect/runtime_client.hpp"
#include "model/ledger.hpp"
#include "model/records.hpp"
#include "python/bindings.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace opscope::python {
namespace {

/// A domain's handles, made at first use of each name.
struct domain_names {
  nvtxDomainHandle_t handle = nullptr;
  std::unordered_map<std::string, nvtxStringHandle_t> strings;
  std::unordered_map<std::string, std::uint32_t> categories;
};

domain_names& domain(const std::string& name) {
  static auto* all = new std::map<std::string, domain_names>;  // under the GIL
  domain_names& found = (*all)[name];
  if (found.handle == nullptr) found.handle = nvtxDomainCreateA(name.c_str());
  return found;
}

nvtxStringHandle_t registered(domain_names& where, const std::string& text) {
  const auto [item, added] = where.strings.try_emplace(text);
  if (added) item->second = nvtxDomainRegisterStringA(where.handle, text.c_str());
  return item->second;
}

std::uint32_t category_number(domain_names& where, const std::string& name) {
  if (name.empty()) return 0;
  const auto [item, added] = where.categories.try_emplace(name);
  if (added) {
    item->second = static_cast<std::uint32_t>(where.categories.size());
    nvtxDomainNameCategoryA(where.handle, item->second, name.c_str());
  }
  return item->second;
}

void set_payload(nvtxEventAttributes_t& event, const nb::object& payload) {
  if (payload.is_none()) return;
  if (PyFloat_Check(payload.ptr())) {
    event.payloadType = NVTX_PAYLOAD_TYPE_DOUBLE;
    event.payload.dValue = PyFloat_AS_DOUBLE(payload.ptr());
    return;
  }
  std::int64_t narrow = 0;
  if (nb::try_cast<std::int64_t>(payload, narrow)) {
    event.payloadType = NVTX_PAYLOAD_TYPE_INT64;
    event.payload.llValue = narrow;
    return;
  }
  event.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
  event.payload.ullValue = nb::cast<std::uint64_t>(payload);
}

struct request {
  const std::string& name;
  const std::string& domain_name;
  const std::string& category;
  std::uint32_t color;
  const nb::object& payload;
};

/// Registered strings are for names that come again; a text that differs each time is passed as it
/// is, so that a program with many names does not grow.
constexpr std::size_t registered_limit = 4096;

nvtxEventAttributes_t attributes(domain_names& where, const request& wanted) {
  nvtxEventAttributes_t event{};
  event.version = NVTX_VERSION;
  event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  event.category = category_number(where, wanted.category);
  if (wanted.color != 0) {
    event.colorType = NVTX_COLOR_ARGB;
    event.color = wanted.color;
  }
  set_payload(event, wanted.payload);
  nvtxStringHandle_t text = nullptr;
  if (where.strings.size() < registered_limit) text = registered(where, wanted.name);
  if (text != nullptr) {
    event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    event.message.registered = text;
  } else {
    event.messageType = NVTX_MESSAGE_TYPE_ASCII;
    event.message.ascii = wanted.name.c_str();
  }
  return event;
}

/// A range that this module writes itself.
struct own_range {
  opscope_range_event event{};
  std::string name, domain, category;
};

own_range begin_own(const request& wanted, const nvtxEventAttributes_t& shown) {
  own_range made{{}, wanted.name, wanted.domain_name, wanted.category};
  opscope_range_event& event = made.event;
  event.color = wanted.color;
  using kind = range::payload_kind;
  if (shown.payloadType == NVTX_PAYLOAD_TYPE_DOUBLE) {
    event.payload_type = static_cast<std::uint32_t>(kind::floating);
    event.payload = std::bit_cast<std::uint64_t>(shown.payload.dValue);
  } else if (shown.payloadType != NVTX_PAYLOAD_UNKNOWN) {
    const bool is_signed = shown.payloadType == NVTX_PAYLOAD_TYPE_INT64;
    event.payload_type =
        static_cast<std::uint32_t>(is_signed ? kind::signed_integer : kind::unsigned_integer);
    event.payload = shown.payload.ullValue;
  }
  if (opscope_thread* thread = runtime().thread()) {
    client::touch(*thread);
    event.thread = thread->os_id;
  }
  event.id = runtime().next_id();
  event.start_ns = runtime().now();
  return made;
}

void end_own(own_range& ended, std::uint32_t flags) {
  const auto name = [](const std::string& text) {
    return opscope_name{text.data(), static_cast<std::uint32_t>(text.size()), 0};
  };
  ended.event.end_ns = runtime().now();
  ended.event.name = name(ended.name);
  ended.event.domain = name(ended.domain);
  ended.event.category = name(ended.category);
  ended.event.flags = flags;
  runtime().range(&ended.event);
}

bool write_own() { return !injection_is_ours() && *runtime().recording != 0; }

std::vector<own_range>& own_stack() {
  static thread_local std::vector<own_range> open;
  return open;
}

std::unordered_map<std::uint64_t, own_range>& own_process_ranges() {
  static auto* open = new std::unordered_map<std::uint64_t, own_range>;  // under the GIL
  return *open;
}

void push(const std::string& name, const std::string& domain_name, const std::string& category,
          std::uint32_t color, const nb::object& payload) {
  const request wanted{name, domain_name, category, color, payload};
  domain_names& where = domain(domain_name);
  const nvtxEventAttributes_t event = attributes(where, wanted);
  if (write_own()) own_stack().push_back(begin_own(wanted, event));
  nvtxDomainRangePushEx(where.handle, &event);
}

void pop(const std::string& domain_name) {
  nvtxDomainRangePop(domain(domain_name).handle);
  std::vector<own_range>& open = own_stack();
  for (auto item = open.rbegin(); item != open.rend(); ++item) {
    if (item->domain != domain_name) continue;
    end_own(*item, 0);
    open.erase(std::next(item).base());
    return;
  }
}

std::uint64_t start(const std::string& name, const std::string& domain_name,
                    const std::string& category, std::uint32_t color, const nb::object& payload) {
  const request wanted{name, domain_name, category, color, payload};
  domain_names& where = domain(domain_name);
  const nvtxEventAttributes_t event = attributes(where, wanted);
  const bool own = write_own();
  own_range made = own ? begin_own(wanted, event) : own_range{};
  std::uint64_t handle = nvtxDomainRangeStartEx(where.handle, &event);
  if (own) {
    if (handle == 0) handle = made.event.id | std::uint64_t{1} << 63U;
    own_process_ranges().insert_or_assign(handle, std::move(made));
  }
  return handle;
}

void end(std::uint64_t handle, const std::string& domain_name) {
  nvtxDomainRangeEnd(domain(domain_name).handle, handle);
  const auto own = own_process_ranges().find(handle);
  if (own == own_process_ranges().end()) return;
  if (const opscope_thread* thread = runtime().thread())
    own->second.event.end_thread = thread->os_id;
  end_own(own->second, range::process_wide);
  own_process_ranges().erase(own);
}

/// The end that the trace has is not the range's own.
void out_of_turn() {
  if (*runtime().recording == 0) return;
  runtime().account(static_cast<std::uint32_t>(outcome::clamped), "user_annotation", 1);
}

}  // namespace

void bind_ranges(nb::module_& module) {
  module.def("range_push", &push, "name"_a, "domain"_a = "opscope", "category"_a = "",
             "color"_a = 0, "payload"_a = nb::none(),
             "Begins an NVTX range of the calling thread.");
  module.def("range_pop", &pop, "domain"_a = "opscope",
             "Ends the thread's innermost range of a domain.");
  module.def(
      "range_start", &start, "name"_a, "domain"_a = "opscope", "category"_a = "", "color"_a = 0,
      "payload"_a = nb::none(),
      "Begins a process-wide NVTX range, which may end on another thread. Returns its handle.");
  module.def("range_out_of_turn", &out_of_turn,
             "Counts a range whose recorded end is another's in the ledger.");
  module.def("range_end", &end, "handle"_a, "domain"_a = "opscope", "Ends a process-wide range.");
}

}  // namespace opscope::python
