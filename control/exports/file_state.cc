// SPDX-License-Identifier: Apache-2.0
#include "control/exports/file_state.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>

#include "control/exports/times.h"
#include "dataplane/base/writer.h"

namespace sluice::exports {
namespace {

// Before Linux 6.13 all changes of one tick of this clock bear the same time.
bool changed_just_now(int64_t ctime_ns) {
  timespec now{};
  timespec tick{};
  ::clock_gettime(CLOCK_REALTIME_COARSE, &now);
  ::clock_getres(CLOCK_REALTIME_COARSE, &tick);
  return ctime_ns >= clock_ns_of(now) - clock_ns_of(tick);
}

// File systems whose files are made by the kernel while they are read. Others that do so (FUSE) are known by
// a file that says it is empty, and is not.
bool made_while_read(const struct statfs& info) {
  constexpr uint64_t kConfigfs = 0x62656570;
  const auto type = static_cast<uint64_t>(static_cast<unsigned long>(info.f_type));
  for (const uint64_t known :
       {uint64_t{PROC_SUPER_MAGIC}, uint64_t{SYSFS_MAGIC}, uint64_t{CGROUP_SUPER_MAGIC},
        uint64_t{CGROUP2_SUPER_MAGIC}, uint64_t{DEBUGFS_MAGIC}, uint64_t{TRACEFS_MAGIC},
        uint64_t{SECURITYFS_MAGIC}, uint64_t{SELINUX_MAGIC}, kConfigfs, uint64_t{RDTGROUP_SUPER_MAGIC}}) {
    if (type == known) return true;
  }
  return false;
}

}  // namespace

bool tells_its_size(int fd, const struct stat& info) {
  // What has blocks on a disk has its bytes there.
  if (info.st_blocks != 0) return true;
  struct statfs system {};
  if (::fstatfs(fd, &system) == 0 && made_while_read(system)) return false;
  if (info.st_size != 0) return true;
  char byte = 0;
  ssize_t got = 0;
  do {
    got = ::pread(fd, &byte, 1, 0);
  } while (got < 0 && errno == EINTR);
  return got == 0;
}

Error tells_no_size(const std::string& shown) {
  return {
      ErrorCode::kSourceUnreadable,
      shown + ": does not say how long it is, as files of /proc and /sys: copy it to a file, and send that"};
}

std::optional<FileState> state_of(int fd, bool ask_server) {
  struct statx info {};
  const int sync = ask_server ? AT_STATX_FORCE_SYNC : AT_STATX_SYNC_AS_STAT;
  if (::statx(fd, "", AT_EMPTY_PATH | sync, STATX_BASIC_STATS | STATX_BTIME, &info) != 0) return std::nullopt;
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
  return base::writer_of(fd) == base::Writer::kSome || changed_just_now(state.ctime_ns);
}

}  // namespace sluice::exports
