// SPDX-License-Identifier: Apache-2.0
//
// The NVTX injection library. NVTX calls InitializeInjectionNvtx2 once for each shared object that
// uses it, at that object's first NVTX call, when NVTX_INJECTION64_PATH names this library; each
// call fills the function tables of its object.
#include <nvtx3/nvToolsExt.h>

#include <mutex>
#include <string>
#include <string_view>

#include "collect/runtime_client.hpp"
#include "nvtx/names.hpp"
#include "nvtx/ranges.hpp"

namespace opscope::nvtx {
namespace {

constexpr std::uint32_t text_capacity = 1024;

/// Text of a registration as UTF-8, for the length of a call.
template <typename Character>
class utf8 {
 public:
  explicit utf8(const Character* text) noexcept : size_{copy_text(text, bytes_, text_capacity)} {}
  [[nodiscard]] std::string_view view() const noexcept { return {bytes_, size_}; }

 private:
  char bytes_[text_capacity];
  std::uint32_t size_;
};

template <typename Text>
void mark_in_default(const Text* text) noexcept {
  mark(nullptr, text);
}
template <typename Text>
nvtxRangeId_t start_in_default(const Text* text) noexcept {
  return start(nullptr, text);
}
template <typename Text>
int push_in_default(const Text* text) noexcept {
  return push(nullptr, text);
}
int pop_in_default() noexcept { return pop(nullptr); }
void end_in_default(nvtxRangeId_t id) noexcept { end(id); }
void end_in_domain(nvtxDomainHandle_t, nvtxRangeId_t id) noexcept { end(id); }

template <typename Character>
void name_category_in(nvtxDomainHandle_t where, std::uint32_t number,
                      const Character* name) noexcept {
  const utf8 text{name};
  domain_of(where).name_category(number,
                                 client::runtime()->intern(text.view().data(), text.view().size()));
}
template <typename Character>
void name_category(std::uint32_t number, const Character* name) noexcept {
  name_category_in(nullptr, number, name);
}

template <typename Character>
void name_thread(std::uint32_t os_id, const Character* name) noexcept try {
  const opscope_runtime& runtime = *client::runtime();
  if (runtime.name_thread == nullptr) return;
  runtime.name_thread(os_id, std::string{utf8{name}.view()}.c_str());
} catch (...) {
  return;  // no memory for a name: the thread keeps the one it has
}

template <typename Character>
nvtxDomainHandle_t create_domain(const Character* name) noexcept {
  return make_domain(utf8{name}.view());
}
template <typename Character>
nvtxStringHandle_t register_string(nvtxDomainHandle_t, const Character* text) noexcept {
  return make_string(utf8{text}.view());
}

/// One module's table of one shared object.
class function_table {
 public:
  function_table(const NvtxExportTableCallbacks& callbacks, NvtxCallbackModule module) noexcept {
    if (callbacks.GetModuleFunctionTable(module, &entries_, &size_) == 0) size_ = 0;
  }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }

  template <typename Function>
  void set(unsigned int callback, Function* function) const noexcept {
    if (callback < size_ && entries_[callback] != nullptr) {
      *entries_[callback] = reinterpret_cast<NvtxFunctionPointer>(function);
    }
  }

 private:
  NvtxFunctionTable entries_ = nullptr;
  unsigned int size_ = 0;
};

void fill_core(const function_table& core) noexcept {
  using attributes = nvtxEventAttributes_t;
  core.set(NVTX_CBID_CORE_MarkEx, mark_in_default<attributes>);
  core.set(NVTX_CBID_CORE_MarkA, mark_in_default<char>);
  core.set(NVTX_CBID_CORE_MarkW, mark_in_default<wchar_t>);
  core.set(NVTX_CBID_CORE_RangeStartEx, start_in_default<attributes>);
  core.set(NVTX_CBID_CORE_RangeStartA, start_in_default<char>);
  core.set(NVTX_CBID_CORE_RangeStartW, start_in_default<wchar_t>);
  core.set(NVTX_CBID_CORE_RangeEnd, end_in_default);
  core.set(NVTX_CBID_CORE_RangePushEx, push_in_default<attributes>);
  core.set(NVTX_CBID_CORE_RangePushA, push_in_default<char>);
  core.set(NVTX_CBID_CORE_RangePushW, push_in_default<wchar_t>);
  core.set(NVTX_CBID_CORE_RangePop, pop_in_default);
  core.set(NVTX_CBID_CORE_NameCategoryA, name_category<char>);
  core.set(NVTX_CBID_CORE_NameCategoryW, name_category<wchar_t>);
  core.set(NVTX_CBID_CORE_NameOsThreadA, name_thread<char>);
  core.set(NVTX_CBID_CORE_NameOsThreadW, name_thread<wchar_t>);
}

void fill_core2(const function_table& core2) noexcept {
  using attributes = nvtxEventAttributes_t;
  core2.set(NVTX_CBID_CORE2_DomainMarkEx, mark<attributes>);
  core2.set(NVTX_CBID_CORE2_DomainRangeStartEx, start<attributes>);
  core2.set(NVTX_CBID_CORE2_DomainRangeEnd, end_in_domain);
  core2.set(NVTX_CBID_CORE2_DomainRangePushEx, push<attributes>);
  core2.set(NVTX_CBID_CORE2_DomainRangePop, pop);
  core2.set(NVTX_CBID_CORE2_DomainNameCategoryA, name_category_in<char>);
  core2.set(NVTX_CBID_CORE2_DomainNameCategoryW, name_category_in<wchar_t>);
  core2.set(NVTX_CBID_CORE2_DomainRegisterStringA, register_string<char>);
  core2.set(NVTX_CBID_CORE2_DomainRegisterStringW, register_string<wchar_t>);
  core2.set(NVTX_CBID_CORE2_DomainCreateA, create_domain<char>);
  core2.set(NVTX_CBID_CORE2_DomainCreateW, create_domain<wchar_t>);
}

}  // namespace
}  // namespace opscope::nvtx

/// Called by NVTX. @return 1: attached; 0: NVTX goes on as without a tool.
extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(
    NvtxGetExportTableFunc_t get_table) {
  using namespace opscope;
  const opscope_runtime* runtime = client::runtime();
  if (runtime == nullptr || get_table == nullptr) return 0;
  const auto* callbacks =
      static_cast<const NvtxExportTableCallbacks*>(get_table(NVTX_ETID_CALLBACKS));
  if (callbacks == nullptr) return 0;
  const nvtx::function_table core{*callbacks, NVTX_CB_MODULE_CORE};
  const nvtx::function_table core2{*callbacks, NVTX_CB_MODULE_CORE2};
  if (core.empty() && core2.empty()) return 0;
  static std::once_flag registered;
  std::call_once(registered, [runtime] { runtime->register_layer(&nvtx::layer()); });
  nvtx::fill_core(core);
  nvtx::fill_core2(core2);
  return 1;
}

/// Whoever marks and sees this number grow knows that its NVTX calls arrive here.
extern "C" __attribute__((visibility("default"))) std::uint64_t opscope_nvtx_marks_received() {
  return opscope::nvtx::marks_received();
}
