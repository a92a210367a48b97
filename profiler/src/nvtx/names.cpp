// SPDX-License-Identifier: Apache-2.0
#include "nvtx/names.hpp"

#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "collect/runtime_client.hpp"

namespace opscope::nvtx {
namespace {

constexpr std::string_view ellipsis = "\xE2\x80\xA6";

/// UTF-8 of one code point. @return its length.
std::uint32_t encode(std::uint32_t point, char* out) noexcept {
  if (point > 0x10FFFF || (point >= 0xD800 && point < 0xE000)) point = 0xFFFD;
  const auto byte = [&](std::uint32_t lead, std::uint32_t shift, std::uint32_t mask) {
    return static_cast<char>(lead | ((point >> shift) & mask));
  };
  if (point < 0x80) {
    out[0] = static_cast<char>(point);
    return 1;
  }
  if (point < 0x800) {
    out[0] = byte(0xC0, 6, 0x1F);
    out[1] = byte(0x80, 0, 0x3F);
    return 2;
  }
  if (point < 0x10000) {
    out[0] = byte(0xE0, 12, 0x0F);
    out[1] = byte(0x80, 6, 0x3F);
    out[2] = byte(0x80, 0, 0x3F);
    return 3;
  }
  out[0] = byte(0xF0, 18, 0x07);
  out[1] = byte(0x80, 12, 0x3F);
  out[2] = byte(0x80, 6, 0x3F);
  out[3] = byte(0x80, 0, 0x3F);
  return 4;
}

/// Named objects made once and kept for the process's life. Cold: registration only.
template <typename Object>
class named_objects {
 public:
  Object* get(std::string_view text) noexcept try {
    const std::scoped_lock lock{mutex_};
    if (const auto known = objects_.find(text); known != objects_.end()) return known->second.get();
    auto made = std::make_unique<Object>(client::runtime()->intern(text.data(), text.size()));
    return objects_.emplace(std::string{text}, std::move(made)).first->second.get();
  } catch (...) {
    return nullptr;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<Object>, std::less<>> objects_;
};

struct registered_string {
  explicit registered_string(std::uint32_t interned) noexcept : name{interned} {}
  std::uint32_t name;
};

// Never destroyed: other threads may emit ranges while the process ends.
named_objects<domain>& domains() {
  static auto* all = new named_objects<domain>;
  return *all;
}
named_objects<registered_string>& strings() {
  static auto* all = new named_objects<registered_string>;
  return *all;
}

}  // namespace

std::uint32_t copy_text(const char* text, char* out, std::uint32_t capacity) noexcept {
  if (text == nullptr) return 0;
  const std::size_t size = strnlen(text, capacity + 1);
  if (size <= capacity) {
    std::memcpy(out, text, size);
    return static_cast<std::uint32_t>(size);
  }
  std::size_t keep = capacity - ellipsis.size();
  while (keep > 0 && (static_cast<unsigned char>(text[keep]) & 0xC0) == 0x80) --keep;
  std::memcpy(out, text, keep);
  std::memcpy(out + keep, ellipsis.data(), ellipsis.size());
  return static_cast<std::uint32_t>(keep + ellipsis.size());
}

std::uint32_t copy_text(const wchar_t* text, char* out, std::uint32_t capacity) noexcept {
  if (text == nullptr) return 0;
  constexpr std::uint32_t longest = 4;
  std::uint32_t size = 0;
  for (; *text != L'\0'; ++text) {
    if (size + longest + ellipsis.size() > capacity) {
      std::memcpy(out + size, ellipsis.data(), ellipsis.size());
      return size + static_cast<std::uint32_t>(ellipsis.size());
    }
    size += encode(static_cast<std::uint32_t>(*text), out + size);
  }
  return size;
}

std::uint32_t domain::category(std::uint32_t number) const noexcept {
  const std::uint64_t key = std::uint64_t{number} + 1;
  for (std::size_t probe = 0; probe < slots; ++probe) {
    const named& slot = categories_[(number + probe) % slots];
    const std::uint64_t found = slot.number.load(std::memory_order_acquire);
    if (found == key) return slot.name.load(std::memory_order_acquire);
    if (found == 0) return 0;
  }
  return 0;
}

void domain::name_category(std::uint32_t number, std::uint32_t name) noexcept {
  const std::uint64_t key = std::uint64_t{number} + 1;
  for (std::size_t probe = 0; probe < slots; ++probe) {
    named& slot = categories_[(number + probe) % slots];
    std::uint64_t found = 0;
    if (slot.number.compare_exchange_strong(found, key, std::memory_order_acq_rel) ||
        found == key) {
      slot.name.store(name, std::memory_order_release);
      return;
    }
  }
}

domain& domain_of(nvtxDomainHandle_t handle) noexcept {
  static auto* unnamed = new domain{0};
  return handle == nullptr ? *unnamed : *reinterpret_cast<domain*>(handle);
}

nvtxDomainHandle_t make_domain(std::string_view name) noexcept {
  return reinterpret_cast<nvtxDomainHandle_t>(domains().get(name));
}

nvtxStringHandle_t make_string(std::string_view text) noexcept {
  return reinterpret_cast<nvtxStringHandle_t>(strings().get(text));
}

std::uint32_t string_name(nvtxStringHandle_t handle) noexcept {
  return handle == nullptr ? 0 : reinterpret_cast<registered_string*>(handle)->name;
}

}  // namespace opscope::nvtx
