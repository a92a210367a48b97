// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

namespace opscope::viewer {

/// Serves the Perfetto UI and one trace on 127.0.0.1, to this machine's browser and nobody else:
/// the trace lies under a random path, requests for another host name are refused (DNS rebinding),
/// and the page is forbidden to talk to any other server.
class server {
 public:
  /// Binds at once, so that the address is known before run().
  /// @param ui folder with Perfetto's index.html.
  /// @param trace file to serve as the trace; it must stay there.
  /// @param port to listen on, 0: any.
  /// @throws opscope::error when the port cannot be had.
  server(const std::filesystem::path& ui, std::filesystem::path trace, std::uint16_t port);
  ~server();
  server(const server&) = delete;
  server& operator=(const server&) = delete;

  /// What to open in a browser: the UI with the trace loaded and its tracks expanded.
  [[nodiscard]] std::string address() const;
  [[nodiscard]] std::uint16_t port() const noexcept;

  /// Serves until stop() is called, from any thread; then connections are cut, busy or not.
  void run();
  void stop();

 private:
  class state;
  std::unique_ptr<state> state_;
};

}  // namespace opscope::viewer
