// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <streambuf>

namespace opscope::exporter {

/// Writes to a file descriptor and keeps the reason of the first write that failed, which a file
/// stream forgets. The descriptor stays its owner's.
class descriptor_buffer : public std::streambuf {
 public:
  explicit descriptor_buffer(int descriptor) noexcept;
  descriptor_buffer(const descriptor_buffer&) = delete;
  descriptor_buffer& operator=(const descriptor_buffer&) = delete;
  ~descriptor_buffer() override;

  /// The error number of the first write that failed; 0: none did.
  [[nodiscard]] int failure() const noexcept { return failure_; }

 protected:
  int_type overflow(int_type byte) override;
  int sync() override;

 private:
  int descriptor_;
  int failure_ = 0;
  std::array<char, std::size_t{64} * 1024> pending_;
};

}  // namespace opscope::exporter
