// Cold. See threads.h.
// SPDX-License-Identifier: Apache-2.0
#include "dataplane/base/sandbox/threads.h"

#include <linux/capability.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "dataplane/base/sandbox/landlock.h"

namespace sluice::sandbox {
namespace {

namespace fs = std::filesystem;

constexpr size_t kThreadsMax = 4096;
constexpr int kLooks = 500;
constexpr auto kLook = std::chrono::milliseconds(2);

int order_signal() { return SIGRTMIN + 6; }

// Set before any signal is sent.
uint64_t wanted_capabilities = 0;
int wanted_ruleset = -1;

// Who has obeyed, and how.
std::array<std::atomic<pid_t>, kThreadsMax> obeyed;
std::atomic<size_t> obeyed_count{0};
std::atomic<int> failure{0};

// In the handler only plain system calls are allowed.
int drop_own() {
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return errno;
  // This needs CAP_SETPCAP, which only root has; without new privileges it is an extra.
  for (unsigned long capability = 0; capability < 64; ++capability)
    prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);
  prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = {};
  if (syscall(SYS_capget, &header, sets) != 0) return errno;
  for (unsigned i = 0; i < _LINUX_CAPABILITY_U32S_3; ++i) {
    const auto kept = static_cast<uint32_t>(wanted_capabilities >> (32 * i));
    sets[i].permitted &= kept;
    sets[i].effective &= kept;
    sets[i].inheritable = 0;
  }
  if (syscall(SYS_capset, &header, sets) != 0) return errno;
  return wanted_ruleset < 0 ? 0 : restrict_this_thread(wanted_ruleset);
}

void obey() {
  if (const int reason = drop_own(); reason != 0) failure = reason;
  const size_t at = obeyed_count.fetch_add(1);
  if (at < kThreadsMax) obeyed[at] = static_cast<pid_t>(syscall(SYS_gettid));
}

void on_order(int) {
  const int before = errno;
  obey();
  errno = before;
}

std::vector<pid_t> threads() {
  std::vector<pid_t> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc/self/task", error)) {
    const std::string name = entry.path().filename();
    pid_t thread = 0;
    std::from_chars(name.data(), name.data() + name.size(), thread);
    if (thread > 0) found.push_back(thread);
  }
  return found;
}

bool has_obeyed(pid_t thread) {
  const auto end = obeyed.begin() + static_cast<ptrdiff_t>(std::min(obeyed_count.load(), kThreadsMax));
  return std::any_of(obeyed.begin(), end, [&](const auto& one) { return one == thread; });
}

}  // namespace

Status give_up_in_every_thread(uint64_t capabilities, int ruleset) {
  wanted_capabilities = capabilities;
  wanted_ruleset = ruleset;
  obeyed_count = 0;
  failure = 0;
  // Listed before this thread obeys: afterwards /proc may be out of reach. What starts meanwhile is started
  // by one of these, and looked for once more below, as far as that can be seen.
  std::vector<pid_t> others = threads();
  std::erase(others, gettid());
  struct sigaction order {};
  order.sa_handler = on_order;
  order.sa_flags = SA_RESTART;
  sigaction(order_signal(), &order, nullptr);
  std::vector<pid_t> asked;
  const auto all_obey = [&] {
    for (const pid_t thread : others) {
      if (has_obeyed(thread)) continue;
      if (std::ranges::find(asked, thread) == asked.end()) {
        asked.push_back(thread);
        syscall(SYS_tgkill, getpid(), thread, order_signal());
      }
      // One that has ended needs nothing any more.
      if (syscall(SYS_tgkill, getpid(), thread, 0) == 0) return false;
    }
    return true;
  };
  bool all = false;
  for (int looks = 0; looks < kLooks && !all; ++looks) {
    if (looks > 0) std::this_thread::sleep_for(kLook);
    if (!all_obey()) continue;
    const size_t known = others.size();
    others = threads();
    std::erase(others, gettid());
    all = others.size() <= known && all_obey();
  }
  obey();
  if (all && failure == 0) return {};
  return Error{ErrorCode::kDevice,
               all ? "the kernel does not let a thread give up what it does not need"
                   : "a thread keeps its privileges: it blocks the signal that asks it to drop "
                     "them; start this program without blocked signals"};
}

}  // namespace sluice::sandbox
