// SPDX-License-Identifier: Apache-2.0
//
// From CUPTI's records to rows. CUPTI's structures are packed: fields are copied out, never bound.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "collect/activity_source.hpp"
#include "cupti/api.hpp"
#include "model/records.hpp"

namespace opscope::cupti {

/// Interned names of one session: kernels demangled, API functions by id. Used by one thread.
class name_cache {
 public:
  name_cache(const api& cupti, collect::activity_sink& sink) : cupti_(cupti), sink_(sink) {}

  struct kernel_name {
    string_id id;       ///< of the demangled name
    bool profiler_own;  ///< see is_profiler_kernel
  };

  /// A kernel's name. Cached by the text, not by the address: a module that is loaded again may
  /// reuse the address for another name.
  [[nodiscard]] kernel_name kernel(const char* mangled);

  /// CUPTI's full name of an API function, e.g. "__cudaLaunchKernel_v13000".
  [[nodiscard]] string_id api_function(CUpti_CallbackDomain domain, CUpti_CallbackId id);

  [[nodiscard]] string_id text(std::string_view text) { return sink_.intern(text); }

 private:
  struct text_hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const noexcept {
      return std::hash<std::string_view>{}(text);
    }
  };

  const api& cupti_;
  collect::activity_sink& sink_;
  std::unordered_map<std::string, kernel_name, text_hash, std::equal_to<>> kernels_;
  std::unordered_map<std::uint64_t, string_id> functions_;
};

/// Rows of one buffer and what could not become one.
struct batch {
  std::vector<api_call> api_calls;
  std::vector<kernel> kernels;
  std::vector<memory_copy> memory_copies;
  std::vector<memory_set> memory_sets;
  std::vector<synchronization> synchronizations;
  std::vector<overhead> overheads;
  std::vector<external_correlation> external_correlations;
  ledger losses;  ///< untimed records, and bytes that are no record (skipped, "gpu_activity")

  void clear();
};

/// The C++ name of a mangled one; the name itself when it is not mangled.
[[nodiscard]] std::string demangle(const char* name);

/// Is it a kernel of CUPTI's own (the wait at the end of a counter range)?
[[nodiscard]] bool is_profiler_kernel(std::string_view demangled) noexcept;

/// The name of an overhead record, as Kineto writes it where Kineto knows it.
[[nodiscard]] std::string_view overhead_name(CUpti_ActivityOverheadKind kind) noexcept;

[[nodiscard]] api_call decode(const CUpti_ActivityAPI& record, name_cache& names);
[[nodiscard]] kernel decode(const CUpti_ActivityKernel10& record, name_cache& names);
[[nodiscard]] memory_copy decode(const CUpti_ActivityMemcpy6& record);
[[nodiscard]] memory_copy decode(const CUpti_ActivityMemcpyPtoP4& record);
[[nodiscard]] memory_set decode(const CUpti_ActivityMemset4& record);
[[nodiscard]] synchronization decode(const CUpti_ActivitySynchronization2& record);
[[nodiscard]] overhead decode(const CUpti_ActivityOverhead3& record, name_cache& names);
[[nodiscard]] external_correlation decode(const CUpti_ActivityExternalCorrelation& record);

/// Appends one record to the batch; kinds that are not recorded are left out.
void decode_record(const CUpti_Activity& record, name_cache& names, batch& out);

/// Walks a completed buffer with CUPTI's own iterator. A tail that is no whole record counts as
/// skipped: CUPTI ends such a walk without an error.
/// @param valid_bytes what CUPTI said it wrote.
void decode_buffer(const api& cupti, std::uint8_t* buffer, std::size_t valid_bytes,
                   name_cache& names, batch& out);

/// Hands the batch to the sink and empties it.
void deliver(batch& rows, collect::activity_sink& sink) noexcept;

}  // namespace opscope::cupti
