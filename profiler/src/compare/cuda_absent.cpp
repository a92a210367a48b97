// SPDX-License-Identifier: Apache-2.0
#include "compare/timing_device.hpp"
#include "opscope/error.hpp"

namespace opscope::comparison {

std::unique_ptr<timing_device> make_cuda_device(int /*index*/) {
  throw opscope::error(
      "compare: this opscope was built without CUDA (build with OPSCOPE_WITH_CUDA)");
}

}  // namespace opscope::comparison
