// SPDX-License-Identifier: Apache-2.0
#include "torch/op_bytes.hpp"

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/Layout.h>

#include <algorithm>
#include <span>
#include <string_view>

#include "torch/arguments.hpp"

namespace opscope::observer {
namespace {

std::uint64_t mix(std::uint64_t value) noexcept {
  value ^= value >> 33U;
  value *= 0xff51afd7ed558ccdULL;
  return value ^ (value >> 29U);
}

const void* memory_of(const at::Tensor& tensor) {
  return tensor.has_storage() ? tensor.storage().unsafeGetStorageImpl() : nullptr;
}

bool is_countable(const at::Tensor& tensor) {
  return has_plain_sizes(tensor) && tensor.layout() == c10::kStrided;
}

std::uint64_t bytes_of(const at::Tensor& tensor) {
  return static_cast<std::uint64_t>(tensor.numel()) * tensor.dtype().itemsize();
}

void add_tensor(const at::Tensor& tensor, seen_memory& seen, byte_count& sum) {
  if (!tensor.defined()) return;
  if (!is_countable(tensor)) {
    sum.known = false;
    return;
  }
  const void* memory = memory_of(tensor);
  const auto key =
      reinterpret_cast<std::uintptr_t>(memory != nullptr ? memory : tensor.unsafeGetTensorImpl());
  const auto offset = static_cast<std::uint64_t>(tensor.storage_offset());
  const auto elements = static_cast<std::uint64_t>(tensor.numel());
  if (seen.insert(mix(key) ^ mix(offset * 2 + 1) ^ mix(elements << 20U))) {
    sum.bytes += bytes_of(tensor);
  }
}

/// Calls `visit` for each tensor of a list; `value` may be anything.
template <typename Visit>
void for_each_listed(const c10::IValue& value, Visit&& visit) {
  if (!value.isList()) return;
  for (const c10::IValue& item : value.toListRef()) {
    if (!item.isTensor() && !item.isNone()) return;  // lists are of one type
    if (item.isTensor()) visit(item.toTensor());
  }
}

bool is_tensor_type(const c10::TypePtr& type) {
  return type->kind() == c10::TypeKind::TensorType ||
         (type->kind() == c10::TypeKind::ListType &&
          type->expectRef<c10::ListType>().getElementType()->kind() == c10::TypeKind::TensorType);
}

schema_facts read_schema(const c10::FunctionSchema& schema) {
  schema_facts facts;
  for (std::size_t index = 0; index < schema.arguments().size(); ++index) {
    const c10::Argument& argument = schema.arguments()[index];
    if (argument.alias_info() == nullptr || !argument.alias_info()->isWrite()) continue;
    if (index < 64) facts.written |= std::uint64_t{1} << index;
    facts.in_place = facts.in_place || !argument.kwarg_only();
  }
  for (const c10::Argument& result : schema.returns())
    facts.returns_tensor = facts.returns_tensor || is_tensor_type(result.type());
  const auto op = c10::Dispatcher::singleton().findOp(schema.operator_name());
  const std::string_view name = schema.name();
  facts.moves_nothing = name.starts_with("aten::empty") || name.starts_with("aten::new_empty") ||
                        (op && op->hasTag(at::Tag::inplace_view));
  return facts;
}

void note_given(const at::Tensor& tensor, bool written, given_memory& given) {
  if (!tensor.defined()) return;
  const bool countable = is_countable(tensor);
  if (written && !countable) given.read.known = false;
  if (given.count == given.tensors.size()) {
    if (written) given.read.known = false;  // whether it is returned would not be seen
    return;
  }
  given.tensors[given.count++] = {tensor.unsafeGetTensorImpl(),
                                  has_plain_sizes(tensor) ? memory_of(tensor) : nullptr,
                                  countable ? bytes_of(tensor) : 0, written};
}

/// Whether `result` is memory that the op was given and did not write.
bool only_shows(const at::Tensor& result, given_memory& given) {
  const std::span<given_tensor> all{given.tensors.data(), given.count};
  const auto same = std::ranges::find(all, result.unsafeGetTensorImpl(), &given_tensor::tensor);
  if (same != all.end()) {
    const bool written = same->written;
    if (written) same->bytes = 0;  // counted as a result, in the size that it has now
    return !written;
  }
  const void* memory = has_plain_sizes(result) ? memory_of(result) : nullptr;
  return memory != nullptr && std::ranges::find(all, memory, &given_tensor::memory) != all.end();
}

}  // namespace

const schema_facts* schema_cache::of(const at::RecordFunction& function, std::uint32_t epoch) {
  const char* name = function.name();
  schema_facts& slot = known_[mix(reinterpret_cast<std::uintptr_t>(name)) % known_.size()];
  if (slot.name == name && slot.epoch == epoch) return &slot;
  const auto schema = function.operator_schema();
  if (!schema) return nullptr;
  slot = read_schema(*schema);
  slot.name = name;
  slot.epoch = epoch;
  return &slot;
}

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

void take_stock(c10::ArrayRef<c10::IValue> arguments, const schema_facts& facts, seen_memory& seen,
                given_memory& given) {
  given.facts = facts;
  given.read = {};
  given.written_in_lists = 0;
  given.count = 0;
  seen.clear();
  for (std::size_t index = 0; index < arguments.size(); ++index) {
    const c10::IValue& value = arguments[index];
    const bool written = index < 64 && (facts.written >> index & 1U) != 0;
    if (value.isTensor()) {
      note_given(value.toTensor(), written, given);
      if (!written) add_tensor(value.toTensor(), seen, given.read);
      continue;
    }
    for_each_listed(value, [&](const at::Tensor& tensor) {
      if (!written) return add_tensor(tensor, seen, given.read);
      if (!tensor.defined()) return;
      if (is_countable(tensor)) {
        given.written_in_lists += bytes_of(tensor);
      } else {
        given.read.known = false;
      }
    });
  }
}

moved_bytes count_moved(c10::ArrayRef<c10::IValue> results, given_memory& given,
                        seen_memory& seen) {
  if (!given.read.known || (given.facts.returns_tensor && results.empty())) return {};
  if (given.facts.moves_nothing) return {.known = true};
  byte_count written{.bytes = given.written_in_lists};
  std::size_t shown = 0;
  bool all_shown = given.facts.written == 0;
  seen.clear();
  const auto take = [&](const at::Tensor& result) {
    if (!result.defined()) return;
    if (only_shows(result, given)) {
      ++shown;
    } else {
      all_shown = false;
      add_tensor(result, seen, written);
    }
  };
  for (const c10::IValue& value : results) {
    if (value.isTensor()) {
      take(value.toTensor());
    } else {
      for_each_listed(value, take);
    }
  }
  for (std::uint32_t index = 0; index < given.count; ++index)
    if (given.tensors[index].written) written.bytes += given.tensors[index].bytes;
  const bool reads_nothing = all_shown && shown > 0;
  return {reads_nothing ? 0 : given.read.bytes, written.bytes, written.known};
}

}  // namespace opscope::observer
