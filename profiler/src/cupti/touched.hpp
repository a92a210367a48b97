// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace opscope::cupti {

/// Notes that this process has used CUPTI from here on: launches stay slower by its residue.
void mark_touched() noexcept;

/// Notes that CUPTI is out of the process again, and its residue gone.
void forget_touched() noexcept;

}  // namespace opscope::cupti
