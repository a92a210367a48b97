// SPDX-License-Identifier: Apache-2.0
//
// What an op's arguments and results say about it: shapes and types as PyTorch's own profiler
// writes them, and the bytes that it must at least read and write. No allocation: the arguments of
// a thread's open ops stand in one fixed arena, which is used like a stack.
#pragma once

#include <ATen/core/ivalue.h>

#include <array>
#include <cstdint>

#include "collect/runtime.h"

namespace opscope::observer {

/// Distinct memory seen while one op's bytes are added up.
class seen_memory {
 public:
  void clear() noexcept { ++stamp_; }
  /// False when the key was seen since clear(). What finds no room counts as new.
  bool insert(std::uint64_t key) noexcept;

 private:
  struct slot {
    std::uint64_t key = 0;
    std::uint64_t stamp = 0;
  };
  static constexpr std::size_t slots = 1024;
  std::array<slot, slots> table_{};
  std::uint64_t stamp_ = 1;
};

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

/// Bytes of tensors, elements x element size.
struct byte_count {
  std::uint64_t bytes = 0;
  bool known = true;  ///< false: a tensor has no plain size (sparse, nested, symbolic, a subclass)
};

/// A tensor that an op was given.
struct given_tensor {
  const void* tensor;
  const void* memory;     ///< its storage
  std::uint32_t version;  ///< changes when the memory is written
  bool versioned;         ///< false for what inference mode made
};

/// The first tensors that an op was given, lists aside.
struct given_tensors {
  std::array<given_tensor, 4> items;
  std::uint32_t count;
};

/// What became of an op's arguments.
enum class reading : std::uint8_t {
  whole,
  without_some_sizes,  ///< of tensors whose sizes cannot be read (nested, symbolic, a subclass)
  no_room,             ///< the arena is as before
};

/// Appends the arguments to the arena. May throw what ATen throws.
reading read_arguments(c10::ArrayRef<c10::IValue> values, argument_arena& arena);

/// Adds up the tensors among `values`, lists included; each memory once.
/// May throw what ATen throws.
byte_count count_bytes(c10::ArrayRef<c10::IValue> values, seen_memory& seen);

/// Notes the tensors among `values` as they are before the op.
void note_given(c10::ArrayRef<c10::IValue> values, given_tensors& given);

/// Whether an op only looked at its memory anew: it has tensors as results, and each is a view of a
/// given tensor, or one itself, that was not written meanwhile. May throw what ATen throws.
bool moved_nothing(c10::ArrayRef<c10::IValue> results, const given_tensors& given);

/// Fills the table of type names; once, before any other call.
void prepare_type_names();

}  // namespace opscope::observer
