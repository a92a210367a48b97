// SPDX-License-Identifier: Apache-2.0
//
// Buffers on their way between CUPTI and the decoding thread.
//
// CUPTI's two callbacks carry no user data, so this is the one place with a static pointer. The
// object lives as long as the process: CUPTI keeps buffers across sessions, may hand one over after
// a session has ended, and calls back while the process exits.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "cupti/api.hpp"

namespace opscope::cupti {

/// A buffer that CUPTI has filled.
struct filled_buffer {
  std::uint8_t* data = nullptr;
  std::size_t valid_bytes = 0;
};

/// Pool of zeroed buffers, and the queue of filled ones. Thread-safe.
class buffer_exchange {
 public:
  /// 13.0 asks for a buffer a thread, so they are at the small end of what CUPTI recommends.
  static constexpr std::size_t buffer_bytes = std::size_t{1} << 20U;
  /// Zeroed buffers that are kept ready, so that a launching thread need not allocate.
  static constexpr std::size_t ready_buffers = 4;

  /// The process's exchange, made at the first call and never destroyed.
  static buffer_exchange& instance();

  buffer_exchange(const buffer_exchange&) = delete;
  buffer_exchange& operator=(const buffer_exchange&) = delete;

  /// Registers the callbacks with CUPTI.
  /// @throws cupti_error
  void register_with(const api& cupti);

  /// Begins a session: buffers are lent up to `limit_bytes`, and filled ones queue for `take`.
  /// Buffers that an earlier session left in the queue are dropped.
  void open(std::size_t limit_bytes);

  /// Ends the session: `take` returns what is queued, then nothing. Later buffers go back unread.
  void close() noexcept;

  /// The next filled buffer, waiting for one; nothing once the session is closed and the queue
  /// empty.
  [[nodiscard]] std::optional<filled_buffer> take();

  /// Zeroes a buffer that was read and gives it back to the pool.
  void recycle(std::uint8_t* data) noexcept;

  /// Waits until the queue is empty and every taken buffer recycled, at most `longest`.
  void wait_until_read(std::chrono::milliseconds longest);

 private:
  buffer_exchange() = default;
  ~buffer_exchange() = default;

  static void on_request(std::uint8_t** buffer, std::size_t* size,
                         std::size_t* max_records) noexcept;
  static void on_completed(CUcontext context, std::uint32_t stream, std::uint8_t* buffer,
                           std::size_t size, std::size_t valid_bytes) noexcept;

  [[nodiscard]] std::uint8_t* lend() noexcept;
  void fill_pool();

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::uint8_t*> ready_;
  std::vector<filled_buffer> queue_;
  std::size_t limit_ = 0;      ///< buffers that may be out at a time
  std::size_t allocated_ = 0;  ///< buffers that exist
  std::size_t reading_ = 0;    ///< taken and not yet recycled
  bool open_ = false;
};

}  // namespace opscope::cupti
