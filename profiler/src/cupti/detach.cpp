// SPDX-License-Identifier: Apache-2.0
//
// After its first use CUPTI stays between the program and the driver, and every launch is slower.
// cuptiFinalize takes it out again. Other threads may be inside CUDA calls, so it is called where
// NVIDIA's documentation has it called: at the exit of a traced driver call, which here is one of
// our own.
#include <atomic>
#include <optional>

#include "collect/activity_source.hpp"
#include "cupti/api.hpp"
#include "cupti/cupti_error.hpp"
#include "cupti/driver.hpp"
#include "cupti/subscriber.hpp"
#include "cupti/touched.hpp"

namespace opscope::cupti {
namespace {

struct finalizing {
  const api& cupti;
  std::atomic<bool> begun{false};
  CUptiResult status = CUPTI_ERROR_NOT_READY;
};

/// Another thread may make the same call at the same time: the first one finalizes.
void finalize_at_exit(void* data, CUpti_CallbackDomain /*domain*/, CUpti_CallbackId /*id*/,
                      const void* call) noexcept {
  auto& request = *static_cast<finalizing*>(data);
  if (static_cast<const CUpti_CallbackData*>(call)->callbackSite == CUPTI_API_EXIT &&
      !request.begun.exchange(true)) {
    request.status = request.cupti.finalize();
  }
}

void finalize() {
  const driver_api driver = open_driver();
  const api cupti = open_api();
  // Static: a callback of another thread may still be on its way when this function returns.
  static std::optional<finalizing> request;
  request.emplace(cupti);
  CUpti_SubscriberHandle const handle = subscribe(cupti, &finalize_at_exit, &*request);
  check(cupti.enable_callback(1, handle, CUPTI_CB_DOMAIN_DRIVER_API,
                              CUPTI_DRIVER_TRACE_CBID_cuDriverGetVersion),
        "cuptiEnableCallback(cuDriverGetVersion)");
  int version = 0;
  driver.get_version(&version);
  check(request->status, "cuptiFinalize");
}

}  // namespace
}  // namespace opscope::cupti

namespace opscope::collect {

void detach_activity() {
  cupti::finalize();
  cupti::forget_touched();
}

}  // namespace opscope::collect
