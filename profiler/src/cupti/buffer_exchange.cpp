// SPDX-License-Identifier: Apache-2.0
#include "cupti/buffer_exchange.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "cupti/cupti_error.hpp"

namespace opscope::cupti {
namespace {

/// Zeroed and aligned as CUPTI asks (8 bytes).
std::uint8_t* allocate() noexcept {
  return static_cast<std::uint8_t*>(std::calloc(1, buffer_exchange::buffer_bytes));
}

}  // namespace

buffer_exchange& buffer_exchange::instance() {
  static auto* const exchange = new buffer_exchange;
  return *exchange;
}

void buffer_exchange::register_with(const api& cupti) {
  check(cupti.activity_register_callbacks(&on_request, &on_completed),
        "cuptiActivityRegisterCallbacks");
}

void buffer_exchange::open(std::size_t limit_bytes) {
  const std::scoped_lock lock{mutex_};
  limit_ = std::max<std::size_t>(limit_bytes / buffer_bytes, 2);
  open_ = true;
  // Room for every buffer there can be, so that CUPTI's callbacks never allocate for the lists.
  queue_.reserve(std::max(limit_, allocated_));
  ready_.reserve(std::max(limit_, allocated_));
  for (const auto& left : queue_) {
    std::memset(left.data, 0, buffer_bytes);
    ready_.push_back(left.data);
  }
  queue_.clear();
  fill_pool();
}

void buffer_exchange::close() noexcept {
  const std::scoped_lock lock{mutex_};
  open_ = false;
  // What the session needed beyond the usual goes back; buffers that CUPTI holds are not touched.
  while (ready_.size() > ready_buffers) {
    std::free(ready_.back());
    ready_.pop_back();
    --allocated_;
  }
  changed_.notify_all();
}

std::optional<filled_buffer> buffer_exchange::take() {
  std::unique_lock lock{mutex_};
  changed_.wait(lock, [this] { return !queue_.empty() || !open_; });
  if (queue_.empty()) {
    return std::nullopt;
  }
  const filled_buffer first = queue_.front();
  queue_.erase(queue_.begin());
  ++reading_;
  return first;
}

void buffer_exchange::recycle(std::uint8_t* data) noexcept {
  std::memset(data, 0, buffer_bytes);
  const std::scoped_lock lock{mutex_};
  --reading_;
  ready_.push_back(data);
  changed_.notify_all();
}

void buffer_exchange::wait_until_read(std::chrono::milliseconds longest) {
  std::unique_lock lock{mutex_};
  changed_.wait_for(lock, longest, [this] { return (queue_.empty() && reading_ == 0) || !open_; });
}

std::uint8_t* buffer_exchange::lend() noexcept {
  const std::scoped_lock lock{mutex_};
  const std::size_t lent = allocated_ - ready_.size();
  if (!open_ || lent >= limit_) {
    return nullptr;
  }
  if (ready_.empty()) {
    std::uint8_t* fresh = allocate();
    allocated_ += fresh != nullptr ? 1 : 0;
    return fresh;
  }
  std::uint8_t* data = ready_.back();
  ready_.pop_back();
  return data;
}

void buffer_exchange::fill_pool() {
  while (ready_.size() < ready_buffers && allocated_ < limit_) {
    std::uint8_t* fresh = allocate();
    if (fresh == nullptr) {
      return;
    }
    std::memset(fresh, 0, buffer_bytes);  // touches the pages here instead of at a launch
    ready_.push_back(fresh);
    ++allocated_;
  }
}

void buffer_exchange::on_request(std::uint8_t** buffer, std::size_t* size,
                                 std::size_t* max_records) noexcept {
  *buffer = instance().lend();
  *size = *buffer != nullptr ? buffer_bytes : 0;
  *max_records = 0;  // as many as fit
}

void buffer_exchange::on_completed(CUcontext /*context*/, std::uint32_t /*stream*/,
                                   std::uint8_t* buffer, std::size_t /*size*/,
                                   std::size_t valid_bytes) noexcept {
  if (buffer == nullptr) {
    return;
  }
  auto& self = instance();
  if (valid_bytes == 0) {
    const std::scoped_lock lock{self.mutex_};
    self.ready_.push_back(buffer);  // still zeroed
    return;
  }
  const std::scoped_lock lock{self.mutex_};
  self.queue_.push_back({buffer, valid_bytes});
  self.changed_.notify_all();
}

}  // namespace opscope::cupti
