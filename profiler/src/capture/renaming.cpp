// SPDX-License-Identifier: Apache-2.0
#include "capture/renaming.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

namespace opscope::capture {

int rename_over(const char* from, const char* to) noexcept {
  return std::rename(from, to) == 0 ? 0 : errno;
}

int rename_new(const char* from, const char* to) noexcept {
  if (::renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS) return errno;
  if (::link(from, to) == 0) {
    ::unlink(from);
    return 0;
  }
  if (errno != EPERM && errno != EOPNOTSUPP && errno != ENOSYS) return errno;
  if (::faccessat(AT_FDCWD, to, F_OK, AT_SYMLINK_NOFOLLOW) == 0) return EEXIST;
  return rename_over(from, to);
}

}  // namespace opscope::capture
