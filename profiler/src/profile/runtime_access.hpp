// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "collect/runtime.h"

namespace opscope {

/// The process's collecting runtime.
/// @throws opscope::error when the core that lies beside this library cannot be loaded.
[[nodiscard]] const opscope_runtime& require_runtime();

/// Points NVTX at our injection library, unless a tool is named already or the library is not
/// there. Must come before the process's first NVTX call to have an effect; done when this library
/// loads.
void offer_nvtx_injection() noexcept;

/// Is libtorch in the process?
[[nodiscard]] bool torch_is_loaded() noexcept;

/// Loads the op observer when libtorch is in the process and the observer lies beside this library.
/// @return why ops cannot be recorded, empty when they can or there is no libtorch.
[[nodiscard]] std::string load_op_observer();

}  // namespace opscope
