// SPDX-License-Identifier: Apache-2.0
#include "input.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>
#include <string_view>
#include <system_error>
#include <utility>

#include "failure.hpp"
#include "messages.hpp"

namespace opscope::cli {
namespace {

constexpr unsigned char gzip_magic = 0x1F;

/// Chrome traces are JSON, often compressed; told by content, not by suffix.
bool looks_like_chrome_trace(const std::filesystem::path& path) {
  std::ifstream file{path, std::ios::binary};
  std::array<char, 64> head{};
  file.read(head.data(), head.size());
  const std::string_view text{head.data(), static_cast<std::size_t>(file.gcount())};
  const auto first = text.find_first_not_of("\xEF\xBB\xBF \t\r\n");
  if (first == std::string_view::npos) return false;
  return text[first] == '{' || text[first] == '[' ||
         static_cast<unsigned char>(text[first]) == gzip_magic;
}

[[noreturn]] void refuse(const std::string& file, const std::string& why) {
  throw failure(status::file, fmt::format("read {}: {}", file, why));
}

/// The reader's reason; the path in front of it stands in our own line.
std::string without_path(const std::string& message) {
  const auto behind = message.find("': ");
  return behind == std::string::npos ? message : message.substr(behind + 3);
}

void check_readable(const std::string& file, const std::filesystem::path& path) {
  std::error_code unknown;
  if (std::filesystem::is_directory(path, unknown)) {
    refuse(file, "it is a folder (give the .opscope file in it)");
  }
  if (access(path.c_str(), R_OK) == 0) return;
  const std::string why = std::strerror(errno);
  refuse(file, why + (errno == ENOENT ? " (check the path)" : " (check its permissions)"));
}

temporary_file spool_standard_input() {
  temporary_file spooled{".opscope"};
  std::ofstream out{spooled.path(), std::ios::binary};
  if (std::cin.peek() != std::istream::traits_type::eof()) out << std::cin.rdbuf();
  out.close();
  if (!out) refuse("-", "cannot spool it to " + spooled.path().string() + " (free some space)");
  return spooled;
}

capture::capture open_file(const std::string& file, const std::filesystem::path& path,
                           bool strict) {
  check_readable(file, path);
  auto opened = capture::capture::open(path);
  if (!opened) {
    if (looks_like_chrome_trace(path)) {
      refuse(file, "not an opscope capture but a Chrome trace (give a .opscope file)");
    }
    const auto& error = opened.error();
    const auto text = without_path(error.message);
    if (text.starts_with("not an opscope capture")) {
      refuse(file, "not an opscope capture (give a .opscope file)");
    }
    refuse(file, text.ends_with(')')
                     ? text
                     : fmt::format("{} at byte {} (give a .opscope file)", text, error.offset));
  }
  auto source = std::move(opened).value();
  if (source.recovered() || source.damage_offset()) {
    const auto where =
        source.damage_offset() ? fmt::format(" at byte {}", *source.damage_offset()) : "";
    const std::string_view what =
        source.recovered() ? "the capture was cut short" : "the capture is damaged";
    if (strict)
      refuse(file, fmt::format("{}{} (leave out --strict to read the rest)", what, where));
    warn(fmt::format("{}: {}{}; what is whole was read", file, what, where));
  }
  const ledger& collected = source.collected();
  if (const auto lost = collected.total(outcome::dropped) + collected.total(outcome::untimed);
      lost > 0) {
    warn(fmt::format("{}: {} records were lost while recording (opscope verify says which)", file,
                     lost));
  }
  return source;
}

}  // namespace

temporary_file::temporary_file(const std::string& suffix) {
  auto pattern = (std::filesystem::temp_directory_path() / "opscope-XXXXXX").string() + suffix;
  const int descriptor = mkstemps(pattern.data(), static_cast<int>(suffix.size()));
  if (descriptor < 0) {
    throw failure(status::file, fmt::format("create a temporary file: {} (set TMPDIR to a folder "
                                            "that can be written)",
                                            std::strerror(errno)));
  }
  close(descriptor);
  path_ = pattern;
}

temporary_file::temporary_file(temporary_file&& other) noexcept
    : path_{std::exchange(other.path_, {})} {}

temporary_file::~temporary_file() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove(path_, ignored);
}

capture::capture open_capture(const std::string& file, bool strict) {
  if (file.empty()) {
    throw failure(status::usage, "read a capture: its name is empty (give the path of one)");
  }
  if (file != "-") return open_file(file, file, strict);
  const auto spooled = spool_standard_input();
  // The reader keeps the file open, so that its name may go.
  return open_file("standard input", spooled.path(), strict);
}

}  // namespace opscope::cli
