// SPDX-License-Identifier: Apache-2.0
//
// What a comparison needs of the device that its contenders run on. Nothing here knows torch or
// CUDA, so the order of the passes is tested with a fake.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace opscope::comparison {

/// A contender bound to the inputs of one cell. An empty `call` is not measured.
struct callable {
  std::function<void()> call;     ///< calls it and keeps the result
  std::function<void()> release;  ///< lets go of the kept result: no part of the measured time
  std::function<void()> traced;   ///< as `call`, the way that the timeline shows it; empty: `call`
};

/// A captured graph of several calls.
class graph {
 public:
  virtual ~graph() = default;
  /// Device time of one call inside a replay.
  virtual std::chrono::nanoseconds replay() = 0;
};

/// Measures device time. Everything works on the calling thread's current stream.
class timing_device {
 public:
  virtual ~timing_device() = default;

  [[nodiscard]] virtual std::string name() const = 0;

  /// False: there is no device clock (a CPU), only host time is taken.
  [[nodiscard]] virtual bool has_events() const noexcept = 0;

  /// Waits for the device. Nothing to do on a CPU.
  virtual void synchronize() = 0;

  /// Device time of one call, from `calls` back-to-back calls between two events.
  /// @param lead how long the host needs to enqueue them: the device is kept busy meanwhile, so
  /// that it never waits for the host.
  virtual std::chrono::nanoseconds batched(const callable& contender, std::uint32_t calls,
                                           std::chrono::nanoseconds lead) = 0;

  /// Device time of one call after twice the L2 cache's size was written.
  virtual std::chrono::nanoseconds cold(const callable& contender,
                                        std::chrono::nanoseconds lead) = 0;

  /// Captures `calls` calls into a graph.
  /// @throws std::exception when the contender cannot be captured.
  virtual std::unique_ptr<graph> capture(const callable& contender, std::uint32_t calls) = 0;

  /// Bytes per second of a device-to-device copy that reads and writes `moved_bytes` in all.
  virtual double copy_bandwidth(std::uint64_t moved_bytes) = 0;

  /// Leaves nothing of a contender in L2, and no line there that has yet to be written to DRAM.
  virtual void evict() = 0;
};

/// Host time only.
std::unique_ptr<timing_device> make_cpu_device();

/// @param index CUDA device index.
/// @throws opscope::error when this build has no CUDA.
std::unique_ptr<timing_device> make_cuda_device(int index);

}  // namespace opscope::comparison
