// SPDX-License-Identifier: Apache-2.0
//
// The port between the collector and whatever watches the GPU. `profiler/src/cupti/` implements it
// with CUPTI, tests with a fake, so nothing above this line knows CUPTI.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/ledger.hpp"
#include "model/records.hpp"
#include "opscope/error.hpp"

namespace opscope::collect {

/// Nothing is there that could be watched: no fault of the machine's, and the same for each
/// session.
class no_gpu : public error {
 public:
  using error::error;
};

/// Receives rows from a source's own thread. Implementations are thread-safe and noexcept; names
/// are copied before the call returns, so they may live in the source's buffers.
class activity_sink {
 public:
  virtual ~activity_sink() = default;

  /// Interns a name; the id is valid in the rows of this session.
  virtual string_id intern(std::string_view name) noexcept = 0;

  virtual void deliver(std::span<const api_call> rows) noexcept = 0;
  virtual void deliver(std::span<const kernel> rows) noexcept = 0;
  virtual void deliver(std::span<const memory_copy> rows) noexcept = 0;
  virtual void deliver(std::span<const memory_set> rows) noexcept = 0;
  virtual void deliver(std::span<const synchronization> rows) noexcept = 0;
  virtual void deliver(std::span<const overhead> rows) noexcept = 0;
  virtual void deliver(std::span<const counter_range> rows) noexcept = 0;
  virtual void deliver(std::span<const graph_node> rows) noexcept = 0;
  virtual void deliver(std::span<const external_correlation> rows) noexcept = 0;

  /// Adds to the session's ledger.
  virtual void account(outcome what, std::string_view record, std::uint64_t count) noexcept = 0;

  /// A fact about the session for its documents, as JSON: `device`, `cupti`, `counters`, `warning`.
  virtual void document(std::string_view name, std::string_view json) noexcept = 0;
};

struct activity_config {
  bool kernels = true;  ///< kernels, copies and fills
  bool api = true;      ///< launch, copy, fill, allocation, synchronise, event and graph calls
  bool synchronization = true;
  bool overhead = true;
  bool graph_nodes = true;  ///< which op created a node, by CUPTI's resource callbacks
  /// Ids that the program pushes with CUPTI itself: the oracle of a test, never in production.
  bool external_correlations = false;
  std::uint64_t buffer_bytes = std::uint64_t{64}
                               << 20U;  ///< limit of what CUPTI fills; then it drops
};

/// Watches the GPU for one session at a time. Not thread-safe: the session calls it.
class activity_source {
 public:
  virtual ~activity_source() = default;

  /// Begins delivering to `sink`, which outlives the session.
  /// @throws opscope::error naming what is missing and the remedy, no_gpu where nothing else is;
  /// the session then goes on without.
  virtual void start(const activity_config& config, activity_sink& sink) = 0;

  /// Delivers what is complete; called every few hundred milliseconds from the session's thread.
  virtual void flush() noexcept = 0;

  /// Waits for the device, delivers everything, and detaches.
  virtual void stop() noexcept = 0;
};

/// Reads hardware counters over ranges of the host's work. One range at a time in the process.
class counter_source {
 public:
  virtual ~counter_source() = default;

  /// @param capacity ranges held before they are decoded and the room is renewed (between ranges).
  /// @throws opscope::error naming what is missing (permission, support) and the remedy.
  virtual void start(std::uint32_t capacity, activity_sink& sink) = 0;

  /// Opens a range on the calling thread; false when another is open or the calling thread has no
  /// CUDA context yet (counted as skipped). `name` is copied.
  virtual bool begin(std::string_view name, std::uint32_t cell,
                     std::uint32_t contender) noexcept = 0;

  /// Closes the range that this thread opened.
  virtual void end() noexcept = 0;

  /// Decodes and delivers what is left, and gives the counters back.
  virtual void stop() noexcept = 0;
};

/// Defined by the implementation that the core is linked with: profiler/src/cupti, a stand-in that
/// says "built without CUDA", or a fake in tests.
std::unique_ptr<activity_source> make_activity_source();
std::unique_ptr<counter_source> make_counter_source();

/// What this machine can record and the fix where it cannot, as the JSON object of `doctor`.
std::string describe_machine();

/// Has this process used CUPTI before (opscope or not, as far as can be told)?
bool activity_touched() noexcept;

/// Takes CUPTI out of the process, and with it what it adds to every launch; a later session brings
/// it back. Not while anything of this interface is started.
/// @throws opscope::error naming the tool that holds CUPTI, or what failed.
void detach_activity();

}  // namespace opscope::collect
