// SPDX-License-Identifier: Apache-2.0
#include "dataplane/base/writer.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <sys/vfs.h>

#include <cerrno>

namespace sluice::base {
namespace {

// Their clients refuse a lease, with the same EAGAIN, also wherever the server has not promised them the file
// (no delegation, no oplock), which says nothing of who writes.
bool refuses_without_a_promise(int fd) {
  struct statfs info {};
  if (::fstatfs(fd, &info) != 0) return false;
  const auto type = static_cast<uint32_t>(info.f_type);
  return type == NFS_SUPER_MAGIC || type == CIFS_SUPER_MAGIC || type == SMB2_SUPER_MAGIC;
}

}  // namespace

Writer writer_of(int fd) {
  if (::fcntl(fd, F_SETSIG, SIGURG) != 0) return Writer::kUnknown;
  if (::fcntl(fd, F_SETLEASE, F_RDLCK) != 0)
    return errno == EAGAIN && !refuses_without_a_promise(fd) ? Writer::kSome : Writer::kUnknown;
  ::fcntl(fd, F_SETLEASE, F_UNLCK);
  return Writer::kNone;
}

}  // namespace sluice::base
