// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>
#include <signal.h>

#include <thread>
#include <utility>

namespace opscope::collect {

/// Starts a thread that takes none of the program's signals: those are its own threads' business.
template <typename Body>
[[nodiscard]] std::thread quiet_thread(const char* name, Body body) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const struct restore {
    const sigset_t& mask;
    ~restore() { pthread_sigmask(SIG_SETMASK, &mask, nullptr); }
  } restore_mask{before};
  return std::thread{[name, body = std::move(body)] {
    pthread_setname_np(pthread_self(), name);
    body();
  }};
}

}  // namespace opscope::collect
