// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace opscope::analyse {

/// Which template arguments a shortened name keeps. `telling` are those that name a functor or a
/// type from outside `std`; where there is none, all are.
enum class kept_arguments : std::uint8_t { all, telling };

/// A demangled name without return type, parameters and namespaces, within its template arguments
/// too; the n-th lambda of a function is `function#n`. A name of another form comes back as it is.
///
/// `void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>,
/// std::array<char*, 1ul> >(int, ...)` is `vectorized_elementwise_kernel<4, FillFunctor<float>,
/// array<char*, 1ul>>`; its telling form `vectorized_elementwise_kernel<FillFunctor>`.
[[nodiscard]] std::string short_kernel_name(std::string_view name,
                                            kept_arguments kept = kept_arguments::all);

/// A label of at most `width` columns (0: no limit) for each of `names`, which all differ. Labels
/// differ too: names whose short forms are alike show the place where they part, or get a number.
[[nodiscard]] std::vector<std::string> kernel_labels(const std::vector<std::string>& names,
                                                     std::size_t width);

}  // namespace opscope::analyse
