// SPDX-License-Identifier: Apache-2.0
//
// A demangled name is a list of components between `::`, each an identifier with, perhaps, template
// arguments and parameters. The identifiers in front of the first component that has either are
// namespaces. Brackets nest, so a scan that skips whole groups finds all of this.
#include "analyse/kernel_name.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <exception>

#include "analyse/labels.hpp"
#include "analyse/text_layout.hpp"

namespace opscope::analyse {
namespace {

/// The text is no demangled name of the form that is read here.
struct unreadable : std::exception {};

constexpr std::string_view opening = "<({[";
constexpr std::string_view closing = ">)}]";

/// Deeper nesting is no kernel's: each level is read once more, and on the stack.
constexpr std::size_t deepest = 64;

std::string_view trimmed(std::string_view text) noexcept {
  const auto first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

constexpr std::string_view call_operator = "operator()";

bool is_word(char byte) noexcept {
  return std::isalnum(static_cast<unsigned char>(byte)) != 0 || byte == '_';
}

/// Behind an operator's name that begins at `at`, where `<` and `(` are no brackets; else `at`.
std::size_t behind_operator(std::string_view text, std::size_t at) noexcept {
  constexpr std::string_view word = "operator";
  if (!text.substr(at).starts_with(word) || (at > 0 && is_word(text[at - 1]))) return at;
  if (text.substr(at).starts_with(call_operator)) return at + call_operator.size();
  const auto symbol = at + word.size();
  const auto end = std::min(text.find_first_not_of("<>=-+*/!&|^%~[]", symbol), text.size());
  return end == symbol ? at : end;
}

/// Behind the group whose bracket is at `at`.
/// @throws unreadable when it does not end, or nests too deeply.
std::size_t behind_group(std::string_view text, std::size_t at) {
  std::string open(1, closing[opening.find(text[at])]);
  for (++at; at < text.size(); ++at) {
    at = std::min(behind_operator(text, at), text.size() - 1);
    if (text[at] == '>' && text[at - 1] == '-') continue;
    if (const auto kind = opening.find(text[at]); kind != std::string_view::npos) {
      if (open.size() == deepest) throw unreadable();
      open += closing[kind];
    } else if (text[at] == open.back()) {
      open.pop_back();
      if (open.empty()) return at + 1;
    }
  }
  throw unreadable();
}

/// The parts between `separator` that stand outside of all brackets.
std::vector<std::string_view> split(std::string_view text, std::string_view separator) {
  std::vector<std::string_view> parts;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size();) {
    if (text.substr(at).starts_with(separator)) {
      parts.push_back(text.substr(begin, at - begin));
      at = begin = at + separator.size();
    } else if (const auto behind = behind_operator(text, at); behind != at) {
      at = behind;
    } else {
      at = opening.find(text[at]) == std::string_view::npos ? at + 1 : behind_group(text, at);
    }
  }
  parts.push_back(text.substr(begin));
  return parts;
}

std::string shortened(std::string_view name, kept_arguments kept);

/// Numbers, truth values, fundamental types and what is of `std` say little of what a kernel does.
bool is_telling(std::string_view argument) {
  constexpr std::array<std::string_view, 13> plain{"bool",  "char",     "short",  "int",  "long",
                                                   "float", "double",   "signed", "void", "true",
                                                   "false", "unsigned", "std::"};
  const auto is = [argument](std::string_view word) {
    if (!argument.starts_with(word)) return false;
    return word.ends_with(':') || argument.size() == word.size() ||
           std::string_view(" *&[").find(argument[word.size()]) != std::string_view::npos;
  };
  if (argument.empty() || argument.front() == '(' || argument.front() == '-') return false;
  return std::isdigit(static_cast<unsigned char>(argument.front())) == 0 &&
         std::ranges::none_of(plain, is);
}

std::string arguments_text(std::string_view list, kept_arguments kept) {
  auto parts = split(list, ",");
  for (auto& part : parts) part = trimmed(part);
  if (kept == kept_arguments::telling && std::ranges::any_of(parts, is_telling)) {
    std::erase_if(parts, [](std::string_view part) { return !is_telling(part); });
  }
  std::string out;
  for (const auto part : parts) out += (out.empty() ? "" : ", ") + shortened(part, kept);
  return '<' + out + '>';
}

struct component {
  std::string text;
  bool plain = false;     ///< an identifier alone: of a namespace, unless it is the last one
  bool appended = false;  ///< follows without `::`
};

/// `{lambda(float)#1}` is `#1`.
component lambda_of(std::string_view text) {
  const auto end = behind_group(text, 0);
  const auto number = text.substr(0, end).rfind('#');
  if (number == std::string_view::npos) return {std::string(text)};
  return {std::string(text.substr(number, end - 1 - number)) + std::string(text.substr(end)), false,
          true};
}

component component_of(std::string_view text, kept_arguments kept) {
  if (text == "(anonymous namespace)") return {"", true};
  if (text.starts_with('{')) return lambda_of(text);
  if (text.starts_with('(')) return {std::string(text)};  // a cast: an enumeration's value
  // A call operator adds nothing to the functor or the lambda that it is of.
  if (text.starts_with(call_operator)) return {};
  auto at = std::min(text.find_first_of(opening, behind_operator(text, 0)), text.size());
  component out{std::string(text.substr(0, at)), at == text.size()};
  if (at < text.size() && text[at] == '<') {
    const auto end = behind_group(text, at);
    out.text += arguments_text(text.substr(at + 1, end - at - 2), kept);
    at = end;
  }
  if (at == text.size() || text[at] != '(') out.text += text.substr(at);
  return out;
}

std::string shortened(std::string_view name, kept_arguments kept) {
  std::vector<component> parts;
  for (const auto part : split(trimmed(name), "::")) parts.push_back(component_of(part, kept));
  auto from = std::ranges::find_if(parts, [](const component& part) { return !part.plain; });
  if (from == parts.end()) --from;
  std::string out;
  for (; from != parts.end(); ++from) {
    if (!out.empty() && !from->appended && !from->text.empty()) out += "::";
    out += from->text;
  }
  return out.empty() ? std::string(name) : out;
}

/// What a template's name loses before its arguments do.
std::string elided(const std::string& text, std::size_t width) {
  const auto list = std::min(text.find('<'), text.size());
  const auto base = text.substr(0, list);
  const auto arguments = text.substr(list);
  const auto least = std::min(display_width(base), width / 4);
  const auto rest = std::min(display_width(arguments), width - least);
  return elide_middle(base, width - rest) + elide_middle(arguments, rest);
}

}  // namespace

std::string short_kernel_name(std::string_view name, kept_arguments kept) {
  constexpr std::string_view returns_nothing = "void ";
  try {
    const bool returns = name.starts_with(returns_nothing);
    return shortened(name.substr(returns ? returns_nothing.size() : 0), kept);
  } catch (const unreadable&) {
    return std::string(name);
  }
}

std::vector<std::string> kernel_labels(const std::vector<std::string>& names, std::size_t width) {
  std::vector<std::string> whole;
  std::vector<std::string> labels;
  for (const auto& name : names) {
    whole.push_back(short_kernel_name(name));
    const bool fits = width == 0 || display_width(whole.back()) <= width;
    labels.push_back(fits ? whole.back()
                          : elided(short_kernel_name(name, kept_arguments::telling), width));
  }
  show_the_difference(whole, width, labels);
  show_the_difference(names, width, labels);
  number_the_rest(width, labels);
  return labels;
}

}  // namespace opscope::analyse
