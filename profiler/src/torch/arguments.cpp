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

}  // namespace

bool has_plain_sizes(const at::Tensor& tensor) {
  const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  return !impl.has_symbolic_sizes_strides() && !impl.is_python_dispatch() && !tensor.is_nested();
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
