// SPDX-License-Identifier: Apache-2.0
//
// Streams whose work is being captured into a graph right now, process-wide: the activity source
// sees captures begin and end, and both sources must leave them alone. A wait for the device, or a
// counter range, would invalidate the program's capture.
#pragma once

#include <cuda.h>

namespace opscope::cupti {

/// A stream began to capture. Told twice (runtime and driver), it counts once.
void note_capture_begun(CUstream stream) noexcept;

/// A stream's capture ended, successful or not. Unknown streams are ignored.
void note_capture_ended(CUstream stream) noexcept;

/// Nobody watches any more: what is known is forgotten.
void forget_captures() noexcept;

/// Is any stream known to be capturing? Captures that began before the session are not known.
[[nodiscard]] bool capture_in_progress() noexcept;

}  // namespace opscope::cupti
