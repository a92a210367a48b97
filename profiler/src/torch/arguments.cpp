// SPDX-License-Identifier: Apache-2.0
#include "torch/arguments.hpp"

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

#include <algorithm>
#include <cstring>

namespace opscope::observer {
namespace {

constexpr std::size_t type_count = static_cast<std::size_t>(c10::ScalarType::NumOptions);
using type_name = std::array<char, 48>;
std::array<type_name, type_count> type_names;

const char* name_of(c10::ScalarType type) noexcept {
  const auto index = static_cast<std::size_t>(type);
  return index < type_count ? type_names[index].data() : "";
}

/// Sizes can be read without running anybody's code. Tensor subclasses answer with Python, symbolic
/// and nested ones throw.
bool has_plain_sizes(const at::Tensor& tensor) {
  const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  return !impl.has_symbolic_sizes_strides() && !impl.is_python_dispatch() && !tensor.is_nested();
}

reading appended(bool done) noexcept { return done ? reading::whole : reading::no_room; }

reading append_tensor(const at::Tensor& tensor, bool list_item, argument_arena& arena) {
  if (!tensor.defined()) return appended(arena.append(nullptr, 0, list_item, ""));
  const char* type = name_of(tensor.scalar_type());
  if (!has_plain_sizes(tensor)) {
    const bool done = arena.append(nullptr, 0, list_item, type);
    return done ? reading::without_some_sizes : reading::no_room;
  }
  const at::IntArrayRef sizes = tensor.sizes();
  return appended(arena.append(sizes.data(), sizes.size(), list_item, type));
}

bool is_scalar_list(const c10::IValue& value) {
  if (!value.isList()) return false;
  return value.isIntList() || value.isDoubleList() || value.isBoolList() || value.isSymIntList();
}

reading append_value(const c10::IValue& value, argument_arena& arena) {
  if (value.isTensor()) return append_tensor(value.toTensor(), false, arena);
  if (value.isTensorList()) {
    reading worst = appended(arena.append(nullptr, 0, false, "TensorList"));
    for (const c10::IValue& item : value.toListRef()) {
      worst = std::max(worst, append_tensor(item.toTensor(), true, arena));
      if (worst == reading::no_room) break;
    }
    return worst;
  }
  if (value.isScalar()) return appended(arena.append(nullptr, 0, false, "Scalar"));
  return appended(arena.append(nullptr, 0, false, is_scalar_list(value) ? "ScalarList" : ""));
}

std::uint64_t mix(std::uint64_t value) noexcept {
  value ^= value >> 33U;
  value *= 0xff51afd7ed558ccdULL;
  return value ^ (value >> 29U);
}

void add_tensor(const at::Tensor& tensor, seen_memory& seen, byte_count& sum) {
  if (!tensor.defined()) return;
  if (!has_plain_sizes(tensor) || tensor.layout() != c10::kStrided) {
    sum.known = false;
    return;
  }
  const auto elements = static_cast<std::uint64_t>(tensor.numel());
  auto key = reinterpret_cast<std::uintptr_t>(tensor.unsafeGetTensorImpl());
  if (tensor.has_storage()) {
    key = reinterpret_cast<std::uintptr_t>(tensor.storage().unsafeGetStorageImpl());
  }
  const auto offset = static_cast<std::uint64_t>(tensor.storage_offset());
  if (seen.insert(mix(key) ^ mix(offset * 2 + 1) ^ mix(elements << 20U))) {
    sum.bytes += elements * tensor.dtype().itemsize();
  }
}

void add_value(const c10::IValue& value, seen_memory& seen, byte_count& sum) {
  if (value.isTensor()) {
    add_tensor(value.toTensor(), seen, sum);
  } else if (value.isList()) {
    for (const c10::IValue& item : value.toListRef()) {
      if (!item.isTensor() && !item.isNone()) break;  // lists are of one type
      if (item.isTensor()) add_tensor(item.toTensor(), seen, sum);
    }
  }
}

const c10::StorageImpl* memory_of(const at::Tensor& tensor) {
  return tensor.has_storage() ? tensor.storage().unsafeGetStorageImpl() : nullptr;
}

/// A new tensor over given memory is a view; a given tensor itself was written if its version is
/// another one, or not known.
bool shows_unwritten(const at::Tensor& result, const given_tensors& given) {
  if (!result.defined() || !has_plain_sizes(result)) return false;
  const c10::TensorImpl* tensor = result.unsafeGetTensorImpl();
  const auto* memory = memory_of(result);
  const auto end = given.items.begin() + given.count;
  const auto same = std::find_if(
      given.items.begin(), end, [tensor](const given_tensor& one) { return one.tensor == tensor; });
  if (same == end) {
    return memory != nullptr && std::any_of(given.items.begin(), end, [&](const given_tensor& one) {
             return one.memory == memory;
           });
  }
  const auto& now = tensor->version_counter();
  return same->versioned && now.enabled() && now.current_version() == same->version;
}

}  // namespace

bool seen_memory::insert(std::uint64_t key) noexcept {
  constexpr std::size_t probes = 16;
  for (std::size_t probe = 0; probe < probes; ++probe) {
    slot& item = table_[(key + probe) % slots];
    if (item.stamp != stamp_) {
      item = {key, stamp_};
      return true;
    }
    if (item.key == key) return false;
  }
  return true;
}

bool argument_arena::append(const std::int64_t* sizes, std::size_t rank, bool list_item,
                            const char* type) noexcept {
  if (used_.arguments == arguments_.size() || used_.sizes + rank > sizes_.size()) return false;
  opscope_argument& made = arguments_[used_.arguments++];
  made = {nullptr, static_cast<std::uint32_t>(rank), list_item ? 1U : 0U, type};
  if (sizes != nullptr) {
    made.sizes = sizes_.data() + used_.sizes;
    std::copy_n(sizes, rank, sizes_.data() + used_.sizes);
  }
  used_.sizes += static_cast<std::uint32_t>(rank);
  return true;
}

reading read_arguments(c10::ArrayRef<c10::IValue> values, argument_arena& arena) {
  const argument_arena::mark before = arena.position();
  reading worst = reading::whole;
  for (const c10::IValue& value : values) {
    worst = std::max(worst, append_value(value, arena));
    if (worst != reading::no_room) continue;
    arena.reset(before);
    break;
  }
  return worst;
}

byte_count count_bytes(c10::ArrayRef<c10::IValue> values, seen_memory& seen) {
  byte_count sum;
  seen.clear();
  for (const c10::IValue& value : values) add_value(value, seen, sum);
  return sum;
}

void note_given(c10::ArrayRef<c10::IValue> values, given_tensors& given) {
  given.count = 0;
  for (const c10::IValue& value : values) {
    if (!value.isTensor() || given.count == given.items.size()) continue;
    const at::Tensor& tensor = value.toTensor();
    if (!tensor.defined() || !has_plain_sizes(tensor)) continue;
    const c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
    const auto& version = impl->version_counter();
    const bool versioned = version.enabled();
    given.items[given.count++] = {impl, memory_of(tensor),
                                  versioned ? version.current_version() : 0, versioned};
  }
}

bool moved_nothing(c10::ArrayRef<c10::IValue> results, const given_tensors& given) {
  bool any = false;
  for (const c10::IValue& value : results) {
    if (value.isTensor()) {
      if (!shows_unwritten(value.toTensor(), given)) return false;
      any = true;
    } else if (value.isTensorList()) {
      for (const c10::IValue& item : value.toListRef()) {
        if (!shows_unwritten(item.toTensor(), given)) return false;
        any = true;
      }
    }
  }
  return any;
}

void prepare_type_names() {
  for (std::size_t index = 0; index < type_count; ++index) {
    const auto type = static_cast<c10::ScalarType>(index);
    if (type == c10::ScalarType::Undefined) continue;
    const auto name = c10::scalarTypeToTypeMeta(type).name();
    const std::size_t size = std::min(name.size(), type_names[index].size() - 1);
    std::memcpy(type_names[index].data(), name.data(), size);
  }
}

}  // namespace opscope::observer
