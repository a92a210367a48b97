// SPDX-License-Identifier: Apache-2.0
//
// The receipt for a terminal: one block a size; contenders are columns, named by a letter; a
// number's method stands at its row. Missing numbers are dashes, with the reasons below the block.
// What matters most comes last, where a terminal stops: a line a size and contender.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "analyse/receipt.hpp"
#include "analyse/receipt_overview.hpp"
#include "analyse/text_layout.hpp"

namespace opscope::analyse {
namespace {

constexpr std::size_t label_width = 28;
constexpr std::size_t column_width = 17;  ///< three contenders fit into 80 columns
constexpr std::size_t stage_label_width = 8;
constexpr std::string_view missing = "–";

std::string letter(std::uint32_t index) { return detail::contender_letter(index); }

std::string repeated(std::string_view text, std::size_t count) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) out += text;
  return out;
}

std::string gigabytes_text(double bytes_per_second) {
  return three_digits(bytes_per_second / 1e9) + " GB/s";
}

using cell_of = std::function<std::string(const contender_receipt&)>;
using predicate = std::function<bool(const contender_receipt&)>;

/// One block: a size.
class block {
 public:
  block(const receipt& what, const cell_receipt& cell, std::size_t width)
      : what_(what), cell_(cell), width_(width) {}

  std::string text() {
    heading();
    if (cell_.skipped) {
      out_ += wrapped("  skipped: " + *cell_.skipped, width_, 2);
      return std::move(out_);
    }
    const auto count = cell_.contenders.size();
    const auto fitting = std::max<std::size_t>(1, (width_ - label_width) / column_width);
    const auto groups = (count + fitting - 1) / fitting;
    const auto size = groups == 0 ? 0 : (count + groups - 1) / groups;
    for (std::size_t first = 0; first < count; first += size) {
      if (first != 0) out_ += '\n';
      columns(first, std::min(first + size, count));
    }
    stages();
    links();
    remarks();
    return std::move(out_);
  }

 private:
  void heading() {
    auto title = "── " + cell_.label + (cell_.backward ? ", forward and backward " : " ");
    if (cell_.read_bytes_ideal + cell_.write_bytes_ideal != 0) {
      title += fmt::format("── ideal: {} read, {} written ", bytes_text(cell_.read_bytes_ideal),
                           bytes_text(cell_.write_bytes_ideal));
    }
    const auto used = display_width(title);
    out_ += title + repeated("─", width_ - std::min(used, width_)) + '\n';
  }

  void columns(std::size_t first, std::size_t last) {
    first_ = first;
    last_ = last;
    row("", [](const auto& c) { return letter(c.index); });
    row(what_.on_gpu ? "verdict (by GPU time)" : "verdict (by host time)", [](const auto& c) {
      return c.verdict == "no difference shown" ? std::string("no difference") : c.verdict;
    });
    host();
    if (what_.on_gpu) {
      device();
      memory();
    }
  }

  void host() {
    row("host time a call (clock)", [](const auto& c) { return time_text(c.host_call); });
    row("  p95", [](const auto& c) {
      return c.host_call ? duration_text(c.host_call->p95) : std::string(missing);
    });
    ratio("  over baseline", &contender_receipt::host_ratio, true);
  }

  void device() {
    row("GPU time, warm (events)", [](const auto& c) { return time_text(c.device_warm); });
    ratio("  over baseline", &contender_receipt::device_ratio, true);
    row("GPU time, cold (events)", [](const auto& c) { return time_text(c.device_cold); });
    row("in a CUDA graph (events)", [](const auto& c) { return time_text(c.graph_replay); });
    row("kernel (CUPTI record)", [](const auto& c) { return time_text(c.kernel_record); });
    ratio("  over events", &contender_receipt::record_ratio, false);
  }

  void memory() {
    traffic_rows("warm", &contender_receipt::warm);
    traffic_rows("cold", &contender_receipt::cold);
    row("bandwidth (ideal / events)", [](const auto& c) {
      return c.achieved ? gigabytes_text(c.achieved->bytes_per_second) : std::string(missing);
    });
    if (!cell_.copy_bytes_per_second) return;
    row("  of a copy's " + gigabytes_text(*cell_.copy_bytes_per_second), [](const auto& c) {
      return c.achieved && c.achieved->share_of_copy
                 ? fmt::format("{:.1f} %", *c.achieved->share_of_copy * 100)
                 : std::string(missing);
    });
  }

  void traffic_rows(std::string_view name, measured<traffic> contender_receipt::* which) {
    if (!any([which](const auto& c) { return bool(c.*which); })) return;
    const auto part = [which](std::int64_t traffic::* field) -> cell_of {
      return [which, field](const auto& c) {
        const auto& bytes = c.*which;
        return bytes ? bytes_text((*bytes).*field) : std::string(missing);
      };
    };
    row(fmt::format("DRAM read, {} (counters)", name), part(&traffic::read_bytes));
    row("  written", part(&traffic::write_bytes));
    if (cell_.read_bytes_ideal > 0 && cell_.write_bytes_ideal > 0) {
      row("  read, written of ideal", [this, which](const auto& c) {
        if (!(c.*which)) return std::string(missing);
        const auto share = [](std::int64_t bytes, std::int64_t ideal) {
          return static_cast<double>(bytes) * 100 / static_cast<double>(ideal);
        };
        return fmt::format("{:.1f}, {:.1f} %",
                           share((c.*which)->read_bytes, cell_.read_bytes_ideal),
                           share((c.*which)->write_bytes, cell_.write_bytes_ideal));
      });
    }
    row("  through L2", part(&traffic::l2_bytes));
  }

  /// A ratio, its interval, and what it shows.
  void ratio(std::string_view label, measured<interval> contender_receipt::* which, bool judged) {
    if (!any([which](const auto& c) { return bool(c.*which); })) return;
    row(label, [which](const auto& c) {
      return c.*which ? fmt::format("{:.3f} ×", (c.*which)->middle) : std::string(missing);
    });
    row("    95% interval", [which](const auto& c) {
      return c.*which ? fmt::format("{:.3f} – {:.3f}", (c.*which)->low, (c.*which)->high)
                      : std::string(missing);
    });
    if (!judged) return;
    row("    shows", [which](const auto& c) {
      if (!(c.*which)) return std::string(missing);
      const auto what = judge(*(c.*which));
      return std::string(what == finding::no_difference ? "no difference" : name(what));
    });
  }

  /// Medians and p95 in microseconds, a line each; and the median without the collector's own cost.
  void stages() {
    auto names = stage_names();
    if (names.empty()) return;
    const auto column = std::min<std::size_t>(9, (width_ - stage_label_width) / names.size());
    out_ += "\nstages of a traced call, µs\n";
    out_ += std::string(stage_label_width, ' ');
    for (const auto name : names) out_ += pad_left(name, column);
    out_ += '\n';
    bool any_net = false;
    for (const auto& contender : cell_.contenders) {
      if (contender.stages.empty()) continue;
      using maybe = std::optional<std::int64_t>;
      stage_line(contender, names, column, "med",
                 [](const stage_timing& s) { return maybe{s.raw.median}; });
      stage_line(contender, names, column, "p95",
                 [](const stage_timing& s) { return maybe{s.raw.p95}; });
      if (std::ranges::none_of(contender.stages, &stage_timing::corrected_known)) continue;
      any_net = true;
      stage_line(contender, names, column, "net", [](const stage_timing& s) {
        return s.corrected ? maybe{s.corrected->median} : std::nullopt;
      });
    }
    if (any_net) out_ += "net: median less the collector's clock reads and stored events\n";
  }

  [[nodiscard]] std::vector<std::string_view> stage_names() const {
    std::vector<std::string_view> names{"python", "dispatch", "launch", "between", "return",
                                        "op",     "total",    "queue",  "kernel"};
    std::erase_if(names, [&](std::string_view name) {
      return std::ranges::none_of(cell_.contenders,
                                  [&](const auto& c) { return stage_of(c, name) != nullptr; });
    });
    if (names.size() > 8) std::erase(names, "total");
    return names;
  }

  template <typename Value>
  void stage_line(const contender_receipt& contender, const std::vector<std::string_view>& names,
                  std::size_t column, std::string_view label, const Value& value_of) {
    out_ += pad_right(letter(contender.index) + ' ' + std::string(label), stage_label_width);
    for (const auto name : names) {
      const auto* stage = stage_of(contender, name);
      const auto value = stage == nullptr ? std::nullopt : value_of(*stage);
      out_ += pad_left(value ? microseconds(*value) : std::string(missing), column);
    }
    out_ += '\n';
  }

  void links() {
    chain sum;
    for (const auto& contender : cell_.contenders) {
      sum.calls += contender.links.calls;
      sum.launches += contender.links.launches;
      sum.kernels += contender.links.kernels;
      sum.gpu_activities += contender.links.gpu_activities;
      sum.unlinked += contender.links.unlinked;
      sum.out_of_order += contender.links.out_of_order;
      sum.sums_broken += contender.links.sums_broken;
    }
    if (sum.calls == 0) return;
    auto text = fmt::format("links: {} calls", count_text(static_cast<std::int64_t>(sum.calls)));
    if (what_.on_gpu) {
      text += fmt::format(" → {} launches → {} kernels, {} other; {} unlinked", sum.launches,
                          sum.kernels, sum.gpu_activities - sum.kernels, sum.unlinked);
    }
    text += fmt::format(", {} out of order", sum.out_of_order);
    if (sum.sums_broken != 0) text += fmt::format(", {} do not sum", sum.sums_broken);
    out_ += wrapped(text, width_, 2);
  }

  /// Why something is wrong or missing, each reason once with the contenders that it is about.
  void remarks() {
    std::vector<std::pair<std::string, std::string>> reasons;
    const auto add = [&](const contender_receipt& c, const std::string& reason) {
      if (reason.empty()) return;
      auto at = std::ranges::find(reasons, reason, &std::pair<std::string, std::string>::first);
      if (at == reasons.end()) at = reasons.insert(reasons.end(), {reason, ""});
      at->second += (at->second.empty() ? "" : ", ") + letter(c.index);
    };
    for (const auto& c : cell_.contenders) {
      if (c.verdict == "wrong" || c.verdict == "skipped" || c.verdict == "not measured") {
        add(c, c.verdict + (c.reasons.empty() ? "" : ": " + c.reasons.front()));
      }
      if (c.verdict == "skipped") continue;
      add(c, why_text("stages", c.stages_why));
      if (!what_.on_gpu) continue;
      add(c, why_text("graph", c.graph_replay));
      add(c, why_text("kernel", c.kernel_record));
      add(c, why_text("DRAM bytes, warm", c.warm));
      add(c, why_text("DRAM bytes, cold", c.cold));
    }
    for (const auto& [reason, who] : reasons) {
      out_ += wrapped(fmt::format("{}: {}", who, reason), width_, 3);
    }
  }

  template <typename Value>
  static std::string why_text(std::string_view what, const measured<Value>& number) {
    return number ? "" : why_text(what, number.why);
  }

  static std::string why_text(std::string_view what, const std::string& why) {
    return why.empty() ? "" : fmt::format("{} not measured: {}", what, why);
  }

  static std::string time_text(const measured<timing>& what) {
    return what ? duration_text(what->median) : std::string(missing);
  }

  static std::string microseconds(std::int64_t nanoseconds) {
    const auto value = static_cast<double>(nanoseconds) / 1000;
    return value < 1000 ? fmt::format("{:.2f}", value) : fmt::format("{:.0f}", value);
  }

  static const stage_timing* stage_of(const contender_receipt& contender, std::string_view name) {
    const auto at = std::ranges::find(contender.stages, name, &stage_timing::name);
    return at == contender.stages.end() ? nullptr : &*at;
  }

  [[nodiscard]] bool any(const predicate& holds) const {
    return std::any_of(cell_.contenders.begin() + static_cast<std::ptrdiff_t>(first_),
                       cell_.contenders.begin() + static_cast<std::ptrdiff_t>(last_), holds);
  }

  void row(std::string_view label, const cell_of& text_of) {
    out_ += pad_right(label, label_width);
    for (auto i = first_; i < last_; ++i) {
      out_ += pad_left(elide_middle(text_of(cell_.contenders[i]), column_width), column_width);
    }
    out_ += '\n';
  }

  const receipt& what_;
  const cell_receipt& cell_;
  std::size_t width_;
  std::size_t first_ = 0;
  std::size_t last_ = 0;
  std::string out_;
};

std::string heading(const receipt& what, std::size_t width) {
  auto title = what.title;
  if (!what.approximate.empty()) title += ", approximate=" + what.approximate + ',';
  title += what.on_gpu ? " on " + what.device : " on the CPU";
  auto out = wrapped(title, width, 2);
  for (std::uint32_t i = 0; i < what.contenders.size(); ++i) {
    auto line = fmt::format("  {}  {}", letter(i), elide_middle(what.contenders[i], width - 20));
    std::optional<std::uint32_t> baseline;
    for (const auto& cell : what.cells) {
      if (i < cell.contenders.size()) baseline = cell.contenders[i].baseline;
    }
    if (baseline == i) line += "  (baseline)";
    if (baseline && *baseline != i && *baseline != 0) {
      line += fmt::format("  (against {})", letter(*baseline));
    }
    out += line + '\n';
  }
  return out;
}

}  // namespace

std::string to_table(const receipt& what, unsigned width) {
  const auto columns = std::max<std::size_t>(width, 80);
  auto out = heading(what, columns);
  for (const auto& cell : what.cells) out += '\n' + block(what, cell, columns).text();
  if (const auto brief = detail::overview(what); !brief.empty()) {
    const std::string title = "── in short ";
    out += '\n' + title + repeated("─", columns - display_width(title)) + '\n' + brief;
  }
  std::string notes;
  for (const auto& note : what.notes) notes += wrapped("note: " + note, columns, 6);
  const auto dropped = what.ledger.total(outcome::dropped);
  if (dropped != 0) notes += fmt::format("note: {} records were dropped\n", dropped);
  return notes.empty() ? out : out + '\n' + notes;
}

}  // namespace opscope::analyse
