// SPDX-License-Identifier: Apache-2.0
// A file that was opened with O_DIRECT goes through the page cache from now on. Some file systems take the
// flag and then refuse each read and write with EINVAL.
#pragma once

#include <fcntl.h>

namespace sluice::base {

// False: the kernel does not let it.
inline bool go_through_page_cache(int fd) {
  const int flags = ::fcntl(fd, F_GETFL);
  return flags >= 0 && ::fcntl(fd, F_SETFL, flags & ~O_DIRECT) == 0;
}

}  // namespace sluice::base
