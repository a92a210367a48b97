// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "cupti/api.hpp"

namespace opscope::test {

/// Bytes as CUPTI leaves them in an activity buffer: records one behind the other.
class activity_buffer {
 public:
  template <typename Record>
  activity_buffer& add(const Record& record) {
    const auto end = bytes_.size();
    bytes_.resize(end + sizeof(Record));
    std::memcpy(bytes_.data() + end, &record, sizeof(Record));
    return *this;
  }

  [[nodiscard]] std::uint8_t* data() noexcept { return bytes_.data(); }
  [[nodiscard]] std::size_t size() const noexcept { return bytes_.size(); }

 private:
  std::vector<std::uint8_t> bytes_;
};

/// A kernel record as CUPTI 13.0 writes it, with a distinct value in each field that is read.
inline CUpti_ActivityKernel10 kernel_record(const char* name, std::uint64_t start,
                                            std::uint64_t end) {
  CUpti_ActivityKernel10 record{};
  record.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  record.name = name;
  record.start = start;
  record.end = end;
  record.deviceId = 1;
  record.contextId = 2;
  record.streamId = 7;
  record.correlationId = 41;
  record.graphNodeId = 5000000001;
  record.graphId = 6;
  record.gridX = 1024;
  record.gridY = 3;
  record.gridZ = 2;
  record.blockX = 256;
  record.blockY = 4;
  record.blockZ = 1;
  record.registersPerThread = 32;
  record.staticSharedMemory = 128;
  record.dynamicSharedMemory = 4096;
  record.localMemoryPerThread = 16;
  return record;
}

inline CUpti_ActivityAPI api_record(CUpti_ActivityKind kind, CUpti_CallbackId function,
                                    std::uint64_t start, std::uint64_t end) {
  CUpti_ActivityAPI record{};
  record.kind = kind;
  record.cbid = function;
  record.start = start;
  record.end = end;
  record.processId = 100;
  record.threadId = 101;
  record.correlationId = 41;
  record.returnValue = 0;
  return record;
}

}  // namespace opscope::test
