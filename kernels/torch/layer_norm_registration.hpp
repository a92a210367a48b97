// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/library.h>

#include <vector>

namespace opscope::ops {

/// Registers the layer norm operators; they stay registered while `parts` lives.
void register_layer_norm(std::vector<torch::Library>& parts);

}  // namespace opscope::ops
