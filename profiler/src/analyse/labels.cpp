// SPDX-License-Identifier: Apache-2.0
#include "analyse/labels.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "analyse/text_layout.hpp"

namespace opscope::analyse {
namespace {

/// `width` columns of `text`: its beginning, and what stands around byte `at`.
std::string excerpt(const std::string& text, std::size_t at, std::size_t width) {
  const bool ascii = display_width(text) == text.size();
  if (!ascii || text.size() <= width || width < 6) return elide_middle(text, width);
  const auto head = width / 3;
  const auto shown = width - head - 2;
  const auto begin = std::clamp(at - std::min(at, shown / 3), head, text.size() - shown);
  const bool whole = begin + shown == text.size();
  return text.substr(0, head) + "…" +
         text.substr(begin - (whole ? 1 : 0), shown + (whole ? 1 : 0)) + (whole ? "" : "…");
}

using group = std::vector<std::size_t>;

/// Labels that occur more than once, each with its places.
std::map<std::string, group> alike(const std::vector<std::string>& labels) {
  std::map<std::string, group> places;
  for (std::size_t i = 0; i < labels.size(); ++i) places[labels[i]].push_back(i);
  std::erase_if(places, [](const auto& entry) { return entry.second.size() < 2; });
  return places;
}

/// Where the texts of a group part.
std::size_t parting(const std::vector<std::string>& texts, const group& members) {
  auto at = texts[members.front()].size();
  for (const auto i : members) {
    const auto& first = texts[members.front()];
    const auto [here, there] = std::ranges::mismatch(first, texts[i]);
    if (there == texts[i].end() && here == first.end()) continue;
    at = std::min(at, static_cast<std::size_t>(here - first.begin()));
  }
  return at;
}

}  // namespace

void show_the_difference(const std::vector<std::string>& texts, std::size_t width,
                         std::vector<std::string>& labels) {
  for (const auto& [label, members] : alike(labels)) {
    const auto at = parting(texts, members);
    for (const auto i : members) {
      labels[i] = width == 0 ? texts[i] : excerpt(texts[i], at, width);
    }
  }
}

void number_the_rest(std::size_t width, std::vector<std::string>& labels) {
  std::set<std::string> taken(labels.begin(), labels.end());
  for (const auto& [label, members] : alike(labels)) {
    std::size_t n = 0;
    for (const auto i : members) {
      do {
        const auto number = " ~" + std::to_string(++n);
        const auto kept =
            width == 0 ? display_width(label) : width - std::min(width, number.size());
        labels[i] = elide_middle(label, kept) + number;
      } while (!taken.insert(labels[i]).second);
    }
  }
}

std::vector<std::string> elide_each(const std::vector<std::string>& texts, std::size_t width) {
  std::unordered_map<std::string_view, std::size_t> places;
  std::vector<std::string> distinct;
  std::vector<std::string> labels;
  for (const auto& text : texts) {
    if (!places.try_emplace(text, labels.size()).second) continue;
    distinct.push_back(on_one_line(text));
    labels.push_back(elide_middle(distinct.back(), width));
  }
  // Those that part at one place may part again behind it.
  constexpr int rounds = 4;
  for (int round = 0; round < rounds; ++round) show_the_difference(distinct, width, labels);
  number_the_rest(width, labels);
  std::vector<std::string> out;
  out.reserve(texts.size());
  for (const auto& text : texts) out.push_back(labels[places.at(text)]);
  return out;
}

}  // namespace opscope::analyse
