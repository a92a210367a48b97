// SPDX-License-Identifier: Apache-2.0
//
// The GPU's timeline through CUPTI's activity records.
//
// start: driver, CUPTI, subscription (a refusal names the owner), attributes and buffer callbacks,
//   then the kinds: attributes that come after a kind is enabled are not honoured.
// running: CUPTI fills buffers on any thread; full ones queue in the buffer_exchange; a thread of
//   this source decodes them and hands rows to the sink. Nothing is decoded in CUPTI's callbacks.
// flush: complete buffers only. CUPTI withholds a buffer that holds an incomplete record.
// stop: API kinds off (our own waiting must not show up), wait for the device, forced flush, other
//   kinds off, subscription ended, decoding thread joined. Whatever fails there is counted or said,
//   never thrown.
//
// Kernels, copies and fills are enabled together: kernel-only sessions leak device buffers with
// graphs. KIND_KERNEL is never used since it serialises kernels. No timestamp callback is
// registered: with one, CUPTI 13.0 gives kernels timestamps of zero.
#include "collect/activity_source.hpp"

#include <array>
#include <exception>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "collect/quiet_thread.hpp"
#include "cupti/buffer_exchange.hpp"
#include "cupti/captures.hpp"
#include "cupti/clock.hpp"
#include "cupti/cupti_error.hpp"
#include "cupti/decode.hpp"
#include "cupti/device_facts.hpp"
#include "cupti/driver.hpp"
#include "cupti/subscriber.hpp"
#include "cupti/touched.hpp"
#include "cupti/traced_functions.hpp"

namespace opscope::cupti {
namespace {

constexpr std::array gpu_kinds{CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
                               CUPTI_ACTIVITY_KIND_MEMCPY2, CUPTI_ACTIVITY_KIND_MEMSET};

std::string_view kind_name(CUpti_ActivityKind kind) noexcept {
  switch (kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      return "CONCURRENT_KERNEL";
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      return "MEMCPY";
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
      return "MEMCPY2";
    case CUPTI_ACTIVITY_KIND_MEMSET:
      return "MEMSET";
    case CUPTI_ACTIVITY_KIND_RUNTIME:
      return "RUNTIME";
    case CUPTI_ACTIVITY_KIND_DRIVER:
      return "DRIVER";
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
      return "SYNCHRONIZATION";
    case CUPTI_ACTIVITY_KIND_OVERHEAD:
      return "OVERHEAD";
    case CUPTI_ACTIVITY_KIND_INTERNAL_LAUNCH_API:
      return "INTERNAL_LAUNCH_API";
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION:
      return "EXTERNAL_CORRELATION";
    default:
      return "other";
  }
}

/// Strict JSON, whatever bytes a path or a device name holds.
std::string text_of(const nlohmann::json& document) {
  return document.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// One session: from a successful start to the end of stop.
class activity_session {
 public:
  activity_session(const collect::activity_config& config, collect::activity_sink& sink)
      : sink_(sink),
        driver_(open_driver()),
        cupti_(open_api()),
        subscription_((mark_touched(), cupti_)) {
    try {
      set_up(config);
      enable(config);
      describe();
    } catch (...) {
      shut_down();
      throw;
    }
  }
  ~activity_session() { shut_down(); }
  activity_session(const activity_session&) = delete;
  activity_session& operator=(const activity_session&) = delete;

  void flush() noexcept {
    cupti_.activity_flush_all(0);
    count_dropped();
    exchange_.wait_until_read(longest_flush);
  }

 private:
  /// A flush waits for the decoding thread so that its caller writes what was complete; a busy
  /// machine must not hold that caller up.
  static constexpr std::chrono::milliseconds longest_flush{200};

  void set_up(const collect::activity_config& config) {
    check(cupti_.set_thread_id_type(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM), "cuptiSetThreadIdType");
    std::uint8_t zeroed = 1;
    std::size_t size = sizeof(zeroed);
    check(cupti_.activity_set_attribute(CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER, &size,
                                        &zeroed),
          "cuptiActivitySetAttribute(ZEROED_OUT_ACTIVITY_BUFFER)");
    exchange_.register_with(cupti_);
    exchange_.open(config.buffer_bytes);
    decoder_ = collect::quiet_thread("opscope-gpu", [this] { decode_until_closed(); });
  }

  void enable(const collect::activity_config& config) {
    subscription_.watch_captures();
    if (config.graph_nodes) {
      subscription_.watch_graph_nodes(sink_);
    }
    if (config.kernels) {
      for (const auto kind : gpu_kinds) {
        enable_kind(kind);
      }
    }
    if (config.overhead) {
      enable_kind(CUPTI_ACTIVITY_KIND_OVERHEAD);
    }
    if (config.external_correlations) {
      enable_kind(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION);
    }
    if (config.synchronization) {
      check(cupti_.activity_enable_all_sync_records(0), "cuptiActivityEnableAllSyncRecords");
      enable_kind(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION);
    }
    if (config.api) {
      enable_kind(CUPTI_ACTIVITY_KIND_INTERNAL_LAUNCH_API);
      enable_functions();
    }
  }

  void enable_kind(CUpti_ActivityKind kind) {
    check(cupti_.activity_enable(kind),
          "cuptiActivityEnable(" + std::string{kind_name(kind)} + ")");
    enabled_.push_back(kind);
  }

  /// The kinds as a whole, then every function but the chosen ones off. The other way round, chosen
  /// functions switched on one by one, CUPTI 13.0.1 records nothing in a process whose CUDA context
  /// is older than the session (measured on an H200). A function that cannot be switched off is
  /// recorded too.
  void enable_functions() {
    enable_kind(CUPTI_ACTIVITY_KIND_RUNTIME);
    enable_kind(CUPTI_ACTIVITY_KIND_DRIVER);
    for (const auto id : untraced_functions(cupti_, CUPTI_CB_DOMAIN_RUNTIME_API)) {
      cupti_.activity_enable_runtime_api(id, 0);
    }
    for (const auto id : untraced_functions(cupti_, CUPTI_CB_DOMAIN_DRIVER_API)) {
      cupti_.activity_enable_driver_api(id, 0);
    }
  }

  void warn(const std::string& line) {
    sink_.document("warning", text_of(nlohmann::json{{"text", line}}));
  }

  void describe() {
    const auto devices = read_device_facts(driver_);
    sink_.document("device", text_of(device_document(driver_, devices, cupti_.version)));
    sink_.document("deviceProperties", text_of(kineto_properties(devices)));
    check_clock();
  }

  /// CUPTI's clock can be asked only while a context exists, so the check may have to wait for
  /// stop.
  void check_clock() {
    if (clock_checked_ || !context_in_use(driver_)) {
      return;
    }
    const auto offset = clock_offset(cupti_);
    if (!offset) {
      return;
    }
    clock_checked_ = true;
    const bool same = std::chrono::abs(*offset) <= largest_clock_offset;
    const nlohmann::json facts{{"version", version_text(cupti_.version)},
                               {"library", cupti_.library.path()},
                               {"clock", same ? "CLOCK_REALTIME" : "other"},
                               {"clock_offset_ns", offset->count()}};
    sink_.document("cupti", text_of(facts));
    if (!same) {
      warn("CUPTI's clock is " + std::to_string(offset->count()) +
           " ns away from CLOCK_REALTIME: GPU rows are not in line with host rows (run on Linux "
           "outside WSL)");
    }
  }

  void decode_until_closed() noexcept {
    name_cache names{cupti_, sink_};
    batch rows;
    while (const auto filled = exchange_.take()) {
      try {
        decode_buffer(cupti_, filled->data, filled->valid_bytes, names, rows);
      } catch (const std::exception&) {  // no memory for the rows: what was decoded is kept
        sink_.account(outcome::dropped, "gpu_activity", 1);
      }
      exchange_.recycle(filled->data);
      deliver(rows, sink_);
    }
  }

  /// Holds no lock of ours: CUPTI takes one that its callbacks hold while they call us.
  void count_dropped() noexcept {
    std::size_t dropped = 0;
    if (cupti_.activity_get_num_dropped_records(nullptr, 0, &dropped) == CUPTI_SUCCESS &&
        dropped > 0) {
      sink_.account(outcome::dropped, "gpu_activity", dropped);
    }
  }

  void shut_down() noexcept {
    switch_host_records_off();
    if (capture_in_progress()) {
      // Waiting would invalidate the program's capture; kernels still running are not delivered.
      sink_.document("warning", R"({"text": "the session ended during a CUDA graph capture, so it )"
                                R"(did not wait for the GPU: the last kernels may be missing"})");
    } else {
      synchronize_all(driver_);
    }
    try {
      check_clock();
    } catch (const std::exception&) {
      sink_.account(outcome::dropped, "document", 1);
    }
    cupti_.activity_flush_all(1);
    for (const auto kind : enabled_) {
      cupti_.activity_disable(kind);
    }
    cupti_.activity_flush_all(1);
    count_dropped();
    subscription_.close();
    exchange_.close();
    if (decoder_.joinable()) {
      decoder_.join();
    }
  }

  void switch_host_records_off() noexcept {
    for (const auto kind : {CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_DRIVER,
                            CUPTI_ACTIVITY_KIND_SYNCHRONIZATION}) {
      if (std::erase(enabled_, kind) > 0) {
        cupti_.activity_disable(kind);
      }
    }
  }

  collect::activity_sink& sink_;
  driver_api driver_;
  api cupti_;
  subscriber subscription_;
  buffer_exchange& exchange_ = buffer_exchange::instance();
  std::vector<CUpti_ActivityKind> enabled_;
  bool clock_checked_ = false;
  std::thread decoder_;
};

class cupti_activity_source final : public collect::activity_source {
 public:
  void start(const collect::activity_config& config, collect::activity_sink& sink) override {
    session_.reset();
    session_.emplace(config, sink);
  }

  void flush() noexcept override {
    if (session_) {
      session_->flush();
    }
  }

  void stop() noexcept override { session_.reset(); }

 private:
  std::optional<activity_session> session_;
};

}  // namespace
}  // namespace opscope::cupti

namespace opscope::collect {

std::unique_ptr<activity_source> make_activity_source() {
  return std::make_unique<cupti::cupti_activity_source>();
}

}  // namespace opscope::collect
