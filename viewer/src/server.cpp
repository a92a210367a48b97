// SPDX-License-Identifier: Apache-2.0
#include "viewer/server.hpp"

#include <httplib.h>
#include <netinet/in.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "opscope/error.hpp"

namespace opscope::viewer {
namespace {

constexpr const char* loopback = "127.0.0.1";

// The UI is WebAssembly and compiles at run time; everything else stays on this origin, so that no
// trace leaves the machine.
constexpr const char* content_policy =
    "default-src 'self'; "
    "script-src 'self' 'unsafe-inline' 'unsafe-eval' 'wasm-unsafe-eval' blob:; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self' data:; "
    "worker-src 'self' blob:; connect-src 'self' data: blob:; object-src 'none'; "
    "frame-ancestors 'none'";

/// ["dev.perfetto.ExpandTracksByRegex", ".*"]: the groups start collapsed otherwise.
constexpr std::string_view expand_tracks =
    "%5B%7B%22id%22%3A%22dev.perfetto.ExpandTracksByRegex%22%2C%22args%22%3A%5B%22.*%22%5D%7D%5D";

std::string random_token() {
  std::array<unsigned char, 16> bytes{};
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    throw error("view: the system gives no random bytes (try again)");
  }
  constexpr std::string_view hex = "0123456789abcdef";
  std::string token;
  for (const auto byte : bytes) {
    token += hex[byte >> 4U];
    token += hex[byte & 0xFU];
  }
  return token;
}

/// Media types of what the UI consists of.
const char* media_type(const std::filesystem::path& path) {
  static const std::map<std::string, const char*, std::less<>> known{
      {".html", "text/html"},    {".js", "text/javascript"},    {".mjs", "text/javascript"},
      {".css", "text/css"},      {".wasm", "application/wasm"}, {".json", "application/json"},
      {".svg", "image/svg+xml"}, {".png", "image/png"},         {".woff2", "font/woff2"},
      {".ico", "image/x-icon"},  {".map", "application/json"}};
  const auto found = known.find(path.extension().string());
  return found == known.end() ? "application/octet-stream" : found->second;
}

/// The file that a request's path names, when it lies in `root`.
std::optional<std::filesystem::path> file_in(const std::filesystem::path& root,
                                             const std::string& requested) {
  std::error_code failed;
  auto file = std::filesystem::weakly_canonical(root / requested.substr(1), failed);
  if (!failed && std::filesystem::is_directory(file, failed)) file /= "index.html";
  if (failed || !std::filesystem::is_regular_file(file, failed)) return std::nullopt;
  const auto inside = file.lexically_relative(root);
  if (inside.empty() || *inside.begin() == "..") return std::nullopt;
  return file;
}

/// Cuts the ranges of a request to what a file of `size` bytes has, which httplib does not.
/// @return false: they all lie outside of it.
bool cut_ranges(httplib::Ranges& ranges, std::size_t size) {
  const auto end = static_cast<ssize_t>(size);
  httplib::Ranges inside;
  for (auto [first, last] : ranges) {  // -1: not given
    if (first < 0) {
      first = std::max<ssize_t>(0, end - last);
      last = -1;
    }
    if (last < 0 || last >= end) last = end - 1;
    if (first <= last) inside.emplace_back(first, last);
  }
  ranges = std::move(inside);
  return !ranges.empty();
}

/// Hands a file out in pieces: a trace may be larger than memory. Never compressed, which for a
/// file of the UI takes longer than loading all of it.
void send_file(const std::filesystem::path& path, const char* type, const httplib::Request& request,
               httplib::Response& response) {
  auto file = std::make_shared<std::ifstream>(path, std::ios::binary | std::ios::ate);
  if (!*file) {
    response.status = 404;
    return;
  }
  const auto size = static_cast<std::size_t>(file->tellg());
  // httplib reads the ranges again when it answers, and hands them out as constant only.
  auto& ranges = const_cast<httplib::Request&>(request).ranges;
  if (!ranges.empty() && !cut_ranges(ranges, size)) {
    response.status = 416;
    response.set_header("Content-Range", "bytes */" + std::to_string(size));
    return;
  }
  if (size == 0) return response.set_content("", type);
  response.set_content_provider(
      size, type, [file](std::size_t offset, std::size_t length, httplib::DataSink& sink) {
        constexpr std::size_t largest = std::size_t{1} << 20U;
        std::vector<char> piece(std::min(length, largest));
        file->clear();
        file->seekg(static_cast<std::streamoff>(offset));
        file->read(piece.data(), static_cast<std::streamsize>(piece.size()));
        const auto got = static_cast<std::size_t>(file->gcount());
        return got > 0 && sink.write(piece.data(), got);
      });
}

/// Only what lets a server start again at once where one has just ended. httplib's own choice is
/// SO_REUSEPORT, with which two servers share a port and each gets some of the requests.
void allow_restart(socket_t socket) {
  const int yes = 1;
  setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
}

/// Ends what clients hold open to `port`: httplib knows no way to its connections, and would wait
/// for the next request of each until its timeout.
void hang_up(int port) {
  std::error_code failed;
  for (std::filesystem::directory_iterator each{"/proc/self/fd", failed}, end;
       !failed && each != end; each.increment(failed)) {
    const auto name = each->path().filename().string();
    int descriptor = -1;
    std::from_chars(name.data(), name.data() + name.size(), descriptor);
    sockaddr_in local{};
    socklen_t size = sizeof local;
    if (getsockname(descriptor, reinterpret_cast<sockaddr*>(&local), &size) == 0 &&
        local.sin_family == AF_INET && ntohs(local.sin_port) == port) {
      ::shutdown(descriptor, SHUT_RDWR);
    }
  }
}

/// A thread for each connection at a time: a browser holds some open that it does not use, and
/// those must not keep others waiting.
class growing_pool final : public httplib::TaskQueue {
 public:
  explicit growing_pool(int port) : port_{port} {}

  using queued = decltype(std::declval<httplib::TaskQueue&>().enqueue({}));  // by httplib's version

  queued enqueue(std::function<void()> task) override {
    {
      const std::scoped_lock hold{mutex_};
      tasks_.push_back(std::move(task));
      if (tasks_.size() > idle_ && threads_.size() < most)
        threads_.emplace_back([this] { work(); });
    }
    changed_.notify_one();
    return static_cast<queued>(true);
  }

  /// Called once no connection is accepted any more.
  void shutdown() override {
    {
      const std::scoped_lock hold{mutex_};
      ended_ = true;
    }
    changed_.notify_all();
    hang_up(port_);
    for (auto& thread : threads_) thread.join();
  }

 private:
  static constexpr std::size_t most = 256;

  void work() {
    std::unique_lock hold{mutex_};
    for (;;) {
      ++idle_;
      changed_.wait(hold, [this] { return ended_ || !tasks_.empty(); });
      --idle_;
      if (tasks_.empty()) return;
      const auto task = std::move(tasks_.front());
      tasks_.pop_front();
      hold.unlock();
      task();
      hold.lock();
    }
  }

  int port_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  std::size_t idle_ = 0;  ///< threads that wait for a task
  bool ended_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace

class server::state {
 public:
  state(const std::filesystem::path& ui, std::filesystem::path trace, std::uint16_t wanted)
      : trace_path{"/" + random_token() + "/trace.json"} {
    http.new_task_queue = [this] { return new growing_pool{port}; };
    http.set_socket_options(allow_restart);
    http.set_default_headers({{"Content-Security-Policy", content_policy},
                              {"X-Content-Type-Options", "nosniff"},
                              {"Referrer-Policy", "no-referrer"},
                              {"Cache-Control", "no-store"}});
    std::error_code failed;
    const auto root = std::filesystem::canonical(ui, failed);
    if (failed) throw error("view: " + ui.string() + " is not a folder (set OPSCOPE_PERFETTO_UI)");
    http.Get(trace_path, [trace = std::move(trace)](const httplib::Request& request,
                                                    httplib::Response& response) {
      send_file(trace, "application/json", request, response);
    });
    http.Get("/.*", [root](const httplib::Request& request, httplib::Response& response) {
      if (const auto file = file_in(root, request.path)) {
        send_file(*file, media_type(*file), request, response);
      } else {
        response.status = 404;
      }
    });
    bind(wanted);
    http.set_pre_routing_handler(
        [this](const httplib::Request& request, httplib::Response& response) {
          if (addressed_here(request.get_header_value("Host"))) {
            return httplib::Server::HandlerResponse::Unhandled;
          }
          response.status = 403;
          response.set_content("this server answers to 127.0.0.1 only\n", "text/plain");
          return httplib::Server::HandlerResponse::Handled;
        });
  }

  void run() {
    {
      const std::scoped_lock hold{mutex_};
      if (stopped_) return;
      began_ = true;
    }
    http.listen_after_bind();
    ended_ = true;
  }

  void stop() {
    {
      const std::scoped_lock hold{mutex_};
      stopped_ = true;
      if (!began_) return;
    }
    // httplib overlooks a stop that comes before it listens.
    while (!ended_ && !http.is_running()) std::this_thread::sleep_for(std::chrono::milliseconds{1});
    http.stop();
  }

  httplib::Server http;
  std::string trace_path;
  int port = 0;

 private:
  void bind(std::uint16_t wanted) {
    if (wanted == 0) {
      port = http.bind_to_any_port(loopback);
    } else {
      port = http.bind_to_port(loopback, wanted) ? wanted : -1;
    }
    if (port <= 0) {
      throw error("view: port " + std::to_string(wanted) +
                  " cannot be had (choose another --port, or leave it out)");
    }
  }

  [[nodiscard]] bool addressed_here(const std::string& host) const {
    const auto suffix = ":" + std::to_string(port);
    return host == loopback + suffix || host == "localhost" + suffix;
  }

  std::mutex mutex_;
  bool began_ = false;
  bool stopped_ = false;
  std::atomic<bool> ended_ = false;
};

server::server(const std::filesystem::path& ui, std::filesystem::path trace, std::uint16_t port)
    : state_{std::make_unique<state>(ui, std::move(trace), port)} {}

server::~server() = default;

std::string server::address() const {
  const auto origin = std::string{"http://"} + loopback + ":" + std::to_string(state_->port);
  return origin + "/#!/?url=" + origin + state_->trace_path +
         "&startupCommands=" + std::string{expand_tracks};
}

std::uint16_t server::port() const noexcept { return static_cast<std::uint16_t>(state_->port); }

void server::run() { state_->run(); }

void server::stop() { state_->stop(); }

}  // namespace opscope::viewer
