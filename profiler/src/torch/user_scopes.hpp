// SPDX-License-Identifier: Apache-2.0
//
// The ranges that a program names through PyTorch: torch.profiler.record_function,
// RECORD_USER_SCOPE, and PyTorch's own of that kind (an optimizer's step, a data loader's next).
#pragma once

#include "collect/runtime.h"

namespace opscope::observer::user_scopes {

/// Registers the callback, disabled; once. May throw what ATen throws.
void attach(const opscope_runtime& runtime);

/// Begins and ends a recording period. May throw what ATen throws.
void start();
void stop();

}  // namespace opscope::observer::user_scopes
