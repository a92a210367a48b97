// SPDX-License-Identifier: Apache-2.0
//
// The names that NVTX refers to by handle or number: domains, registered strings, categories. All
// of them live as long as the process, because open ranges point to them.
#pragma once

#include <nvtx3/nvToolsExt.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "collect/runtime.h"

namespace opscope::nvtx {

/// Writes `text` as UTF-8 without a final zero, ended by an ellipsis where it does not fit.
/// @return bytes written; 0 for nullptr.
std::uint32_t copy_text(const char* text, char* out, std::uint32_t capacity) noexcept;
/// The same for wide text; what is no Unicode scalar value becomes U+FFFD.
std::uint32_t copy_text(const wchar_t* text, char* out, std::uint32_t capacity) noexcept;

/// An NVTX domain. Categories are looked up without a lock; a domain holds up to 256 named ones.
class domain {
 public:
  explicit domain(std::uint32_t name) noexcept : name_{name} {}

  /// Interned name; 0 for the default domain.
  [[nodiscard]] std::uint32_t name() const noexcept { return name_; }
  /// Interned name of a category; 0: it has none.
  [[nodiscard]] std::uint32_t category(std::uint32_t number) const noexcept;
  void name_category(std::uint32_t number, std::uint32_t name) noexcept;

 private:
  static constexpr std::size_t slots = 256;
  struct named {
    std::atomic<std::uint64_t> number{0};  ///< number + 1; 0: free
    std::atomic<std::uint32_t> name{0};
  };
  std::uint32_t name_;
  std::array<named, slots> categories_{};
};

/// The domain behind a handle; nullptr is NVTX's default domain.
[[nodiscard]] domain& domain_of(nvtxDomainHandle_t handle) noexcept;
/// A domain by name, made at first sight. nullptr when memory is short.
[[nodiscard]] nvtxDomainHandle_t make_domain(std::string_view name) noexcept;

/// A registered string's handle, made at first sight. nullptr when memory is short.
[[nodiscard]] nvtxStringHandle_t make_string(std::string_view text) noexcept;
/// Interned name behind a registered string; 0 for nullptr.
[[nodiscard]] std::uint32_t string_name(nvtxStringHandle_t handle) noexcept;

}  // namespace opscope::nvtx
