// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <ostream>

namespace opscope::exporter {

/// Compresses what is written to it into another stream, as one gzip member.
class gzip_stream : public std::ostream {
 public:
  explicit gzip_stream(std::ostream& target);
  ~gzip_stream() override;

  /// Ends the member. The stream is bad when anything could not be written.
  void finish();

 private:
  class buffer;
  std::unique_ptr<buffer> buffer_;
};

}  // namespace opscope::exporter
