// SPDX-License-Identifier: Apache-2.0
#include "capture/opening.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace opscope::capture {

int open_file(const char* path, int flags, mode_t mode) noexcept {
  const int opened = ::open(path, flags | O_CLOEXEC, mode);
  if (opened < 0 || opened > STDERR_FILENO) return opened;
  const int above = ::fcntl(opened, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  const int status = errno;
  ::close(opened);
  errno = status;
  return above;
}

}  // namespace opscope::capture
