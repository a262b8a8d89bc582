// SPDX-License-Identifier: Apache-2.0
#include "control/exports/file_state.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>

#include <cerrno>

#include "control/exports/times.h"

namespace sluice::exports {
namespace {

// A lease is given only while nobody has the file open for writing, or mapped so. It is given back at once:
// it would hold up whoever comes to write. Somebody who comes just now makes a signal, which must be one that
// nobody minds.
bool has_a_writer(int fd) {
  if (::fcntl(fd, F_SETSIG, SIGURG) != 0) return false;
  if (::fcntl(fd, F_SETLEASE, F_RDLCK) != 0) return errno == EAGAIN;
  ::fcntl(fd, F_SETLEASE, F_UNLCK);
  return false;
}

// Before Linux 6.13 all changes of one tick of this clock bear the same time.
bool changed_just_now(int64_t ctime_ns) {
  timespec now{};
  timespec tick{};
  ::clock_gettime(CLOCK_REALTIME_COARSE, &now);
  ::clock_getres(CLOCK_REALTIME_COARSE, &tick);
  return ctime_ns >= clock_ns_of(now) - clock_ns_of(tick);
}

}  // namespace

std::optional<FileState> state_of(int fd) {
  struct statx info {};
  if (::statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, &info) != 0) return std::nullopt;
  FileState state{
      .identity = {.device = ::makedev(info.stx_dev_major, info.stx_dev_minor), .inode = info.stx_ino},
      .size_bytes = info.stx_size,
      .mode = info.stx_mode,
      .uid = info.stx_uid,
      .gid = info.stx_gid,
      .mtime_ns = ns_of(info.stx_mtime),
      .ctime_ns = clock_ns_of(info.stx_ctime)};
  if ((info.stx_mask & STATX_BTIME) != 0) state.identity.birth_ns = clock_ns_of(info.stx_btime);
  int generation = 0;
  if (S_ISREG(state.mode) && ::ioctl(fd, FS_IOC_GETVERSION, &generation) == 0)
    state.identity.generation = static_cast<uint32_t>(generation);
  return state;
}

bool may_be_changing(int fd, const FileState& state) {
  return has_a_writer(fd) || changed_just_now(state.ctime_ns);
}

}  // namespace sluice::exports
