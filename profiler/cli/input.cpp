// SPDX-License-Identifier: Apache-2.0
#include "input.hpp"

#include <fcntl.h>
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

#include "export/descriptor_buffer.hpp"
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
  temporary_file spooled;
  spooled.fill([](std::ostream& out) {
    if (std::cin.peek() != std::istream::traits_type::eof()) out << std::cin.rdbuf();
  });
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

temporary_file::temporary_file() {
  auto pattern = (std::filesystem::temp_directory_path() / "opscope-XXXXXX").string();
  descriptor_ = mkostemp(pattern.data(), O_CLOEXEC);
  if (descriptor_ < 0) {
    throw failure(status::file, fmt::format("create a temporary file: {} (set TMPDIR to a folder "
                                            "that can be written)",
                                            std::strerror(errno)));
  }
  unlink(pattern.c_str());
}

temporary_file::temporary_file(temporary_file&& other) noexcept
    : descriptor_{std::exchange(other.descriptor_, -1)} {}

temporary_file::~temporary_file() {
  if (descriptor_ >= 0) close(descriptor_);
}

std::filesystem::path temporary_file::path() const {
  return "/proc/self/fd/" + std::to_string(descriptor_);
}

void temporary_file::fill(const std::function<void(std::ostream&)>& write) const {
  exporter::descriptor_buffer buffer{descriptor_};
  std::ostream out{&buffer};
  write(out);
  out.flush();
  if (const int why = buffer.failure(); why != 0) {
    throw failure(status::file, fmt::format("write a temporary file: {} (free some space, or set "
                                            "TMPDIR to a folder that has more)",
                                            std::strerror(why)));
  }
}

capture::capture open_capture(const std::string& file, bool strict) {
  if (file.empty()) {
    throw failure(status::usage, "read a capture: its name is empty (give the path of one)");
  }
  if (file != "-") return open_file(file, file, strict);
  const auto spooled = spool_standard_input();
  // The reader opens the file for itself.
  return open_file("standard input", spooled.path(), strict);
}

}  // namespace opscope::cli
