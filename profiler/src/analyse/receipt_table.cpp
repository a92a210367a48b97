// SPDX-License-Identifier: Apache-2.0
//
// The receipt for a terminal. In short: a line a size and contender, and one size's stages. In
// full, first one block a size; contenders are columns, named by a letter; a number's method stands
// at its row. Missing numbers are dashes, with the reasons below. What matters most comes last,
// where a terminal stops.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <span>

#include "analyse/receipt.hpp"
#include "analyse/receipt_overview.hpp"
#include "analyse/receipt_remarks.hpp"
#include "analyse/receipt_stage_table.hpp"
#include "analyse/text_layout.hpp"

namespace opscope::analyse {
namespace {

constexpr std::size_t label_width = 28;
constexpr std::size_t column_width = 20;  ///< "no difference shown" and a gap
constexpr std::size_t narrowest = 80;
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
    if (const auto stages = detail::stage_table(what_, cell_, width_); !stages.empty()) {
      out_ += '\n' + stages;
    }
    out_ += detail::remarks(what_, std::span(&cell_, 1), detail::shown::in_full, width_);
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
    row(what_.on_gpu ? "verdict (by GPU time)" : "verdict (by host time)",
        [](const auto& c) { return c.verdict; });
    errors();
    host();
    if (what_.on_gpu) {
      device();
      memory();
    }
  }

  void errors() {
    if (!any([](const auto& c) { return c.compared.has_value(); })) return;
    row("largest error, absolute",
        [](const auto& c) { return detail::error_text(c.max_abs_error); });
    row("  relative", [](const auto& c) { return detail::error_text(c.max_rel_error); });
    row("  allowed (atol + rtol)", [](const auto& c) { return detail::tolerance_text(c); });
    row("  elements compared",
        [](const auto& c) { return c.compared ? count_text(*c.compared) : std::string(missing); });
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
  void ratio(std::string_view label, measured<ratio_estimate> contender_receipt::* which,
             bool judged) {
    if (!any([which](const auto& c) { return bool(c.*which); })) return;
    row(label, [which](const auto& c) {
      return c.*which ? ratio_text((c.*which)->middle) + " ×" : std::string(missing);
    });
    row("    95% interval", [which](const auto& c) { return detail::interval_text(c.*which); });
    if (!judged) return;
    row("    shows", [which](const auto& c) {
      return c.*which ? std::string(name(judge(*(c.*which)))) : std::string(missing);
    });
  }

  static std::string time_text(const measured<timing>& what) {
    return what ? duration_text(what->median) : std::string(missing);
  }

  [[nodiscard]] bool any(const predicate& holds) const {
    return std::any_of(cell_.contenders.begin() + static_cast<std::ptrdiff_t>(first_),
                       cell_.contenders.begin() + static_cast<std::ptrdiff_t>(last_), holds);
  }

  void row(std::string_view label, const cell_of& text_of) {
    out_ += pad_right(label, label_width);
    for (auto i = first_; i < last_; ++i) {
      out_ += pad_left(elide_middle(text_of(cell_.contenders[i]), column_width - 1), column_width);
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

std::string in_short(const receipt& what, std::size_t width) {
  const auto brief = detail::overview(what, width);
  if (brief.empty()) return {};
  const std::string title = "── in short ";
  return '\n' + title + repeated("─", width - display_width(title)) + '\n' + brief;
}

std::string notes(const receipt& what, std::size_t width) {
  std::string out;
  for (const auto& note : what.notes) out += wrapped("note: " + note, width, 6);
  const auto dropped = what.ledger.total(outcome::dropped);
  if (dropped != 0) out += fmt::format("note: {} records were dropped\n", dropped);
  return out.empty() ? out : '\n' + out;
}

}  // namespace

std::string to_brief(const receipt& what, unsigned width) {
  const auto columns = std::max<std::size_t>(width, narrowest);
  auto out = heading(what, columns) + in_short(what, columns);
  std::vector<const cell_receipt*> measured;
  for (const auto& cell : what.cells) {
    if (!cell.skipped) measured.push_back(&cell);
  }
  if (!measured.empty()) {
    const auto& middle = *measured[measured.size() / 2];
    if (const auto stages = detail::stage_table(what, middle, columns); !stages.empty()) {
      out += '\n' + middle.label + ": " + stages;
    }
  }
  return out + notes(what, columns);
}

std::string to_table(const receipt& what, unsigned width) {
  const auto columns = std::max<std::size_t>(width, narrowest);
  auto out = heading(what, columns);
  for (const auto& cell : what.cells) out += '\n' + block(what, cell, columns).text();
  return out + in_short(what, columns) + notes(what, columns);
}

}  // namespace opscope::analyse
