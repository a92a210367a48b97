// SPDX-License-Identifier: Apache-2.0
#include "parallel_tasks.hpp"

#include <ATen/TensorIterator.h>

#include "arguments.hpp"

namespace opscope::ops {

void for_each_task(std::int64_t count,
                   c10::function_ref<void(std::int64_t first, std::int64_t last)> work) {
  if (count < 2) {
    if (count == 1) work(0, 1);
    return;
  }
  // A tensor with a byte for each task: the place of a byte names its task, nothing is written.
  const at::Tensor tasks = allocate({count}, at::TensorOptions().dtype(at::kByte));
  const char* const base = static_cast<const char*>(tasks.const_data_ptr());
  at::TensorIteratorConfig config;
  config.set_check_mem_overlap(false).resize_outputs(false).check_all_same_dtype(false);
  config.add_output(tasks);
  config.build().for_each(
      [&](char** data, const std::int64_t*, std::int64_t columns, std::int64_t rows) {
        const std::int64_t first = data[0] - base;
        work(first, first + columns * rows);
      },
      1);
}

}  // namespace opscope::ops
