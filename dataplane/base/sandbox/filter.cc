// Cold, but for on_refused. See filter.h and sandbox.h.
// SPDX-License-Identifier: Apache-2.0
#include "dataplane/base/sandbox/filter.h"

#include <fmt/format.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "dataplane/base/text.h"

namespace sluice::sandbox {
namespace {

// What nobody tries who is not at home here.
constexpr const char* kHostile[] = {
    "execve",
    "execveat",
    "ptrace",
    "process_vm_readv",
    "process_vm_writev",
    "mount",
    "umount2",
    "pivot_root",
    "move_mount",
    "fsmount",
    "open_tree",
    "fsopen",
    "fsconfig",
    "mount_setattr",
    "unshare",
    "setns",
    "init_module",
    "finit_module",
    "delete_module",
    "kexec_load",
    "reboot",
    "kexec_file_load",
    "bpf",
    "iopl",
    "ioperm",
    "swapon",
    "swapoff",
    "acct",
    "quotactl",
    "quotactl_fd",
    "settimeofday",
    "clock_settime",
    "clock_adjtime",
    "adjtimex",
    "sethostname",
    "setdomainname",
    "chroot",
    "userfaultfd",
    "perf_event_open",
    "open_by_handle_at",
};

// Numbers behind this one are of kernels that no library here was made for; those ask again in an older way
// when they hear that there is no such call.
constexpr int kNewestCall = 450;
constexpr size_t kCalls = 512;  // the last counts all beyond
std::array<std::atomic<uint32_t>, kCalls> refused;

// The first file that was to be opened: it tells who wanted it.
constexpr size_t kPathBytes = 128;
std::array<char, kPathBytes> first_path;
std::atomic<bool> path_begun;
std::atomic<int> path_of_call{-1};

#if defined(__x86_64__)
uint64_t path_argument(const mcontext_t& registers, int call) {
  const bool named_first = call == SYS_open;
  return static_cast<uint64_t>(registers.gregs[named_first ? REG_RDI : REG_RSI]);
}
bool opens(int call) { return call == SYS_open || call == SYS_openat || call == SYS_openat2; }
#else
uint64_t path_argument(const mcontext_t& registers, int) { return registers.regs[1]; }
bool opens(int call) { return call == SYS_openat || call == SYS_openat2; }
#endif

// In the handler of a signal: no allocation.
void keep_path(int call, const char* path) {
  if (path == nullptr || path_begun.exchange(true)) return;
  for (size_t i = 0; i + 1 < kPathBytes && path[i] != 0; ++i) first_path[i] = path[i];
  path_of_call.store(call, std::memory_order_release);
}

void on_refused(int, siginfo_t* info, void* context) {
  const auto call = static_cast<size_t>(info->si_syscall);
  refused[std::min(call, kCalls - 1)].fetch_add(1, std::memory_order_relaxed);
  const bool newer = info->si_syscall > kNewestCall;
  auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext;
  if (opens(info->si_syscall))
    keep_path(info->si_syscall, reinterpret_cast<const char*>(path_argument(registers, info->si_syscall)));
#if defined(__x86_64__)
  registers.gregs[REG_RAX] = newer ? -ENOSYS : -EPERM;
#elif defined(__aarch64__)
  registers.regs[0] = static_cast<uint64_t>(newer ? -ENOSYS : -EPERM);
#else
#error "say here which register carries the result of a system call"
#endif
}

void release(void* filter) { seccomp_release(filter); }
using Filter = std::unique_ptr<void, void (*)(void*)>;

Error not_taken(const std::string& what, int reason) {
  return {ErrorCode::kInternal,
          "the filter of system calls does not take " + what + ": " + std::strerror(-reason)};
}

// A filter that this process was started with may keep it from having another one.
Status may_filter() {
  const uint32_t action = SECCOMP_RET_ALLOW;
  if (syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0 || errno != EPERM) return {};
  return Error{
      ErrorCode::kConfiguration,
      "this process may not limit its own system calls, as a filter above it forbids that: add seccomp, "
      "landlock_create_ruleset, landlock_add_rule, landlock_restrict_self and capset to SystemCallFilter= "
      "of its unit, or to the profile of its container"};
}

// 0, or an errno below zero. Names that this machine does not have are no error.
int add(const Filter& filter, uint32_t action, const char* call,
        const std::vector<scmp_arg_cmp>& arguments = {}) {
  const int number = seccomp_syscall_resolve_name(call);
  if (number < 0) return 0;
  return seccomp_rule_add_array(filter.get(), action, number, static_cast<unsigned>(arguments.size()),
                                arguments.empty() ? nullptr : arguments.data());
}

Status add_all(const Filter& filter, const Profile& profile, bool files_bounded) {
  // Its flags lie in memory, where no filter can look; the C library then asks for a thread by clone.
  if (const int bad = add(filter, SCMP_ACT_ERRNO(ENOSYS), "clone3"); bad != 0)
    return not_taken("clone3", bad);
  for (const char* call : kHostile) {
    if (const int bad = add(filter, SCMP_ACT_KILL_PROCESS, call); bad != 0) return not_taken(call, bad);
  }
  std::vector<const char*> calls = profile.calls;
  if (files_bounded) calls.insert(calls.end(), profile.calls_on_paths.begin(), profile.calls_on_paths.end());
  for (const char* call : calls) {
    if (const int bad = add(filter, SCMP_ACT_ALLOW, call); bad != 0) return not_taken(call, bad);
  }
  for (const CallRule& rule : profile.rules) {
    std::vector<scmp_arg_cmp> arguments;
    for (const Argument& each : rule.arguments)
      arguments.push_back({each.index, SCMP_CMP_MASKED_EQ, each.mask, each.value});
    if (const int bad = add(filter, SCMP_ACT_ALLOW, rule.call, arguments); bad != 0)
      return not_taken(rule.call, bad);
  }
  // Signals to itself: abort.
  const int bad = add(filter, SCMP_ACT_ALLOW, "tgkill",
                      {{0, SCMP_CMP_MASKED_EQ, 0xFFFFFFFF, static_cast<uint64_t>(getpid())}});
  return bad == 0 ? Status() : not_taken("tgkill", bad);
}

}  // namespace

Result<bool> filter_calls(const Profile& profile, bool files_bounded) {
  if (Status may = may_filter(); !may) return may.error();
  const Filter filter(seccomp_init(SCMP_ACT_TRAP), release);
  if (!filter) return not_taken("anything", -ENOMEM);
  // A call in the manner of another machine (32 bits) passes by the numbers that are judged here.
  int bad = seccomp_attr_set(filter.get(), SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
  if (bad == 0) bad = seccomp_attr_set(filter.get(), SCMP_FLTATR_CTL_OPTIMIZE, 2);
  if (bad != 0) return not_taken("its attributes", bad);
  if (seccomp_attr_set(filter.get(), SCMP_FLTATR_CTL_TSYNC, 1) != 0) return false;  // before Linux 3.17
  if (Status added = add_all(filter, profile, files_bounded); !added) return added.error();

  struct sigaction action {};
  action.sa_sigaction = on_refused;
  action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_RESTART | SA_ONSTACK;
  sigaction(SIGSYS, &action, nullptr);
  bad = seccomp_load(filter.get());
  if (bad == -EINVAL || bad == -ENOSYS) return false;
  if (bad != 0) return not_taken("effect", bad);
  return true;
}

uint64_t refused_calls() {
  uint64_t sum = 0;
  for (const auto& times : refused) sum += times.load(std::memory_order_relaxed);
  return sum;
}

std::vector<std::string> take_news() {
  static std::array<uint32_t, kCalls> told{};
  std::vector<std::string> news;
  for (size_t call = 0; call < kCalls; ++call) {
    const uint32_t times = refused[call].load(std::memory_order_relaxed);
    if (std::bit_width(times) == std::bit_width(told[call])) continue;
    told[call] = times;
    char* const name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, static_cast<int>(call));
    news.push_back(fmt::format("the sandbox did not allow the system call {} ({}), {} time{} so far",
                               name != nullptr ? name : "?", call, times, times == 1 ? "" : "s"));
    std::free(name);
    if (path_of_call.load(std::memory_order_acquire) == static_cast<int>(call))
      news.back() += fmt::format("; the first was to open {}", base::printable(first_path.data()));
  }
  return news;
}

}  // namespace sluice::sandbox
