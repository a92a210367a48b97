// SPDX-License-Identifier: Apache-2.0
//
// What happens to a process happens to its capture: kill, fork, exit, a full disk, ending threads.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <functional>
#include <future>
#include <thread>
#include <vector>

#include "support/rows.hpp"
#include "support/runtime_session.hpp"

namespace opscope::collect {
namespace {

using test::all;
using test::op_event;
using test::runtime_session;

/// Runs `body` in a child process and gives its wait status.
int in_child(const std::function<void()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    body();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

void emit_op(const runtime_session& session, const char* name) {
  const auto event = op_event(name, 1, 2);
  session.runtime.op(&event);
}

/// A thread that has emitted an op and lives on until it is joined, where it may emit another.
class lingering_thread {
 public:
  explicit lingering_thread(const runtime_session& session, const char* last = nullptr)
      : thread_{[this, &session, last] {
          emit_op(session, "aten::add");
          emitted_.set_value();
          joined_.get_future().wait();
          if (last != nullptr) emit_op(session, last);
        }} {
    emitted_.get_future().wait();
  }

  void join() {
    joined_.set_value();
    thread_.join();
  }

 private:
  std::promise<void> emitted_;
  std::promise<void> joined_;
  std::thread thread_;
};

result<capture::capture> open(const std::filesystem::path& path) {
  return capture::capture::open(path);
}

TEST(process, killed_in_a_session_leaves_a_capture_up_to_the_last_segment) {
  const test::temporary_folder folder;
  const std::string path = folder / "a.opscope";
  const int status = in_child([&path] {
    runtime_session session;
    session.options.output = path.c_str();
    if (!session.start().empty()) _exit(3);
    for (int i = 0; i < 1000; ++i) emit_op(session, "aten::add");
    usleep(500'000);  // several times the writer's interval
    kill(getpid(), SIGKILL);
  });
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_FALSE(std::filesystem::exists(path));
  const auto read = open(path + ".partial");
  ASSERT_TRUE(read.ok());
  EXPECT_TRUE(read.value().recovered());
  EXPECT_EQ(read.value().count(record_kind::op), 1000U);
  EXPECT_EQ(read.value().collected().count(outcome::delivered, "cpu_op"), 1000U);
}

TEST(process, exit_without_a_stop_closes_the_capture) {
  const test::temporary_folder folder;
  const std::string path = folder / "a.opscope";
  const int status = in_child([&path] {
    auto* session = new runtime_session;  // its destructor, which stops, never runs
    session->options.output = path.c_str();
    if (!session->start().empty()) _exit(3);
    emit_op(*session, "aten::add");
    std::exit(0);
  });
  EXPECT_EQ(WEXITSTATUS(status), 0);
  const auto read = open(path);
  ASSERT_TRUE(read.ok());
  EXPECT_FALSE(read.value().recovered());
  EXPECT_EQ(read.value().count(record_kind::op), 1U);
}

TEST(process, exit_without_a_stop_lets_the_layers_write_what_is_open) {
  static constexpr opscope_layer layer{
      "nvtx", [](const opscope_session_options*, char*, std::size_t) { return 0; },
      [] {
        const auto event = op_event("open", 1, 2);
        test::fake_runtime().op(&event);
      }};
  const test::temporary_folder folder;
  const std::string path = folder / "a.opscope";
  const int status = in_child([&path] {
    auto* session = new runtime_session;  // its destructor, which stops, never runs
    session->runtime.register_layer(&layer);
    session->options.output = path.c_str();
    if (!session->start().empty()) _exit(3);
    emit_op(*session, "aten::add");
    std::exit(0);
  });
  EXPECT_EQ(WEXITSTATUS(status), 0);
  const auto read = open(path);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read.value().count(record_kind::op), 2U);
  EXPECT_EQ(read.value().collected().total(outcome::dropped), 0U);
}

TEST(process, a_forked_child_does_not_write_into_its_parents_capture) {
  runtime_session session;
  ASSERT_EQ(session.start(), "");
  emit_op(session, "parent");
  const int status = in_child([&session] {
    if (*session.runtime.recording != 0) _exit(3);
    emit_op(session, "child");
    if (session.runtime.session_stop(nullptr, 0) == 0) _exit(4);
  });
  EXPECT_EQ(WEXITSTATUS(status), 0);
  emit_op(session, "parent");
  const auto read = session.finish();
  EXPECT_EQ(read.count(record_kind::op), 2U);
  EXPECT_FALSE(read.recovered());
}

TEST(process, a_forked_child_may_record_for_itself) {
  runtime_session session;
  ASSERT_EQ(session.start(), "");
  const std::string path = session.folder / "child.opscope";
  const int status = in_child([&] {
    session.options.output = path.c_str();
    if (!session.start().empty()) _exit(3);
    emit_op(session, "child");
    if (!session.stop().empty()) _exit(4);
  });
  ASSERT_EQ(WEXITSTATUS(status), 0);
  const auto read = open(path);
  ASSERT_TRUE(read.ok());
  const auto ops = all<op>(read.value());
  ASSERT_EQ(ops.size(), 1U);
  EXPECT_EQ(read.value().text(ops[0].name), "child");
  EXPECT_EQ(session.stop(), "");
}

TEST(process, a_disk_that_fills_up_is_reported_and_the_partial_file_stays) {
  const test::temporary_folder folder;
  const std::string path = folder / "a.opscope";
  const int status = in_child([&path] {
    std::signal(SIGXFSZ, SIG_IGN);
    runtime_session session;
    session.options.output = path.c_str();
    if (!session.start().empty()) _exit(3);
    emit_op(session, "aten::add");
    session.runtime.session_flush();
    const auto size = std::filesystem::file_size(path + ".partial");
    const rlimit limit{size + 16, size + 16};
    setrlimit(RLIMIT_FSIZE, &limit);
    for (int i = 0; i < 1000; ++i) emit_op(session, "aten::mul");
    const std::string reason = session.stop();
    if (reason.find("ulimit -f") == std::string::npos) _exit(4);
    if (reason.find(".partial'") == std::string::npos) _exit(5);
  });
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  const auto read = open(path + ".partial");
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read.value().count(record_kind::op), 1U);
}

TEST(process, a_disk_that_has_room_again_at_the_end_completes_the_capture) {
  const test::temporary_folder folder;
  const std::string path = folder / "a.opscope";
  const int status = in_child([&path] {
    std::signal(SIGXFSZ, SIG_IGN);
    runtime_session session;
    session.options.output = path.c_str();
    if (!session.start().empty()) _exit(3);
    emit_op(session, "before");
    session.runtime.session_flush();
    rlimit limit{};
    getrlimit(RLIMIT_FSIZE, &limit);
    const rlimit full{std::filesystem::file_size(path + ".partial"), limit.rlim_max};
    setrlimit(RLIMIT_FSIZE, &full);
    emit_op(session, "meanwhile");
    session.runtime.session_flush();
    setrlimit(RLIMIT_FSIZE, &limit);
    emit_op(session, "after");
    if (!session.stop().empty()) _exit(4);
  });
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  const auto read = open(path);
  ASSERT_TRUE(read.ok());
  EXPECT_FALSE(read.value().recovered());
  std::vector<std::string_view> names;
  for (const auto& row : all<op>(read.value())) names.push_back(read.value().text(row.name));
  EXPECT_EQ(names, (std::vector<std::string_view>{"before", "after"}));
  EXPECT_EQ(read.value().collected().count(outcome::dropped, "cpu_op"), 1U);
}

TEST(process, a_capture_that_was_removed_meanwhile_is_not_said_to_be_kept) {
  runtime_session session;
  ASSERT_EQ(session.start(), "");
  const std::filesystem::path path{session.runtime.session_path()};
  std::filesystem::remove(path.string() + ".partial");
  EXPECT_NE(session.stop().find("was removed meanwhile"), std::string::npos);
}

TEST(process, memory_that_the_machine_refuses_is_named_and_not_taken) {
  const test::temporary_folder folder;
  const std::string path = folder / "a.opscope";
  const int status = in_child([&path] {
    const rlimit limit{std::size_t{1} << 30U, std::size_t{1} << 30U};
    setrlimit(RLIMIT_AS, &limit);
    runtime_session session;
    session.options.output = path.c_str();
    session.options.memory_bytes = std::size_t{8} << 30U;
    const std::string reason = session.start();
    if (reason.find("8192 MiB: Cannot allocate memory (lower memory)") == std::string::npos) {
      _exit(3);
    }
    session.options.memory_bytes = std::size_t{64} << 20U;
    if (!session.start().empty() || !session.stop().empty()) _exit(4);
  });
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(process, a_rerun_after_a_kill_records_and_keeps_what_the_killed_one_left) {
  const test::temporary_folder folder;
  const std::string path = folder / "a.opscope";
  const auto record = [&path](bool killed) {
    runtime_session session;
    session.options.output = path.c_str();
    if (!session.start().empty()) _exit(3);
    if (killed) kill(getpid(), SIGKILL);
    if (!session.stop().empty()) _exit(4);
  };
  ASSERT_TRUE(WIFSIGNALED(in_child([&] { record(true); })));
  EXPECT_EQ(in_child([&] { record(false); }), 0);
  EXPECT_TRUE(open(path + ".partial.1").ok());
  const auto read = open(path);
  ASSERT_TRUE(read.ok());
  bool warned = false;
  for (const auto& document : read.value().documents()) {
    warned = warned || document.json.find(".partial.1' (read or remove it)") != std::string::npos;
  }
  EXPECT_TRUE(warned) << "in one line";
}

TEST(process, the_events_of_an_ended_thread_are_kept) {
  runtime_session session;
  ASSERT_EQ(session.start(), "");
  for (int i = 0; i < 200; ++i) {
    std::thread{[&session] { emit_op(session, "aten::add"); }}.join();
  }
  const auto read = session.finish();
  EXPECT_EQ(read.count(record_kind::op), 200U);
  EXPECT_EQ(read.count(record_kind::thread_info), 200U);
}

TEST(process, a_thread_that_ends_while_the_session_stops_loses_nothing) {
  runtime_session session;
  ASSERT_EQ(session.start(), "");
  lingering_thread worker{session};
  // Recording is over by then and the writer's last pass is to come.
  test::gpu().at_stop = [&](activity_sink&) { worker.join(); };
  const auto read = session.finish();
  EXPECT_EQ(read.count(record_kind::op), 1U);
  EXPECT_EQ(read.collected().count(outcome::delivered, "cpu_op"), 1U);
}

TEST(process, a_thread_that_ends_in_a_pause_loses_nothing) {
  runtime_session session;
  ASSERT_EQ(session.start(), "");
  lingering_thread worker{session, "aten::mul"};
  session.runtime.session_pause();
  worker.join();
  session.runtime.session_resume();
  EXPECT_EQ(session.finish().count(record_kind::op), 1U);
}

TEST(process, what_a_thread_recorded_stays_out_of_the_session_after_its_own) {
  runtime_session session;
  ASSERT_EQ(session.start(), "");
  lingering_thread worker{session};
  EXPECT_EQ(session.finish().count(record_kind::op), 1U);
  worker.join();
  std::thread{[&] { emit_op(session, "aten::mul"); }}.join();
  ASSERT_EQ(session.start("b.opscope"), "");
  EXPECT_EQ(session.finish().count(record_kind::op), 0U);
}

TEST(process, forks_while_eight_threads_emit_leave_both_sides_whole) {
  constexpr int threads = 8;
  constexpr int children = 40;
  runtime_session session;
  session.options.wait_when_full = 1;
  ASSERT_EQ(session.start(), "");
  std::atomic<bool> enough{false};
  std::atomic<std::uint64_t> emitted{0};
  std::vector<std::thread> running;
  for (int i = 0; i < threads; ++i) {
    running.emplace_back([&] {
      std::uint64_t mine = 0;
      for (; !enough; ++mine) {
        emit_op(session, "aten::add");
        const std::string name = std::to_string(mine % 100);
        static_cast<void>(session.runtime.intern(name.data(), name.size()));
        session.runtime.account(static_cast<std::uint32_t>(outcome::clamped), "cpu_op", 1);
      }
      emitted += mine;
    });
  }
  for (int i = 0; i < children; ++i) {
    const std::string path = session.folder / ("child" + std::to_string(i) + ".opscope");
    EXPECT_EQ(in_child([&] {
                alarm(20);  // a lock that a thread of the parent held would never open
                emit_op(session, "ignored");
                session.options.output = path.c_str();
                if (!session.start().empty()) _exit(3);
                std::thread{[&] { emit_op(session, "child"); }}.join();
                emit_op(session, "child");
                if (!session.stop().empty()) _exit(4);
              }),
              0);
    const auto read = open(path);
    ASSERT_TRUE(read.ok());
    EXPECT_EQ(read.value().count(record_kind::op), 2U);
  }
  enough = true;
  for (auto& thread : running) thread.join();
  EXPECT_EQ(session.finish().count(record_kind::op), emitted);
}

TEST(process, threads_that_end_without_a_session_leave_nothing_for_the_next) {
  runtime_session session;
  for (int i = 0; i < 50; ++i) {
    std::thread{[&session] { static_cast<void>(session.runtime.thread()); }}.join();
  }
  ASSERT_EQ(session.start(), "");
  EXPECT_EQ(session.finish().count(record_kind::thread_info), 0U);
}

TEST(process, signals_are_delivered_to_the_programs_own_threads) {
  static std::atomic<pid_t> handled_by{0};
  runtime_session session;
  ASSERT_EQ(session.start(), "");
  const auto before = std::signal(SIGUSR1, [](int) { handled_by = gettid(); });
  for (int i = 0; i < 20; ++i) {
    kill(getpid(), SIGUSR1);
    EXPECT_EQ(handled_by, gettid());
  }
  std::signal(SIGUSR1, before);
}

}  // namespace
}  // namespace opscope::collect
