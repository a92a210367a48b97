// SPDX-License-Identifier: Apache-2.0
//
// The parts of the Python module opscope._core, one function a file.
#pragma once

#include <nanobind/nanobind.h>

#include "collect/runtime.h"

namespace opscope::python {

/// The collecting runtime. @throws opscope::error when it cannot be loaded.
[[nodiscard]] const opscope_runtime& runtime();

/// Sessions, marks, samples, counter ranges, the machine.
void bind_session(nanobind::module_& module);
/// NVTX ranges.
void bind_ranges(nanobind::module_& module);
/// Summaries, verification, receipts, exports of captures.
void bind_analysis(nanobind::module_& module);

}  // namespace opscope::python
