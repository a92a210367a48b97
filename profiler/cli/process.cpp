// SPDX-License-Identifier: Apache-2.0
#include "process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>

#include "failure.hpp"

namespace opscope::cli {
namespace {

std::vector<char*> arguments_of(const std::vector<std::string>& command) {
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (const auto& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  return arguments;
}

/// Spawn's list of what happens to the child's descriptors.
class file_actions {
 public:
  file_actions() { posix_spawn_file_actions_init(&actions_); }
  ~file_actions() { posix_spawn_file_actions_destroy(&actions_); }
  file_actions(const file_actions&) = delete;
  file_actions& operator=(const file_actions&) = delete;

  void discard(int descriptor) {
    posix_spawn_file_actions_addopen(&actions_, descriptor, "/dev/null", O_WRONLY, 0);
  }
  void redirect(int from, int to) { posix_spawn_file_actions_adddup2(&actions_, from, to); }
  [[nodiscard]] const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_{};
};

std::string read_all(int descriptor) {
  std::string text;
  std::array<char, 4096> buffer{};
  for (;;) {
    const auto size = read(descriptor, buffer.data(), buffer.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(size));
  }
}

}  // namespace

std::filesystem::path program_folder() {
  std::error_code unknown;
  return std::filesystem::read_symlink("/proc/self/exe", unknown).parent_path();
}

std::string python_interpreter() {
  if (const char* chosen = std::getenv("OPSCOPE_PYTHON"); chosen != nullptr && *chosen != '\0') {
    return chosen;
  }
  const auto folder = program_folder();
  std::error_code unknown;
  if (std::filesystem::exists(folder.parent_path() / "pyvenv.cfg", unknown) &&
      access((folder / "python3").c_str(), X_OK) == 0) {
    return folder / "python3";
  }
  return "python3";
}

void replace_by(const std::vector<std::string>& command) {
  auto arguments = arguments_of(command);
  execvp(arguments[0], arguments.data());
  const auto code = errno == ENOENT ? status::not_found : static_cast<status>(126);
  throw failure(code, fmt::format("start {}: {} (set OPSCOPE_PYTHON to a Python that has opscope)",
                                  command[0], std::strerror(errno)));
}

std::string output_of(const std::vector<std::string>& command) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return {};
  file_actions actions;
  actions.redirect(ends[1], STDOUT_FILENO);
  actions.discard(STDERR_FILENO);
  auto arguments = arguments_of(command);
  pid_t child = 0;
  const int failed =
      posix_spawnp(&child, arguments[0], actions.get(), nullptr, arguments.data(), environ);
  close(ends[1]);
  auto text = failed == 0 ? read_all(ends[0]) : std::string{};
  close(ends[0]);
  int ended = 0;
  if (failed == 0 && waitpid(child, &ended, 0) == child && WIFEXITED(ended) &&
      WEXITSTATUS(ended) == 0) {
    return text;
  }
  return {};
}

bool start_detached(const std::vector<std::string>& command) {
  file_actions actions;
  actions.discard(STDOUT_FILENO);
  actions.discard(STDERR_FILENO);
  auto arguments = arguments_of(command);
  pid_t child = 0;
  return posix_spawnp(&child, arguments[0], actions.get(), nullptr, arguments.data(), environ) == 0;
}

}  // namespace opscope::cli
