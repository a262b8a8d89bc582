// Cold, main thread. Linux keeps capabilities per thread, and DPDK's threads exist before the main thread
// can know that it needs no privileges any more: a signal makes each thread drop its own.
// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dpdk/privileges.h"

#include <cap-ng.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace sluice::dpdk {
namespace {

namespace fs = std::filesystem;

int order_signal() { return SIGRTMIN + 6; }

// Set before any signal is sent.
__user_cap_data_struct kept[_LINUX_CAPABILITY_U32S_3];

// In the handler only plain system calls are allowed.
void drop_own() {
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  for (unsigned long capability = 0; capability < 64; ++capability)
    prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  syscall(SYS_capset, &header, kept);
}

void on_order(int) {
  const int before = errno;
  drop_own();
  errno = before;
}

uint64_t kept_mask() { return (uint64_t{kept[1].effective} << 32) | kept[0].effective; }

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

bool has_dropped(pid_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/status");
  if (!file) return true;  // it has ended
  bool no_new = false;
  uint64_t permitted = ~0ULL;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("NoNewPrivs:")) no_new = line.back() == '1';
    if (line.starts_with("CapPrm:")) permitted = std::stoull(line.substr(7), nullptr, 16);
  }
  return no_new && (permitted & ~kept_mask()) == 0;
}

bool all_dropped() {
  for (const pid_t thread : threads()) {
    if (!has_dropped(thread)) return false;
  }
  return true;
}

}  // namespace

bool may_open_raw_sockets() {
  return capng_get_caps_process() == 0 && capng_have_capability(CAPNG_EFFECTIVE, CAP_NET_RAW) == 1;
}

Status drop_privileges(bool keep_net_raw) {
  const bool has_net_raw = capng_have_capability(CAPNG_PERMITTED, CAP_NET_RAW) == 1;
  const bool keeps = keep_net_raw && has_net_raw;
  kept[0] = {};
  kept[1] = {};
  if (keeps) kept[0].effective = kept[0].permitted = 1U << CAP_NET_RAW;
  capng_clear(CAPNG_SELECT_ALL);
  if (keeps) {
    capng_update(CAPNG_ADD, static_cast<capng_type_t>(CAPNG_EFFECTIVE | CAPNG_PERMITTED), CAP_NET_RAW);
  }
  // The bounding set needs CAP_SETPCAP, which only root has; without new privileges it is an extra.
  if (geteuid() != 0 || capng_apply(CAPNG_SELECT_BOTH) != 0) capng_apply(CAPNG_SELECT_CAPS);
  drop_own();

  struct sigaction order {};
  order.sa_handler = on_order;
  order.sa_flags = SA_RESTART;
  sigaction(order_signal(), &order, nullptr);
  for (const pid_t thread : threads()) {
    if (thread != gettid() && !has_dropped(thread)) syscall(SYS_tgkill, getpid(), thread, order_signal());
  }
  for (int tries = 0; tries < 500 && !all_dropped(); ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  if (!all_dropped()) {
    return Error{ErrorCode::kDevice,
                 "a thread keeps its privileges: it blocks the signal that asks it to drop "
                 "them; start sluice-dataplane without blocked signals"};
  }
  return {};
}

}  // namespace sluice::dpdk
