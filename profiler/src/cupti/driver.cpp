// SPDX-License-Identifier: Apache-2.0
#include "cupti/driver.hpp"

#include <string>

#include "collect/activity_source.hpp"

namespace opscope::cupti {
namespace {

bool bind(driver_api& table) {
  const auto& lib = table.library;
  bool ok = lib.bind(table.init, "cuInit");
  ok &= lib.bind(table.get_version, "cuDriverGetVersion");
  ok &= lib.bind(table.get_error_name, "cuGetErrorName");
  ok &= lib.bind(table.get_error_string, "cuGetErrorString");
  ok &= lib.bind(table.device_get_count, "cuDeviceGetCount");
  ok &= lib.bind(table.device_get, "cuDeviceGet");
  ok &= lib.bind(table.device_get_name, "cuDeviceGetName");
  ok &= lib.bind(table.device_get_attribute, "cuDeviceGetAttribute");
  ok &= lib.bind(table.device_total_memory, "cuDeviceTotalMem_v2");
  ok &= lib.bind(table.primary_context_state, "cuDevicePrimaryCtxGetState");
  ok &= lib.bind(table.primary_context_retain, "cuDevicePrimaryCtxRetain");
  ok &= lib.bind(table.primary_context_release, "cuDevicePrimaryCtxRelease_v2");
  ok &= lib.bind(table.context_get_current, "cuCtxGetCurrent");
  ok &= lib.bind(table.context_get_device, "cuCtxGetDevice");
  ok &= lib.bind(table.context_push, "cuCtxPushCurrent_v2");
  ok &= lib.bind(table.context_pop, "cuCtxPopCurrent_v2");
  ok &= lib.bind(table.context_synchronize, "cuCtxSynchronize");
  return ok;
}

/// The primary context of a device, only when it is active; the reference is given back at once,
/// since whoever made it active holds one of their own.
std::optional<CUcontext> active_primary(const driver_api& driver, CUdevice device) noexcept {
  unsigned int flags = 0;
  int active = 0;
  CUcontext context = nullptr;
  if (driver.primary_context_state(device, &flags, &active) != CUDA_SUCCESS || active == 0 ||
      driver.primary_context_retain(&context, device) != CUDA_SUCCESS) {
    return std::nullopt;
  }
  driver.primary_context_release(device);
  return context;
}

}  // namespace

void driver_api::check(CUresult status, std::string_view operation) const {
  if (status == CUDA_SUCCESS) {
    return;
  }
  const char* symbol = nullptr;
  const char* meaning = nullptr;
  get_error_name(status, &symbol);
  get_error_string(status, &meaning);
  std::string line{operation};
  line += ": " + std::string{symbol != nullptr ? symbol : std::to_string(status)};
  line += ", " + std::string{meaning != nullptr ? meaning : "the driver refused the call"};
  line += " (check the NVIDIA driver with `nvidia-smi`)";
  throw driver_error(status, line);
}

driver_api open_driver() {
  driver_api table;
  table.library = shared_library::open("libcuda.so.1");
  if (!table.library) {
    throw collect::no_gpu(
        "open the NVIDIA driver: libcuda.so.1 was not found (install the driver, or start the "
        "container with --gpus all)");
  }
  if (!bind(table)) {
    throw opscope::error("open the NVIDIA driver: " + table.library.path() +
                         " lacks functions of CUDA 13 (install driver 580 or later)");
  }
  const CUresult status = table.init(0);
  if (status == CUDA_ERROR_NO_DEVICE) {
    throw collect::no_gpu(
        "find a GPU: the driver sees none (check CUDA_VISIBLE_DEVICES and `nvidia-smi`)");
  }
  table.check(status, "cuInit");
  return table;
}

int device_count(const driver_api& driver) {
  int count = 0;
  driver.check(driver.device_get_count(&count), "cuDeviceGetCount");
  return count;
}

std::vector<CUdevice> active_devices(const driver_api& driver) noexcept {
  std::vector<CUdevice> devices;
  int count = 0;
  if (driver.device_get_count(&count) != CUDA_SUCCESS) {
    return devices;
  }
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    CUdevice device = 0;
    unsigned int flags = 0;
    int active = 0;
    if (driver.device_get(&device, ordinal) == CUDA_SUCCESS &&
        driver.primary_context_state(device, &flags, &active) == CUDA_SUCCESS && active != 0) {
      devices.push_back(device);
    }
  }
  return devices;
}

std::optional<CUcontext> context_in_use(const driver_api& driver) noexcept {
  CUcontext current = nullptr;
  if (driver.context_get_current(&current) == CUDA_SUCCESS && current != nullptr) {
    return current;
  }
  for (const CUdevice device : active_devices(driver)) {
    if (const auto primary = active_primary(driver, device)) {
      return primary;
    }
  }
  return std::nullopt;
}

CUdevice device_of(const driver_api& driver, CUcontext context) noexcept {
  const scoped_context scope{driver, context};
  CUdevice device = -1;
  return driver.context_get_device(&device) == CUDA_SUCCESS ? device : -1;
}

void synchronize_all(const driver_api& driver) noexcept {
  CUcontext current = nullptr;
  if (driver.context_get_current(&current) == CUDA_SUCCESS && current != nullptr) {
    driver.context_synchronize();
  }
  for (const CUdevice device : active_devices(driver)) {
    const auto primary = active_primary(driver, device);
    if (primary && *primary != current) {
      const scoped_context scope{driver, *primary};
      driver.context_synchronize();
    }
  }
}

scoped_context::scoped_context(const driver_api& driver, CUcontext context) noexcept
    : driver_(driver) {
  CUcontext current = nullptr;
  if (driver.context_get_current(&current) == CUDA_SUCCESS && current == context) {
    return;
  }
  pushed_ = driver.context_push(context) == CUDA_SUCCESS;
}

scoped_context::~scoped_context() {
  if (pushed_) {
    CUcontext popped = nullptr;
    driver_.context_pop(&popped);
  }
}

}  // namespace opscope::cupti
