// SPDX-License-Identifier: Apache-2.0
#include "messages.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <iostream>
#include <string>

#include "analyse/characters.hpp"
#include "analyse/text_layout.hpp"
#include "export/export_file.hpp"

namespace opscope::cli {
namespace {

std::string escaped(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const auto control = analyse::control_size(text);
    const auto whole = analyse::character_size(text);
    const auto size = std::max<std::size_t>(whole, 1);
    if (control == 0 && whole != 0) {
      out += text.substr(0, size);
    } else {
      for (const char c : text.substr(0, size)) {
        out += c == '\n' ? "\\n" : fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
      }
    }
    text.remove_prefix(size);
  }
  return out;
}

/// A closed standard stream leaves its number to the next file that is opened, which then takes
/// what was meant for the stream. Reading is all that the stand-in for standard output can do.
void hold_standard_streams() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(descriptor, F_GETFD) >= 0) continue;
    const int flags = descriptor == STDERR_FILENO ? O_WRONLY : O_RDONLY;
    [[maybe_unused]] const int opened = open("/dev/null", flags);
  }
}

}  // namespace

int report(status code, std::string_view line) {
  std::cerr << "opscope: error: " << escaped(line) << '\n';
  return static_cast<int>(code);
}

void warn(std::string_view line) { std::cerr << "opscope: warning: " << escaped(line) << '\n'; }

void tell(std::string_view line) { std::cerr << "opscope: " << escaped(line) << '\n'; }

standard_output::standard_output() : buffer_{STDOUT_FILENO}, before_{std::cout.rdbuf(&buffer_)} {
  hold_standard_streams();
}

standard_output::~standard_output() {
  std::cout.flush();
  std::cout.rdbuf(before_);
}

void finish_output() {
  std::cout.flush();
  const auto* buffer = dynamic_cast<const exporter::descriptor_buffer*>(std::cout.rdbuf());
  const int why = buffer == nullptr ? 0 : buffer->failure();
  if (why == 0) return;
  throw failure(status::file, fmt::format("write standard output: {} ({})", std::strerror(why),
                                          exporter::remedy_of_write(why)));
}

}  // namespace opscope::cli
