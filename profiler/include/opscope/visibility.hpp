// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Marks what opscope's shared libraries export; everything else stays inside them.
#define OPSCOPE_PUBLIC __attribute__((visibility("default")))
