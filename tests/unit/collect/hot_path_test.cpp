// SPDX-License-Identifier: Apache-2.0
//
// The promise of the hot path: after a thread's first record, emitting allocates nothing and makes
// no system call. Allocation is counted; system calls are forbidden by the kernel (seccomp's strict
// mode kills a process at the first one but read, write and exit).
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <new>
#include <thread>

#include "collect/emit.hpp"
#include "support/runtime_session.hpp"

namespace {

thread_local std::uint64_t allocations = 0;

}  // namespace

// Every allocation of this program is counted by its thread.
void* operator new(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc{};
}
void* operator new(std::size_t size, const std::nothrow_t& /*tag*/) noexcept {
  ++allocations;
  return std::malloc(size);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t /*size*/) noexcept { std::free(memory); }

namespace opscope::collect {
namespace {

using test::fake_runtime;
using test::name_of;
using test::op_event;
using test::runtime_session;

/// One of each event, as the layers emit them.
void emit_everything(const opscope_runtime& runtime) {
  const std::array<std::int64_t, 3> sizes{8, 1024, 1024};
  const opscope_argument argument{sizes.data(), 3, 0, "c10::BFloat16"};
  opscope_op_event op{};
  op.start_ns = runtime.now();
  op.id = runtime.next_id();
  op.name = name_of("aten::gelu");
  op.arguments = &argument;
  op.argument_count = 1;
  op.end_ns = runtime.now();
  runtime.op(&op);
  opscope_frame_event frame{};
  frame.name = name_of("forward");
  frame.file = name_of("model.py");
  runtime.frame(&frame);
  opscope_range_event range{};
  range.name = name_of("attention");
  range.domain = name_of("opscope");
  runtime.range(&range);
  runtime.call_mark(1, 2, 0, 0, 0);
  static_cast<void>(runtime.thread());
}

TEST(hot_path, allocates_nothing_after_the_first_record) {
  runtime_session session;
  ASSERT_EQ(session.start(), "");
  emit_everything(session.runtime);
  const std::uint64_t before = allocations;
  for (int i = 0; i < 10'000; ++i) emit_everything(session.runtime);  // through many chunks
  EXPECT_EQ(allocations, before);
}

TEST(hot_path, allocates_nothing_without_a_session) {
  const opscope_runtime& runtime = fake_runtime();
  emit_everything(runtime);
  const std::uint64_t before = allocations;
  for (int i = 0; i < 1000; ++i) emit_everything(runtime);
  EXPECT_EQ(allocations, before);
}

/// Ends the process at the calling thread's next system call but clock_gettime and exit.
bool forbid_system_calls() {
  std::array filter{
      sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clock_gettime, 2, 0),
      sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit, 1, 0),
      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST(hot_path, makes_no_system_call_after_the_first_record) {
  const pid_t child = fork();
  if (child == 0) {
    runtime_session session;
    session.options.no_gpu = 1;
    if (!session.start().empty()) _exit(3);
    static std::atomic<int> reached{0};
    // The filter is the thread's own: the writer thread goes on writing.
    std::thread{[&session] {
      emit_everything(session.runtime);
      if (!forbid_system_calls()) _exit(4);
      for (int i = 0; i < 10'000; ++i) emit_everything(session.runtime);
      reached = 1;
      syscall(SYS_exit, 0);  // allowed, to end this thread
    }}.detach();
    for (int i = 0; i < 1000 && reached == 0; ++i) usleep(10'000);
    std::filesystem::remove_all(session.folder.path());
    _exit(reached == 1 ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status)) << "the kernel ended the program at a system call";
  if (WEXITSTATUS(status) == 4) GTEST_SKIP() << "seccomp is not available";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(hot_path, a_signal_handler_that_emits_inside_an_emission_is_counted) {
  chunk_pool pool;
  pool.limit(1);
  hot_state hot;
  thread_log log;
  const std::atomic<std::uint32_t> open{1};
  log.busy = 1;
  emit({log, pool, hot}, open, stored_mark{});
  EXPECT_EQ(log.dropped[static_cast<std::size_t>(event_type::call_mark)], 1U);
  log.busy = 0;
  emit({log, pool, hot}, open, stored_mark{});
  EXPECT_EQ(log.used, sizeof(event_header) + sizeof(stored_mark));
}

}  // namespace
}  // namespace opscope::collect
