// SPDX-License-Identifier: Apache-2.0
//
// What this machine can record, asked of the machine itself: the driver is opened, CUPTI is
// subscribed to and released, and the counters of the first GPU are taken and given back, since
// only that tells whether it is allowed. Each answer is one capability; one that fails leaves the
// ones that need it unavailable for the same reason.
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "collect/activity_source.hpp"
#include "cupti/counter_support.hpp"
#include "cupti/cupti_error.hpp"
#include "cupti/device_facts.hpp"
#include "cupti/driver.hpp"
#include "cupti/range_profiler.hpp"
#include "cupti/subscriber.hpp"
#include "cupti/touched.hpp"

namespace opscope::cupti {
namespace {

/// {"name", "available", "why", "fix"}; `why` says what is there when it is available.
nlohmann::json capability(std::string_view name, bool available, std::string_view why,
                          std::string_view fix = {}) {
  return {{"name", name}, {"available", available}, {"why", why}, {"fix", fix}};
}

/// Splits an error line "<what>: <why> (<fix>)" into the fields of a missing capability.
nlohmann::json missing(std::string_view name, std::string_view line) {
  const auto open = line.rfind(" (");
  if (open == std::string_view::npos || !line.ends_with(')')) {
    return capability(name, false, line);
  }
  return capability(name, false, line.substr(0, open),
                    line.substr(open + 2, line.size() - open - 3));
}

/// Runs `probe`, which returns what is there; its error becomes the reason why not.
nlohmann::json probe(std::string_view name, const std::function<std::string()>& probe) {
  try {
    return capability(name, true, probe());
  } catch (const std::exception& failure) {
    return missing(name, failure.what());
  }
}

std::string join_names(const std::vector<device_facts>& devices) {
  std::string names;
  for (const auto& device : devices) {
    names += (names.empty() ? "" : ", ") + device.name;
  }
  return names;
}

/// The primary context of the first GPU for the time of a probe.
class probe_context {
 public:
  explicit probe_context(const driver_api& driver) : driver_(driver) {
    driver_.check(driver_.device_get(&device_, 0), "cuDeviceGet");
    driver_.check(driver_.primary_context_retain(&context_, device_), "cuDevicePrimaryCtxRetain");
  }
  ~probe_context() { driver_.primary_context_release(device_); }
  probe_context(const probe_context&) = delete;
  probe_context& operator=(const probe_context&) = delete;

  [[nodiscard]] CUcontext context() const noexcept { return context_; }
  [[nodiscard]] CUdevice device() const noexcept { return device_; }

 private:
  const driver_api& driver_;
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
};

std::string take_counters(const driver_api& driver, const api& cupti) {
  initialize_counters(cupti);
  const probe_context probe{driver};
  const std::string chip = chip_name(cupti, probe.device());
  const auto host = make_one_pass_host(cupti, chip);
  const range_profiler profiler{cupti, driver, *host, probe.context(), 1};
  return chip + ", " + std::string{profiler.method()} + ", one pass";
}

std::string take_subscription(const api& cupti) {
  const std::string owner = subscription_owner(cupti);
  if (!owner.empty()) {
    throw cupti_error(CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED, "cuptiSubscribe_v2", owner);
  }
  return "CUPTI is free";
}

nlohmann::json nvtx_capability() {
  const char* injection = std::getenv("NVTX_INJECTION64_PATH");
  const std::string path = injection != nullptr ? injection : "";
  if (path.empty() || path.find("opscope") != std::string::npos) {
    return capability("nvtx", true,
                      path.empty() ? "NVTX_INJECTION64_PATH is free" : "injected: " + path);
  }
  return capability("nvtx", false, "NVTX_INJECTION64_PATH belongs to another tool: " + path,
                    "run without that tool, or unset NVTX_INJECTION64_PATH");
}

}  // namespace
}  // namespace opscope::cupti

namespace opscope::collect {

std::string describe_machine() {
  using namespace cupti;
  std::optional<driver_api> driver;
  std::optional<api> cupti;
  nlohmann::json device = nullptr;
  nlohmann::json list = nlohmann::json::array();

  list.push_back(probe("driver", [&] {
    driver = open_driver();
    int version = 0;
    driver->check(driver->get_version(&version), "cuDriverGetVersion");
    return "CUDA " + std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
  }));
  const auto need_driver = [&] {
    if (!driver) {
      throw opscope::error(list[0]["why"].get<std::string>() + " (" +
                           list[0]["fix"].get<std::string>() + ")");
    }
  };
  list.push_back(probe("cupti", [&] {
    cupti = open_api();
    return version_text(cupti->version) + ", " + cupti->library.path();
  }));
  const auto need_both = [&] {
    need_driver();
    if (!cupti) {
      throw opscope::error("libcupti is missing (pip install nvidia-cuda-cupti)");
    }
  };
  list.push_back(probe("gpu", [&] {
    need_driver();
    const auto devices = read_device_facts(*driver);
    device = device_document(*driver, devices, cupti ? cupti->version : 0);
    return join_names(devices);
  }));
  list.push_back(probe("activity", [&] {
    need_both();
    mark_touched();
    return take_subscription(*cupti) + "; kernels, copies, fills and API calls";
  }));
  list.push_back(probe("counters", [&] {
    need_both();
    mark_touched();
    return take_counters(*driver, *cupti);
  }));
  list.push_back(nvtx_capability());
  const nlohmann::json document{{"capabilities", std::move(list)}, {"device", std::move(device)}};
  return document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace opscope::collect
