// Cold. See eal.h.
// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dpdk/eal.h"

#include <dlfcn.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_log.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <system_error>
#include <thread>

#include "dataplane/base/counted.h"
#include "dataplane/base/own_files.h"
#include "dataplane/net/ram.h"

namespace sluice::dpdk {
namespace {

namespace fs = std::filesystem;

// DPDK logs what went wrong and returns a mere number: keep the last error line for our own message.
// Never destroyed: DPDK's threads may log until the process ends.
struct LastError {
  std::mutex mutex;
  std::string line;
};
LastError& last_error() {
  static auto* const instance = new LastError;
  return *instance;
}

ssize_t keep_line(void*, const char* text, size_t bytes) {
  if (rte_log_cur_msg_loglevel() <= static_cast<int>(RTE_LOG_ERR)) {
    std::string_view line(text, bytes);
    while (!line.empty() && (line.back() == '\n' || line.back() == '.')) line.remove_suffix(1);
    LastError& last = last_error();
    const std::lock_guard lock(last.mutex);
    if (!line.empty()) last.line = line;
  }
  return static_cast<ssize_t>(bytes);
}

void capture_log() {
  static FILE* const stream = [] {
    FILE* file = fopencookie(nullptr, "w", cookie_io_functions_t{.write = keep_line});
    if (file != nullptr) setvbuf(file, nullptr, _IOLBF, 1024);
    return file;
  }();
  if (stream != nullptr) rte_openlog_stream(stream);
}

std::string lcores(const CoreChoice& cores) {
  std::string text = fmt::format("{}@({})", kMainLcore, fmt::join(cores.other_cpus, ","));
  for (uint32_t w = 0; w < cores.worker_cpus.size(); ++w) {
    text += fmt::format(",{}@{}", lcore_of_worker(w), cores.worker_cpus[w]);
  }
  return text;
}

std::string how_to_reserve(uint64_t needed_mib) {
  return fmt::format("echo {} > /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages",
                     (needed_mib + 1) / 2);
}

}  // namespace

std::optional<fs::path> telemetry_socket(const fs::path& run_dir) {
  // EAL begins with "dpdk/" and its file prefix, and adds a number where a name is taken.
  constexpr std::string_view kNumber = ":99";
  fs::path socket = run_dir / "dpdk/rte/dpdk_telemetry.v2";
  if (socket.native().size() + kNumber.size() >= sizeof(sockaddr_un::sun_path)) return std::nullopt;
  return socket;
}

Result<bool> choose_hugepages(const std::string& key, const std::string& memory, uint64_t memory_mib,
                              uint64_t free_mib, const Warn& warn) {
  const bool enough = free_mib >= memory_mib;
  if (memory == "hugepages" && !enough) {
    return Error{ErrorCode::kDevice,
                 fmt::format("{} = \"hugepages\": {} MiB of free hugepages are needed, {} are "
                             "there: {}, or set memory = \"no-huge\"",
                             key, memory_mib, free_mib, how_to_reserve(memory_mib))};
  }
  if (memory == "auto" && !enough) {
    warn(fmt::format(
        "running without hugepages, which is slower: {} MiB of free ones are needed, {} are there; "
        "to reserve them: {}",
        memory_mib, free_mib, how_to_reserve(memory_mib)));
  }
  return memory != "no-huge" && enough;
}

std::vector<std::string> eal_arguments(const EalRequest& request) {
  std::vector<std::string> arguments = {request.program,
                                        "--lcores=" + request.lcores,
                                        fmt::format("--main-lcore={}", kMainLcore),
                                        "--log-level=error",
                                        "-m",
                                        std::to_string(request.memory_mib)};
  if (request.hugepages) {
    arguments.insert(arguments.end(), {"--in-memory", "--single-file-segments"});
  } else {
    // With --no-shconf nothing is shared with other processes: nothing else is left in the runtime directory,
    // and no thread listens for them.
    arguments.insert(arguments.end(), {"--no-huge", "--no-shconf"});
  }
  if (request.runtime_dir.empty()) {
    arguments.emplace_back("--no-telemetry");
    if (!request.hugepages) arguments.insert(arguments.end(), {"--file-prefix", request.instance});
  }
  bool all_virtual = true;
  for (const Device* device : request.devices) {
    arguments.insert(arguments.end(), {device->is_virtual() ? "--vdev" : "-a", device->argument});
    all_virtual &= device->is_virtual();
  }
  if (all_virtual) arguments.insert(arguments.end(), {"--no-pci", "--iova-mode=va"});
  return arguments;
}

Result<EalPlan> plan_eal(const config::Node& node, const Device& device, const CoreChoice& cores,
                         const EalFacts& facts, const Warn& warn) {
  if (facts.needed_mib > node.memory_mib) {
    return Error{ErrorCode::kConfiguration,
                 fmt::format("[dataplane] memory_mib = {} is too small for {} of {} extents of {} KiB: "
                             "set it to {} or more",
                             node.memory_mib, base::counted(node.workers, "worker"), node.extents_per_worker,
                             node.extent_bytes >> 10, facts.needed_mib)};
  }
  const auto hugepages =
      choose_hugepages("[dataplane] memory", node.memory, node.memory_mib, facts.hugepages_free_mib, warn);
  if (!hugepages) return hugepages.error();
  if (!*hugepages && !device.is_virtual()) return needs_hugepages(device, node.memory_mib);
  if (!*hugepages) {
    if (Status status = net::check_ram(fmt::format("[dataplane] memory_mib = {}", node.memory_mib),
                                       node.memory_mib, facts.ram_mib);
        !status)
      return status.error();
  }
  EalPlan plan;
  plan.hugepages = *hugepages;
  if (telemetry_socket(node.run_dir())) {
    plan.runtime_dir = node.run_dir();
  } else {
    warn(fmt::format(
        "no DPDK telemetry: below {} the path of its socket is longer than a unix socket's may be; "
        "use a node directory with a shorter path",
        node.run_dir().string()));
  }
  plan.arguments = eal_arguments({.program = "sluice-dataplane",
                                  .instance = fmt::format("sluice-{}-{}", node.name, getpid()),
                                  .lcores = lcores(cores),
                                  .memory_mib = node.memory_mib,
                                  .hugepages = plan.hugepages,
                                  .runtime_dir = plan.runtime_dir,
                                  .devices = {&device}});
  return plan;
}

Error needs_hugepages(const Device& device, uint64_t memory_mib) {
  return {ErrorCode::kDevice,
          fmt::format("[port] device {}: a PCI device needs hugepages: {}, and memory = \"hugepages\"",
                      device.name, how_to_reserve(memory_mib))};
}

Hugepages count_hugepages() {
  Hugepages sum;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/sys/kernel/mm/hugepages", error)) {
    unsigned page_kib = 0;
    uint64_t pages = 0;
    if (sscanf(entry.path().filename().c_str(), "hugepages-%ukB", &page_kib) != 1) continue;
    if (std::ifstream(entry.path() / "free_hugepages") >> pages) sum.free_mib += pages * page_kib / 1024;
    if (std::ifstream(entry.path() / "nr_hugepages") >> pages) sum.all_mib += pages * page_kib / 1024;
  }
  return sum;
}

uint64_t await_hugepages_mib(uint64_t needed_mib, std::chrono::milliseconds limit, const Warn& warn,
                             const std::function<Hugepages()>& count) {
  constexpr auto kLook = std::chrono::milliseconds(10);
  const auto end = std::chrono::steady_clock::now() + limit;
  for (bool said = false;; said = true) {
    const Hugepages now = count();
    const bool may_come = now.free_mib < needed_mib && now.all_mib >= needed_mib;
    if (!may_come || std::chrono::steady_clock::now() >= end) return now.free_mib;
    if (!said) {
      warn(
          fmt::format("{} MiB of hugepages are needed and {} are free: waiting at most {} for those of a "
                      "process that was killed",
                      needed_mib, now.free_mib, limit));
    }
    std::this_thread::sleep_for(kLook);
  }
}

void remove_left_directories(const fs::path& parent, const std::function<bool(pid_t)>& alive) {
  std::error_code error;
  std::vector<fs::path> left;
  for (const auto& entry : fs::directory_iterator(parent, error)) {
    const std::string name = entry.path().filename();
    const size_t dash = name.rfind('-');
    pid_t pid = 0;
    const char* const end = name.data() + name.size();
    if (!name.starts_with("sluice-") || dash == std::string::npos) continue;
    const auto [stop, failure] = std::from_chars(name.data() + dash + 1, end, pid);
    if (failure == std::errc() && stop == end && pid > 0 && !alive(pid)) left.push_back(entry.path());
  }
  for (const fs::path& path : left) fs::remove(path, error);  // only when empty
}

Status load_drivers(const fs::path& directory) {
  std::error_code none;
  std::vector<fs::path> drivers;
  for (const auto& entry : fs::directory_iterator(directory, none)) drivers.push_back(entry.path());
  std::ranges::sort(drivers);
  for (const fs::path& driver : drivers) {
    if (::dlopen(driver.c_str(), RTLD_NOW) != nullptr) continue;
    const char* reason = ::dlerror();
    return Error{ErrorCode::kDevice,
                 fmt::format("DPDK's driver {} cannot be loaded: {}: unpack or install the bundle anew",
                             driver.filename().string(), reason == nullptr ? "no reason given" : reason)};
  }
  return {};
}

Status start_eal(const EalPlan& plan) {
  capture_log();
  if (Status loaded = load_drivers(base::bundled_drivers(base::own_executable())); !loaded)
    return loaded.error();
  std::vector<std::string> texts = plan.arguments;  // EAL permutes argv and keeps pointers into it
  static std::vector<std::string> kept;
  kept = std::move(texts);
  static std::vector<char*> argv;
  argv.clear();
  for (std::string& text : kept) argv.push_back(text.data());
  argv.push_back(nullptr);
  if (!plan.runtime_dir.empty()) {
    // systemd's variable, which EAL asks first.
    (void)mkdir(plan.runtime_dir.c_str(), 0700);
    setenv("RUNTIME_DIRECTORY", plan.runtime_dir.c_str(), 1);
  }
  const int started = rte_eal_init(static_cast<int>(kept.size()), argv.data());
  // EAL makes a runtime directory even when nothing is in it. Removed at once, it does not stay behind a
  // process that is killed; those of processes that were killed before go with it.
  const fs::path runtime = rte_eal_get_runtime_dir();
  std::error_code ignored;
  // Telemetry's sockets are made with the modes of the umask; until here the directory protects them.
  for (const auto& entry : fs::directory_iterator(runtime, ignored)) {
    if (entry.is_socket(ignored)) {
      fs::permissions(entry.path(), fs::perms::owner_read | fs::perms::owner_write, ignored);
    }
  }
  fs::remove(runtime, ignored);  // only when empty
  if (runtime.has_parent_path()) {
    remove_left_directories(runtime.parent_path(),
                            [](pid_t pid) { return kill(pid, 0) == 0 || errno != ESRCH; });
  }
  if (started < 0) {
    return Error{ErrorCode::kDevice,
                 fmt::format("DPDK did not start: {}{}: check [port] device, the free memory "
                             "and the rights of this process",
                             rte_strerror(rte_errno), dpdk_reason())};
  }
  return {};
}

void stop_eal() { rte_eal_cleanup(); }

std::string dpdk_reason() {
  LastError& last = last_error();
  const std::lock_guard lock(last.mutex);
  return last.line.empty() ? std::string() : fmt::format(" ({})", last.line);
}

}  // namespace sluice::dpdk
