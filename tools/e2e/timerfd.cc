// To preload before libfaketime, which moves every timer with the faked wall clock
// (https://github.com/wolfcw/libfaketime/issues/431): one that is due already, which asio sets by an absolute
// moment, may then not come for years.
// SPDX-License-Identifier: Apache-2.0
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

extern "C" int timerfd_settime(int timer, int flags, const itimerspec* to, itimerspec* before) {
  return static_cast<int>(::syscall(SYS_timerfd_settime, timer, flags, to, before));
}
