// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include "opscope/visibility.hpp"

namespace opscope {

/// How a range is shown, in Nsight Systems as in our own trace.
struct range_options {
  std::string_view domain = "opscope";
  std::string_view category = {};  ///< empty: none
  std::uint32_t color = 0;         ///< 0xAARRGGBB, 0: the viewer's choice
  /// A number that goes with the range, such as an element count.
  std::variant<std::monostate, std::uint64_t, std::int64_t, double> payload = {};
};

/// A name registered with NVTX once, for ranges on hot paths: `static const registered_name
/// name{"gelu"};` Lives as long as the program, like the domain that it belongs to.
class OPSCOPE_PUBLIC registered_name {
 public:
  explicit registered_name(std::string_view name, std::string_view domain = "opscope");

 private:
  friend class scoped_range;
  void* domain_ = nullptr;
  void* handle_ = nullptr;
};

/// An NVTX range from construction to destruction, on the thread that constructs it. Ranges of a
/// thread nest; destroy them in reverse order. A plain name is looked up under a lock; where that
/// matters, use a registered_name.
class OPSCOPE_PUBLIC scoped_range {
 public:
  explicit scoped_range(std::string_view name, const range_options& options = {}) noexcept;

  /// `options.domain` is ignored: a registered name has its domain.
  explicit scoped_range(const registered_name& name, const range_options& options = {}) noexcept;

  ~scoped_range();
  scoped_range(const scoped_range&) = delete;
  scoped_range& operator=(const scoped_range&) = delete;

 private:
  void* domain_ = nullptr;
  bool open_ = false;
};

static_assert(!std::is_copy_constructible_v<scoped_range> &&
              !std::is_move_constructible_v<scoped_range>);

/// Calls `function(arguments...)` inside a range and returns what it returns.
template <typename Function, typename... Arguments>
decltype(auto) annotate(std::string_view name, Function&& function, Arguments&&... arguments) {
  const scoped_range range{name};
  return std::invoke(std::forward<Function>(function), std::forward<Arguments>(arguments)...);
}

}  // namespace opscope
