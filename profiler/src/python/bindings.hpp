// SPDX-License-Identifier: Apache-2.0
//
// The parts of the Python module opscope._core, one function a file.
#pragma once

#include <nanobind/nanobind.h>

#include <optional>
#include <string>

#include "collect/runtime.h"

namespace opscope::python {

/// The collecting runtime. @throws opscope::error when it cannot be loaded.
[[nodiscard]] const opscope_runtime& runtime();

/// Does opscope's own library receive NVTX in this process?
[[nodiscard]] bool injection_is_ours();

/// Why ranges that others emit are not recorded, if it can be told: another tool receives them, or
/// torch made its first NVTX call before opscope was there. Calls NVTX once, through torch.
[[nodiscard]] std::optional<std::string> unseen_ranges();

/// Sessions, marks, samples, counter ranges, the machine.
void bind_session(nanobind::module_& module);
/// NVTX ranges.
void bind_ranges(nanobind::module_& module);
/// Summaries, verification, receipts, exports of captures.
void bind_analysis(nanobind::module_& module);

}  // namespace opscope::python
