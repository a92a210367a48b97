// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cupti/driver.hpp"

namespace opscope::cupti {

/// What is said of a GPU beside its numbers.
struct device_facts {
  int ordinal = 0;
  std::string name;
  int compute_major = 0;
  int compute_minor = 0;
  int multiprocessors = 0;
  std::uint64_t memory_bytes = 0;
  std::uint64_t l2_bytes = 0;
  int memory_clock_khz = 0;
  int memory_bus_bits = 0;
  int warp_size = 0;
  int max_threads_per_block = 0;
  int max_threads_per_multiprocessor = 0;
  int registers_per_block = 0;
  int registers_per_multiprocessor = 0;
  int shared_bytes_per_block = 0;
  int shared_bytes_per_block_opt_in = 0;
  int shared_bytes_per_multiprocessor = 0;
};

/// Facts of every GPU that the process may use. Creates no context.
/// @throws driver_error
[[nodiscard]] std::vector<device_facts> read_device_facts(const driver_api& driver);

/// The capture's `device` document: versions and devices in this project's names.
[[nodiscard]] nlohmann::json device_document(const driver_api& driver,
                                             const std::vector<device_facts>& devices,
                                             std::uint32_t cupti_version);

/// `deviceProperties` of a Kineto trace, in Kineto's field names.
[[nodiscard]] nlohmann::json kineto_properties(const std::vector<device_facts>& devices);

}  // namespace opscope::cupti
