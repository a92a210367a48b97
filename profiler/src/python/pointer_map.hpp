// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace opscope::python {

/// A hash map from addresses to small values: one probe, as a rule, for each call of a function.
template <typename Value>
class pointer_map {
 public:
  [[nodiscard]] const Value* find(const void* key) const noexcept {
    if (slots_.empty()) return nullptr;
    for (std::size_t at = hash(key);; ++at) {
      const slot& item = slots_[at & mask()];
      if (item.key == key) return &item.value;
      if (item.key == nullptr) return nullptr;
    }
  }

  /// @throws std::bad_alloc
  void insert(const void* key, const Value& value) {
    if (2 * (size_ + 1) > slots_.size()) grow();
    place(key, value);
  }

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  void clear() noexcept {
    slots_.clear();
    size_ = 0;
  }

 private:
  struct slot {
    const void* key = nullptr;
    Value value{};
  };

  [[nodiscard]] std::size_t mask() const noexcept { return slots_.size() - 1; }
  static std::size_t hash(const void* key) noexcept {
    return (reinterpret_cast<std::uintptr_t>(key) >> 4U) * 0x9E3779B97F4A7C15ULL >> 20U;
  }

  void place(const void* key, const Value& value) noexcept {
    for (std::size_t at = hash(key);; ++at) {
      slot& item = slots_[at & mask()];
      if (item.key == nullptr) ++size_;
      if (item.key == nullptr || item.key == key) {
        item = {key, value};
        return;
      }
    }
  }

  void grow() {
    std::vector<slot> before(slots_.empty() ? 1024 : 2 * slots_.size());
    before.swap(slots_);
    size_ = 0;
    for (const slot& item : before) {
      if (item.key != nullptr) place(item.key, item.value);
    }
  }

  std::vector<slot> slots_;
  std::size_t size_ = 0;
};

}  // namespace opscope::python
