// SPDX-License-Identifier: Apache-2.0
#include "cupti/device_facts.hpp"

#include <array>
#include <nlohmann/json.hpp>

#include "cupti/api.hpp"

namespace opscope::cupti {
namespace {

device_facts read_one(const driver_api& driver, int ordinal) {
  CUdevice device = 0;
  driver.check(driver.device_get(&device, ordinal), "cuDeviceGet");
  const auto attribute = [&](CUdevice_attribute which) {
    int value = 0;
    driver.check(driver.device_get_attribute(&value, which, device), "cuDeviceGetAttribute");
    return value;
  };
  device_facts facts;
  facts.ordinal = ordinal;
  std::array<char, 256> name{};
  driver.check(driver.device_get_name(name.data(), static_cast<int>(name.size()), device),
               "cuDeviceGetName");
  facts.name = name.data();
  std::size_t memory = 0;
  driver.check(driver.device_total_memory(&memory, device), "cuDeviceTotalMem");
  facts.memory_bytes = memory;
  facts.compute_major = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  facts.compute_minor = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  facts.multiprocessors = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  facts.l2_bytes = static_cast<std::uint64_t>(attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE));
  facts.memory_clock_khz = attribute(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
  facts.memory_bus_bits = attribute(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
  facts.warp_size = attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE);
  facts.max_threads_per_block = attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  facts.max_threads_per_multiprocessor =
      attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
  facts.registers_per_block = attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
  facts.registers_per_multiprocessor =
      attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
  facts.shared_bytes_per_block = attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
  facts.shared_bytes_per_block_opt_in =
      attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  facts.shared_bytes_per_multiprocessor =
      attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
  return facts;
}

/// "13.0" of the number 13000, as the driver and the runtime give their versions.
std::string cuda_version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

/// Version of the CUDA runtime that the process has loaded as a library; null where it has none.
nlohmann::json runtime_version() {
  for (const auto& path : loaded_paths("libcudart.so")) {
    int (*get_version)(int*) = nullptr;
    const auto library = shared_library::loaded(path);
    int version = 0;
    if (library.bind(get_version, "cudaRuntimeGetVersion") && get_version(&version) == 0) {
      return cuda_version_text(version);
    }
  }
  return nullptr;
}

}  // namespace

std::vector<device_facts> read_device_facts(const driver_api& driver) {
  std::vector<device_facts> devices;
  const int count = device_count(driver);
  devices.reserve(static_cast<std::size_t>(count));
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    devices.push_back(read_one(driver, ordinal));
  }
  return devices;
}

nlohmann::json device_document(const driver_api& driver, const std::vector<device_facts>& devices,
                               std::uint32_t cupti_version) {
  int driver_version = 0;
  driver.check(driver.get_version(&driver_version), "cuDriverGetVersion");
  nlohmann::json list = nlohmann::json::array();
  for (const auto& device : devices) {
    list.push_back({{"ordinal", device.ordinal},
                    {"name", device.name},
                    {"compute_capability", std::to_string(device.compute_major) + "." +
                                               std::to_string(device.compute_minor)},
                    {"multiprocessors", device.multiprocessors},
                    {"memory_bytes", device.memory_bytes},
                    {"l2_bytes", device.l2_bytes},
                    {"memory_clock_khz", device.memory_clock_khz},
                    {"memory_bus_bits", device.memory_bus_bits}});
  }
  return {{"cuda_driver", cuda_version_text(driver_version)},
          {"cuda_runtime", runtime_version()},
          {"cupti", version_text(cupti_version)},
          {"devices", std::move(list)}};
}

nlohmann::json kineto_properties(const std::vector<device_facts>& devices) {
  nlohmann::json list = nlohmann::json::array();
  for (const auto& device : devices) {
    list.push_back({{"id", device.ordinal},
                    {"name", device.name},
                    {"totalGlobalMem", device.memory_bytes},
                    {"computeMajor", device.compute_major},
                    {"computeMinor", device.compute_minor},
                    {"maxThreadsPerBlock", device.max_threads_per_block},
                    {"maxThreadsPerMultiprocessor", device.max_threads_per_multiprocessor},
                    {"regsPerBlock", device.registers_per_block},
                    {"warpSize", device.warp_size},
                    {"sharedMemPerBlock", device.shared_bytes_per_block},
                    {"numSms", device.multiprocessors},
                    {"regsPerMultiprocessor", device.registers_per_multiprocessor},
                    {"sharedMemPerBlockOptin", device.shared_bytes_per_block_opt_in},
                    {"sharedMemPerMultiprocessor", device.shared_bytes_per_multiprocessor}});
  }
  return list;
}

}  // namespace opscope::cupti
