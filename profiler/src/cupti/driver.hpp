// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda.h>

#include <optional>
#include <string_view>
#include <vector>

#include "cupti/shared_library.hpp"
#include "opscope/error.hpp"

namespace opscope::cupti {

/// A driver call that failed.
class driver_error : public opscope::error {
 public:
  driver_error(CUresult status, const std::string& message)
      : opscope::error(message), status_(status) {}
  [[nodiscard]] CUresult status() const noexcept { return status_; }

 private:
  CUresult status_;
};

/// The CUDA driver's functions that the collector needs, opened at run time: no package brings a
/// library to link against, and a machine without a driver must still run the program.
struct driver_api {
  shared_library library;

  CUresult (*init)(unsigned int) = nullptr;
  CUresult (*get_version)(int*) = nullptr;
  CUresult (*get_error_name)(CUresult, const char**) = nullptr;
  CUresult (*get_error_string)(CUresult, const char**) = nullptr;
  CUresult (*device_get_count)(int*) = nullptr;
  CUresult (*device_get)(CUdevice*, int) = nullptr;
  CUresult (*device_get_name)(char*, int, CUdevice) = nullptr;
  CUresult (*device_get_attribute)(int*, CUdevice_attribute, CUdevice) = nullptr;
  CUresult (*device_total_memory)(std::size_t*, CUdevice) = nullptr;
  CUresult (*primary_context_state)(CUdevice, unsigned int*, int*) = nullptr;
  CUresult (*primary_context_retain)(CUcontext*, CUdevice) = nullptr;
  CUresult (*primary_context_release)(CUdevice) = nullptr;
  CUresult (*context_get_current)(CUcontext*) = nullptr;
  CUresult (*context_get_device)(CUdevice*) = nullptr;
  CUresult (*context_push)(CUcontext) = nullptr;
  CUresult (*context_pop)(CUcontext*) = nullptr;
  CUresult (*context_synchronize)() = nullptr;

  /// @throws driver_error unless `status` is success.
  void check(CUresult status, std::string_view operation) const;
};

/// Opens the driver and initialises it.
/// @throws collect::no_gpu when there is no driver, or it finds none, and the remedy;
/// opscope::error when it is too old.
[[nodiscard]] driver_api open_driver();

/// Number of GPUs that the process may use.
[[nodiscard]] int device_count(const driver_api& driver);

/// The calling thread's current context; without one, the primary context of the first device that
/// has an active one (the runtime is in use there). Nothing is created.
[[nodiscard]] std::optional<CUcontext> context_in_use(const driver_api& driver) noexcept;

/// Every device whose primary context is active: those that the CUDA runtime uses.
[[nodiscard]] std::vector<CUdevice> active_devices(const driver_api& driver) noexcept;

/// The device of a context, -1 when the driver does not tell.
[[nodiscard]] CUdevice device_of(const driver_api& driver, CUcontext context) noexcept;

/// Waits for the work of the current context and of every active primary context; afterwards the
/// calling thread's context is what it was. Failures of the program's own work are not reported
/// here: the program sees them at its next call.
void synchronize_all(const driver_api& driver) noexcept;

/// Makes a context current for a scope, unless it is already.
class scoped_context {
 public:
  scoped_context(const driver_api& driver, CUcontext context) noexcept;
  ~scoped_context();
  scoped_context(const scoped_context&) = delete;
  scoped_context& operator=(const scoped_context&) = delete;

 private:
  const driver_api& driver_;
  bool pushed_ = false;
};

}  // namespace opscope::cupti
