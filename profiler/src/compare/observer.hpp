// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "collect/runtime.h"

namespace opscope::comparison {

/// Loads the op observer that lies beside this library; where it cannot be, warns and goes on.
void load_observer(const opscope_runtime& runtime);

}  // namespace opscope::comparison
