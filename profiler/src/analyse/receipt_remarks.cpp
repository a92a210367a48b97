// SPDX-License-Identifier: Apache-2.0
#include "analyse/receipt_remarks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "analyse/receipt_overview.hpp"
#include "analyse/text_layout.hpp"

namespace opscope::analyse::detail {
namespace {

constexpr std::string_view missing = "–";
constexpr std::array<std::string_view, 5> explained_verdicts{"wrong", "unstable", "too few pairs",
                                                             "skipped", "not measured"};
/// An error relative to zero is infinite; JSON holds the largest double in its place.
constexpr double infinite_error = 1e300;

/// Reasons in the order of their first occurrence.
class reason_list {
 public:
  void add(const contender_receipt& contender, std::string reason) {
    if (reason.empty()) return;
    auto at = std::ranges::find(entries_, reason, &entry::reason);
    if (at == entries_.end()) at = entries_.insert(at, {std::move(reason), {}});
    const auto letter = contender_letter(contender.index);
    if (std::ranges::find(at->letters, letter) == at->letters.end()) at->letters.push_back(letter);
  }

  [[nodiscard]] std::string text(std::size_t width) const {
    std::string out;
    for (const auto& [reason, letters] : entries_) {
      out += wrapped(fmt::format("{}: {}", fmt::join(letters, ", "), reason), width, 3);
    }
    return out;
  }

 private:
  struct entry {
    std::string reason;
    std::vector<std::string> letters;
  };
  std::vector<entry> entries_;
};

std::string why_text(std::string_view what, const std::string& why) {
  return why.empty() ? "" : fmt::format("{} not measured: {}", what, why);
}

template <typename Value>
std::string why_text(std::string_view what, const measured<Value>& number) {
  return number ? "" : why_text(what, number.why);
}

std::string verdict_text(const contender_receipt& contender, std::string_view size) {
  if (std::ranges::find(explained_verdicts, contender.verdict) == explained_verdicts.end()) {
    return {};
  }
  const auto reason = contender.reasons.empty() ? "" : ": " + contender.reasons.front();
  return fmt::format("{}{}{}", size, contender.verdict, reason);
}

}  // namespace

std::string remarks(const receipt& what, std::span<const cell_receipt> cells, shown numbers,
                    std::size_t width) {
  reason_list reasons;
  for (const auto& cell : cells) {
    const auto size = cells.size() > 1 ? cell.label + ", " : "";
    for (const auto& c : cell.contenders) {
      reasons.add(c, verdict_text(c, size));
      if (c.verdict == "skipped") continue;
      reasons.add(c, why_text("stages", c.stages_why));
      if (!what.on_gpu) continue;
      reasons.add(c, why_text("kernel", c.kernel_record));
      reasons.add(c, why_text("DRAM bytes, warm", c.warm));
      if (numbers == shown::in_short) continue;
      reasons.add(c, why_text("graph", c.graph_replay));
      reasons.add(c, why_text("DRAM bytes, cold", c.cold));
    }
  }
  return reasons.text(width);
}

std::string error_text(std::optional<double> error) {
  if (!error) return std::string(missing);
  if (*error >= infinite_error) return "infinite";
  return fmt::format("{:.2g}", *error);
}

std::string tolerance_text(const contender_receipt& contender) {
  if (!contender.absolute_tolerance || !contender.relative_tolerance) return std::string(missing);
  return fmt::format("{:.2g} + {:.2g}", *contender.absolute_tolerance,
                     *contender.relative_tolerance);
}

std::string agreement_text(const receipt& what) {
  std::size_t checked = 0;
  std::size_t agreeing = 0;
  const contender_receipt* farthest = nullptr;
  for (const auto& cell : what.cells) {
    for (const auto& c : cell.contenders) {
      if (!c.correct) continue;
      ++checked;
      if (*c.correct) ++agreeing;
      if (c.max_abs_error && (farthest == nullptr || *c.max_abs_error > *farthest->max_abs_error)) {
        farthest = &c;
      }
    }
  }
  if (checked == 0) return {};
  auto text = fmt::format("results: {} of {} agree with the reference", agreeing, checked);
  if (farthest == nullptr) return text;
  text += fmt::format("; largest absolute error {}", error_text(farthest->max_abs_error));
  if (!farthest->compared) return text;
  return text + fmt::format(" in {} elements, allowed {} of the value",
                            count_text(*farthest->compared), tolerance_text(*farthest));
}

}  // namespace opscope::analyse::detail
