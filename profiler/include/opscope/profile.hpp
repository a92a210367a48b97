// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <type_traits>

#include "opscope/error.hpp"
#include "opscope/export.hpp"
#include "opscope/visibility.hpp"

namespace opscope {

/// Where DRAM bytes come from.
enum class dram_mode : std::uint8_t {
  off,
  ops,  ///< exact bytes of every op, about 40 us each: a pass for bytes, not for times
};

/// What a profile records. Every member has a default.
struct profile_options {
  /// The capture; written as `<output>.partial` until it is complete. Empty:
  /// `opscope-%h-%p.opscope`.
  /// `%h` is the host's name, `%p` the process id, `%r` the rank (RANK of the environment, or 0).
  std::filesystem::path output = {};
  bool shapes = false;              ///< input shapes and types of every op
  dram_mode dram = dram_mode::off;  ///< DRAM bytes by hardware counters
  bool strict = false;              ///< refuse to start when something asked for cannot be recorded
  bool force = false;               ///< replace an existing output
  std::uint64_t memory_bytes = 0;   ///< limit of the buffers, 0: 256 MiB
  bool wait_when_full = false;      ///< wait for the disk instead of dropping and counting records
  bool gpu = true;                  ///< kernels, copies, fills and the API calls that start them
  bool ops = true;                  ///< dispatcher ops, when libtorch is in the process
  bool nvtx = true;                 ///< NVTX ranges, whoever emits them
};

/// Records the program while it lives:
///
///     opscope::profile profile{{.output = "step.opscope", .shapes = true}};
///     auto y = module.forward(inputs);
///     profile.stop();
///
/// One profile at a time in a process. What the machine lacks is one warning and a partial profile.
/// Members may be called from any thread, one at a time.
class OPSCOPE_PUBLIC profile {
 public:
  /// Starts recording.
  /// @throws opscope::error when a profile is on, the output exists or cannot be written or, with
  /// `strict`, something that was asked for cannot be recorded. Nothing is left behind then.
  explicit profile(profile_options options = {});

  /// Ends recording and completes the capture. Later calls do nothing.
  /// @throws opscope::error when the capture could not be completed; what was written stays in
  /// `<output>.partial`.
  void stop();

  /// Ends a step of the program (a training iteration): a range `ProfilerStep#N`, N from 0, from
  /// the last step's end, or the profile's start.
  void step();

  /// Stops recording for a while; the capture stays open.
  void pause();
  void resume();

  /// Final path of the capture; the file is there once stop() returned.
  [[nodiscard]] const std::filesystem::path& path() const noexcept;

  profile(profile&& other) noexcept;
  profile& operator=(profile&& other) noexcept;
  profile(const profile&) = delete;
  profile& operator=(const profile&) = delete;

  /// Stops if need be; never throws, a failure is one line on stderr.
  ~profile();

 private:
  class state;
  std::unique_ptr<state> state_;
};

/// Takes CUPTI out of the process again. After a first profile with `gpu` every launch is slower by
/// some microseconds, without this until the process ends (as after any CUPTI tool); a later
/// profile brings CUPTI back. Other threads may launch meanwhile. Does nothing where CUPTI was
/// never used.
/// @throws opscope::error while a profile is on, or when another tool holds CUPTI.
OPSCOPE_PUBLIC void detach();

static_assert(!std::is_copy_constructible_v<profile> &&
              std::is_nothrow_move_constructible_v<profile> &&
              std::is_nothrow_destructible_v<profile>);

}  // namespace opscope
