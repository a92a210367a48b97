// SPDX-License-Identifier: Apache-2.0
//
// The ideal bytes of an op: its tensor arguments read once, its results written once, each memory
// once. What the schema marks as written counts as written only: a keyword-only one (`out`) is not
// read, and of one that is written in place the schema does not say, so that the bytes are a lower
// bound then. A result that is a view of an argument, or an argument that was not written, moves
// nothing; nor does an op that only allocates (`aten::empty` and its like write nothing, which no
// schema says) or only changes how a tensor looks at its memory (tag inplace_view).
#pragma once

#include <ATen/core/ivalue.h>
#include <ATen/record_function.h>

#include <array>
#include <cstdint>

namespace opscope::observer {

/// What a schema says about the memory of an operator's arguments.
struct schema_facts {
  const char* name = nullptr;   ///< address of the schema's name, which tells schemas apart
  std::uint32_t epoch = 0;      ///< recording period: a schema may be replaced in between
  std::uint64_t written = 0;    ///< bit i: argument i is written
  bool in_place = false;        ///< one of those may be read, too
  bool moves_nothing = false;   ///< allocates only, or changes metadata only
  bool returns_tensor = false;  ///< unless it raises
};

/// Facts about the operators that a thread calls: reading a schema allocates.
class schema_cache {
 public:
  /// nullptr: the function is no operator (a node of autograd). May throw what ATen throws.
  const schema_facts* of(const at::RecordFunction& function, std::uint32_t epoch);

 private:
  std::array<schema_facts, 256> known_{};
};

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

/// Bytes of tensors, elements x element size.
struct byte_count {
  std::uint64_t bytes = 0;
  bool known = true;  ///< false: a tensor has no plain size (sparse, nested, symbolic, a subclass)
};

/// A tensor that an op was given.
struct given_tensor {
  const void* tensor;
  const void* memory;   ///< its storage
  std::uint64_t bytes;  ///< as it was given
  bool written;
};

/// What an op was given, from its start to its end.
struct given_memory {
  schema_facts facts;
  byte_count read;
  std::uint64_t written_in_lists;
  std::uint32_t count;
  std::array<given_tensor, 8> tensors;  ///< the first, lists aside
};

/// Takes stock of the arguments of an op that begins. May throw what ATen throws.
void take_stock(c10::ArrayRef<c10::IValue> arguments, const schema_facts& facts, seen_memory& seen,
                given_memory& given);

/// Bytes of an op that ends.
struct moved_bytes {
  std::uint64_t read = 0;
  std::uint64_t written = 0;
  bool known = false;
};

/// May throw what ATen throws.
[[nodiscard]] moved_bytes count_moved(c10::ArrayRef<c10::IValue> results, given_memory& given,
                                      seen_memory& seen);

}  // namespace opscope::observer
