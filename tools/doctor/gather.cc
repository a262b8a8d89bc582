// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/gather.h"

#include <fcntl.h>
#include <linux/io_uring.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <ctime>
#include <fstream>
#include <system_error>

#include "dataplane/base/io_uring_denied.h"
#include "dataplane/base/unique_fd.h"
#include "dataplane/base/utc.h"
#include "dataplane/base/version.h"

namespace sluice::doctor {
namespace {

namespace fs = std::filesystem;

// Nothing where there is no such file, or no number in it.
std::optional<int64_t> number_in(const fs::path& file) {
  const std::string word = first_word(file);
  int64_t value = 0;
  const auto [end, failure] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (word.empty() || failure != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return value;
}

uint64_t count_in(const fs::path& file) {
  return static_cast<uint64_t>(std::max<int64_t>(number_in(file).value_or(0), 0));
}

std::vector<fs::path> entries(const fs::path& directory) {
  std::error_code error;
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(directory, error)) found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  return found;
}

// The number behind a prefix, as in "node3"; nothing: it is called otherwise.
std::optional<int> number_behind(const std::string& name, const std::string& prefix) {
  if (!name.starts_with(prefix) || name.size() == prefix.size()) return std::nullopt;
  int value = 0;
  const auto [end, failure] = std::from_chars(name.data() + prefix.size(), name.data() + name.size(), value);
  if (failure != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return value;
}

void add_pools(const fs::path& directory, int numa_node, std::vector<HugepagePool>& out) {
  for (const fs::path& pool : entries(directory)) {
    unsigned page_kib = 0;
    if (std::sscanf(pool.filename().c_str(), "hugepages-%ukB", &page_kib) != 1) continue;
    out.push_back({.numa_node = numa_node,
                   .page_kib = page_kib,
                   .all_mib = count_in(pool / "nr_hugepages") * page_kib / 1024,
                   .free_mib = count_in(pool / "free_hugepages") * page_kib / 1024});
  }
}

std::vector<int> allowed_cpus() {
  cpu_set_t set;
  std::vector<int> cpus;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(static_cast<unsigned>(cpu), &set)) cpus.push_back(cpu);
  }
  return cpus;
}

void try_io_uring(KernelFacts* facts) {
  io_uring_params parameters{};
  const UniqueFd ring(static_cast<int>(::syscall(SYS_io_uring_setup, 8, &parameters)));
  if (ring) return;
  const int error = errno;
  facts->io_uring_problem = std::strerror(error);
  facts->io_uring_remedy = base::io_uring_remedy(error, base::io_uring_host());
}

uint64_t hard_limit(int resource) {
  rlimit limit{};
  if (::getrlimit(static_cast<__rlimit_resource_t>(resource), &limit) != 0 || limit.rlim_max == RLIM_INFINITY)
    return UINT64_MAX;
  return limit.rlim_max;
}

uint64_t memory_available_mib() {
  std::ifstream in("/proc/meminfo");
  for (std::string word; in >> word;) {
    uint64_t kib = 0;
    if (word == "MemAvailable:" && in >> kib) return kib / 1024;
  }
  return 0;
}

}  // namespace

std::string first_word(const fs::path& file) {
  std::ifstream in(file);
  std::string word;
  in >> word;
  return word;
}

Facts gather(const fs::path& directory) {
  Facts facts;
  facts.version = SLUICE_VERSION;
  facts.directory = directory.string();
  facts.looker = gather_looker(directory);
  auto node = config::load(directory);
  if (node) {
    facts.node = *node;
  } else {
    facts.configuration_error = node.error().message;
  }
  const auto self = facts.node ? identity::load_of(directory, facts.node->name, facts.node->ca_domain)
                               : identity::load(directory);
  if (!self) facts.identity_error = self.error().message;
  facts.kernel = gather_kernel();
  if (!facts.node) return facts;
  facts.hugepages = gather_hugepages("/");
  facts.cpus = gather_cpus("/", allowed_cpus());
  facts.device = gather_device(*facts.node, "/");
  facts.other_nodes = gather_other_nodes(directory, "/");
  facts.numa_distances = gather_numa_distances("/");
  for (const config::Export& root : facts.node->exports) facts.exports.push_back(gather_export(root));
  facts.users = gather_users(*facts.node);
  facts.audit_problem = gather_audit_problem(*facts.node);
  const auto trust = identity::Trust::load(*facts.node);
  if (!trust) {
    facts.trust_problems.push_back(trust.error().message);
    return facts;
  }
  for (const identity::Peer& peer : trust->pinned()) facts.peers.push_back(gather_peer(peer));
  for (const Error& problem : trust->problems()) facts.trust_problems.push_back(problem.message);
  if (self) {
    facts.expiries = gather_expiries(identity::expiries_of({std::make_shared<const identity::Identity>(*self),
                                                            std::make_shared<const identity::Trust>(*trust)}),
                                     std::time(nullptr));
  }
  return facts;
}

std::vector<ExpiryFacts> gather_expiries(const std::vector<identity::Expiry>& all, int64_t now_unix_s) {
  constexpr int64_t kSecondNs = 1'000'000'000;
  std::vector<ExpiryFacts> facts;
  for (const identity::Expiry& one : all) {
    if (one.unix_s == identity::kNoEnd) continue;
    facts.push_back({.kind = one.kind,
                     .name = one.name,
                     .what = identity::name_of(one),
                     .when = base::utc_text(one.unix_s * kSecondNs),
                     .left_s = one.unix_s - now_unix_s});
  }
  return facts;
}

std::vector<HugepagePool> gather_hugepages(const fs::path& root) {
  std::vector<HugepagePool> pools;
  for (const fs::path& node : entries(root / "sys/devices/system/node")) {
    if (const auto number = number_behind(node.filename(), "node"))
      add_pools(node / "hugepages", *number, pools);
  }
  if (pools.empty()) add_pools(root / "sys/kernel/mm/hugepages", 0, pools);  // a kernel without NUMA
  return pools;
}

std::vector<int> parse_cpu_list(const std::string& text) {
  std::vector<int> cpus;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    int first = 0;
    const char* const stop = text.data() + end;
    auto read = std::from_chars(text.data() + at, stop, first);
    int last = first;
    if (read.ec == std::errc() && read.ptr != stop && *read.ptr == '-')
      read = std::from_chars(read.ptr + 1, stop, last);
    if (read.ec != std::errc() || read.ptr != stop || first < 0 || last < first || last >= CPU_SETSIZE)
      return {};
    for (int cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
    at = end + 1;
  }
  return cpus;
}

std::vector<CpuFacts> gather_cpus(const fs::path& root, const std::vector<int>& allowed) {
  const fs::path all = root / "sys/devices/system/cpu";
  const std::vector<int> isolated = parse_cpu_list(first_word(all / "isolated"));
  std::vector<CpuFacts> cpus;
  for (const int number : allowed) {
    const fs::path folder = all / ("cpu" + std::to_string(number));
    CpuFacts cpu{.cpu = number,
                 .isolated = std::find(isolated.begin(), isolated.end(), number) != isolated.end(),
                 .governor = first_word(folder / "cpufreq/scaling_governor")};
    for (const fs::path& entry : entries(folder)) {
      if (const auto node = number_behind(entry.filename(), "node")) cpu.numa_node = *node;
    }
    cpus.push_back(std::move(cpu));
  }
  return cpus;
}

KernelFacts gather_kernel() {
  KernelFacts facts;
  try_io_uring(&facts);
  facts.rmem_max = count_in("/proc/sys/net/core/rmem_max");
  facts.wmem_max = count_in("/proc/sys/net/core/wmem_max");
  timex clock{};
  if (const int state = ::adjtimex(&clock); state >= 0)
    facts.clock_synchronized = (clock.status & STA_UNSYNC) == 0;
  facts.memlock_bytes = hard_limit(RLIMIT_MEMLOCK);
  facts.nofile = hard_limit(RLIMIT_NOFILE);
  facts.memory_available_mib = memory_available_mib();
  return facts;
}

}  // namespace sluice::doctor
