// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "opscope/visibility.hpp"

namespace at {
class Tensor;  // the user includes torch; this header does not need to
}

namespace opscope {

/// What is compared: a function of tensors, called through no other layer.
struct contender {
  std::string name;  ///< as the receipt and the trace show it
  std::function<at::Tensor(const std::vector<at::Tensor>&)> call;
};

/// One row of the receipt: the tensors that every contender is called with.
struct compare_input {
  std::string label;  ///< empty: made from the first tensor's shape and type
  std::vector<at::Tensor> tensors;
};

struct compare_options {
  std::vector<compare_input> inputs;
  std::filesystem::path output = "comparison.opscope";  ///< the capture
  std::string title;                                    ///< empty: the candidate's name
  bool backward = false;      ///< a call is the forward and the gradient of the float inputs
  bool force = false;         ///< replace an existing `output`
  bool strict = false;        ///< refuse when something cannot be recorded on this machine
  std::uint32_t warmup = 50;  ///< rounds before counting
  std::uint32_t pairs = 200;  ///< counted rounds
  /// Most time for one input and kind of timing; at least six rounds are counted all the same.
  std::chrono::nanoseconds budget = std::chrono::seconds(2);
};

/// What a comparison found, recomputed from its capture.
class compare_receipt {
 public:
  compare_receipt(std::filesystem::path path, std::string table, std::string json, bool any_wrong)
      : path_(std::move(path)),
        table_(std::move(table)),
        json_(std::move(json)),
        any_wrong_(any_wrong) {}

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
  [[nodiscard]] const std::string& table() const noexcept { return table_; }  ///< for 80 columns
  [[nodiscard]] const std::string& json() const noexcept { return json_; }    ///< opscope.receipt/1
  /// A candidate's result differs from the baseline's.
  [[nodiscard]] bool any_wrong() const noexcept { return any_wrong_; }

 private:
  std::filesystem::path path_;
  std::string table_;
  std::string json_;
  bool any_wrong_;
};

/// Measures `candidate` against `baseline`: correctness against the baseline on float64 inputs with
/// torch.testing's tolerances, untraced timing of all inputs, the timeline, hardware counters; in
/// that order, the two taking turns.
///
/// Not thread-safe: one comparison, and no profile, at a time in a process.
/// @throws opscope::error when there is nothing to compare, a profile is on, or the capture cannot
/// be written. An exception of a contender passes through; the capture is closed first.
[[nodiscard]] __attribute__((visibility("default"))) compare_receipt
compare(const contender& candidate, const contender& baseline, const compare_options& options);

}  // namespace opscope
