// SPDX-License-Identifier: Apache-2.0
//
// Shapes and types of an op's arguments, as PyTorch's own profiler writes them. No allocation: the
// arguments of a thread's open ops stand in one fixed arena, which is used like a stack.
#pragma once

#include <ATen/core/ivalue.h>

#include <array>
#include <cstdint>

#include "collect/runtime.h"

namespace opscope::observer {

/// Arguments of a thread's open ops.
class argument_arena {
 public:
  struct mark {
    std::uint32_t arguments = 0;
    std::uint32_t sizes = 0;
  };

  [[nodiscard]] mark position() const noexcept { return used_; }
  void reset(mark to) noexcept { used_ = to; }
  [[nodiscard]] const opscope_argument* at(std::uint32_t index) const noexcept {
    return &arguments_[index];
  }

  /// Appends an argument; false when there is no room. `sizes` may be nullptr.
  bool append(const std::int64_t* sizes, std::size_t rank, bool list_item,
              const char* type) noexcept;

 private:
  std::array<opscope_argument, 2048> arguments_;
  std::array<std::int64_t, 8192> sizes_;
  mark used_;
};

/// What became of an op's arguments.
enum class reading : std::uint8_t {
  whole,
  without_some_sizes,  ///< of tensors whose sizes cannot be read (nested, symbolic, a subclass)
  no_room,             ///< the arena is as before
};

/// Appends the arguments to the arena. May throw what ATen throws.
reading read_arguments(c10::ArrayRef<c10::IValue> values, argument_arena& arena);

/// Sizes can be read without running anybody's code. Tensor subclasses answer with Python, symbolic
/// and nested ones throw.
[[nodiscard]] bool has_plain_sizes(const at::Tensor& tensor);

/// Fills the table of type names; once, before any other call.
void prepare_type_names();

}  // namespace opscope::observer
