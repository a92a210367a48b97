// SPDX-License-Identifier: Apache-2.0
#include "opscope/profile.hpp"

#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include "model/records.hpp"
#include "profile/runtime_access.hpp"

namespace opscope {
namespace {

/// Fills in `%h`, `%p` and `%r`; `%%` is a percent sign, anything else stays.
std::string expanded(const std::string& pattern) {
  std::string path;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char next = pattern[i] == '%' && i + 1 < pattern.size() ? pattern[i + 1] : '\0';
    if (next == 'p') {
      path += std::to_string(::getpid());
    } else if (next == 'h') {
      std::array<char, 256> host{};
      ::gethostname(host.data(), host.size() - 1);
      path += host.data();
    } else if (next == 'r') {
      const char* rank = std::getenv("RANK");
      path += rank != nullptr ? rank : "0";
    } else if (next == '%') {
      path += '%';
    } else {
      path += pattern[i];
      continue;
    }
    ++i;
  }
  return path;
}

opscope_name name_of(std::string_view text) {
  return {text.data(), static_cast<std::uint32_t>(text.size()), 0};
}

}  // namespace

class profile::state {
 public:
  explicit state(const profile_options& options)
      : runtime_{require_runtime()},
        path_{
            expanded(options.output.empty() ? "opscope-%h-%p.opscope" : options.output.string())} {
    if (path_.native().find('\0') != std::string::npos) {
      throw error("profile: the path holds a NUL byte (leave that out)");
    }
    const std::string no_ops = options.ops ? load_op_observer() : std::string{};
    if (options.strict && !no_ops.empty()) throw error(no_ops);
    opscope_session_options session{};
    session.size = sizeof session;
    session.output = path_.c_str();
    session.force = options.force ? 1 : 0;
    session.strict = options.strict ? 1 : 0;
    session.shapes = options.shapes ? 1 : 0;
    session.dram = options.dram == dram_mode::ops ? OPSCOPE_DRAM_OPS : OPSCOPE_DRAM_OFF;
    session.memory_bytes = options.memory_bytes;
    session.wait_when_full = options.wait_when_full ? 1 : 0;
    session.no_gpu = options.gpu ? 0 : 1;
    session.no_ops = options.ops ? 0 : 1;
    session.no_nvtx = options.nvtx ? 0 : 1;
    std::array<char, 1024> reason{};
    if (runtime_.session_start(&session, reason.data(), reason.size()) != 0) {
      throw error(reason.data());
    }
    on_ = true;
    owner_ = ::getpid();
    wants_ops_ = options.ops;
    had_torch_ = torch_is_loaded();
    step_start_ = runtime_.now();
    if (!no_ops.empty()) runtime_.warn(no_ops.c_str());
  }

  void stop() {
    if (!std::exchange(on_, false)) return;
    if (owner_ != ::getpid()) return;  // a forked child: the session is its parent's
    if (wants_ops_ && !had_torch_ && torch_is_loaded()) {
      runtime_.warn(
          "ops are not recorded: libtorch was loaded after the profile had started (load it "
          "first)");
    }
    std::array<char, 1024> reason{};
    if (runtime_.session_stop(reason.data(), reason.size()) != 0) throw error(reason.data());
  }

  void step() {
    if (!on_) return;
    const std::uint64_t now = runtime_.now();
    const std::string name = "ProfilerStep#" + std::to_string(step_++);
    opscope_range_event event{};
    event.start_ns = std::exchange(step_start_, now);
    event.end_ns = now;
    event.id = runtime_.next_id();
    event.name = name_of(name);
    event.domain = name_of("opscope");
    event.flags = range::step;
    runtime_.range(&event);
  }

  void pause() const {
    if (on_) runtime_.session_pause();
  }
  void resume() {
    if (on_) runtime_.session_resume();
    step_start_ = runtime_.now();
  }

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

 private:
  const opscope_runtime& runtime_;
  std::filesystem::path path_;
  bool on_ = false;
  pid_t owner_ = 0;
  bool wants_ops_ = false;
  bool had_torch_ = false;
  std::uint64_t step_ = 0;
  std::uint64_t step_start_ = 0;
};

// NOLINTNEXTLINE(performance-unnecessary-value-param): the interface takes it by value
profile::profile(profile_options options) : state_{std::make_unique<state>(options)} {}

void detach() {
  std::array<char, 1024> reason{};
  if (require_runtime().detach(reason.data(), reason.size()) != 0) {
    throw error(std::string{"cannot detach: "} + reason.data());
  }
}

void profile::stop() {
  if (state_) state_->stop();
}

void profile::step() {
  if (state_) state_->step();
}

void profile::pause() {
  if (state_) state_->pause();
}

void profile::resume() {
  if (state_) state_->resume();
}

const std::filesystem::path& profile::path() const noexcept {
  static const std::filesystem::path none;
  return state_ ? state_->path() : none;
}

profile::profile(profile&& other) noexcept = default;

profile& profile::operator=(profile&& other) noexcept {
  if (this != &other) {
    const profile ended{std::move(*this)};
    state_ = std::move(other.state_);
  }
  return *this;
}

profile::~profile() {
  try {
    stop();
  } catch (const std::exception& failed) {
    std::fprintf(stderr, "opscope: warning: %s\n", failed.what());
  }
}

}  // namespace opscope
