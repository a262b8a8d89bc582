// What this host offers the daemons: memory, the data port, cores, what the kernel allows.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "dataplane/base/counted.h"
#include "tools/doctor/findings.h"

namespace sluice::doctor {
namespace {

constexpr uint64_t kSocketBytesWanted = 4U << 20;
constexpr uint64_t kFilesWanted = 4096 + 256;  // of one session, and what a daemon has besides
constexpr uint64_t kLimitNone = UINT64_MAX;

bool on_sockets(const Facts& facts) { return facts.device.kind == DeviceFacts::Kind::kSockets; }

std::string limit_text(uint64_t value) { return value == kLimitNone ? "unlimited" : std::to_string(value); }

// Whose a limit is: a daemon's that runs, or this command's, which one that is started from here would have.
std::string holder(const std::optional<ProcessFacts>& process) {
  return process ? fmt::format(" of {} (process {})", process->program, process->pid)
                 : std::string(" of this command, as of a daemon that is started like it");
}

}  // namespace

// ---- memory ------------------------------------------------------------------------------------

void check_memory(const Facts& facts, std::vector<Finding>& out) {
  const config::Node& node = *facts.node;
  if (facts.kernel.memory_available_mib != 0 && node.memory_mib > facts.kernel.memory_available_mib &&
      !(facts.daemon.problem.empty() && facts.daemon.attached)) {
    fail(out, "memory",
         fmt::format("[dataplane] memory_mib = {}, and {} MiB are available", node.memory_mib,
                     facts.kernel.memory_available_mib),
         "lower [dataplane] memory_mib, or free memory");
  } else {
    pass(out, "memory",
         fmt::format("{} MiB are available for memory_mib = {}", facts.kernel.memory_available_mib,
                     node.memory_mib));
  }
  if (on_sockets(facts)) return;  // extents lie in ordinary memory
  uint64_t free_mib = 0;
  std::string nodes;
  for (const HugepagePool& pool : facts.hugepages) {
    free_mib += pool.free_mib;
    nodes += fmt::format("{}{} MiB of {} on NUMA node {}", nodes.empty() ? "" : ", ", pool.free_mib,
                         pool.all_mib, pool.numa_node);
  }
  const std::string remedy = fmt::format("echo {} > /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages",
                                         (node.memory_mib + 1) / 2);
  if (facts.daemon.problem.empty() && facts.daemon.attached && facts.daemon.hugepages) {
    pass(out, "hugepages", "the dataplane has them");
  } else if (node.memory == "no-huge") {
    warn(out, "hugepages", "[dataplane] memory = \"no-huge\": slower, and not for a PCI device",
         "set memory = \"auto\"; " + remedy);
  } else if (free_mib >= node.memory_mib) {
    pass(out, "hugepages", fmt::format("{} MiB are needed; free: {}", node.memory_mib, nodes));
  } else if (node.memory == "hugepages" || facts.device.kind == DeviceFacts::Kind::kPci) {
    fail(out, "hugepages", fmt::format("{} MiB are needed, {} are free", node.memory_mib, free_mib), remedy);
  } else {
    warn(out, "hugepages",
         fmt::format("{} MiB are needed, {} are free: the dataplane will be slower", node.memory_mib,
                     free_mib),
         remedy);
  }
}

// ---- the data port -----------------------------------------------------------------------------

namespace {

void check_pci(const DeviceFacts& device, std::vector<Finding>& out) {
  if (!device.found) {
    return fail(out, "device", fmt::format("there is no PCI device {}", device.name),
                "lspci -D | grep -i ethernet");
  }
  // mlx drivers stay with the kernel, and DPDK drives the card beside it.
  const bool bifurcated = device.driver.starts_with("mlx");
  if (bifurcated || device.driver == "vfio-pci") {
    pass(out, "device", fmt::format("{} is bound to {}", device.name, device.driver));
  } else {
    fail(out, "device",
         fmt::format("{} is bound to {}: Sluice cannot drive it", device.name,
                     device.driver.empty() ? "no driver" : device.driver),
         fmt::format("modprobe vfio-pci && dpdk-devbind.py --bind=vfio-pci {}", device.name));
  }
  if (bifurcated) return;
  if (device.iommu_group) {
    pass(out, "iommu", fmt::format("{} has an IOMMU group", device.name));
  } else {
    warn(out, "iommu", fmt::format("{} has no IOMMU group: the card may write anywhere", device.name),
         "boot with intel_iommu=on iommu=pt (or amd_iommu=on), and switch VT-d on in the firmware");
  }
}

void check_link(const Facts& facts, std::vector<Finding>& out) {
  const DeviceFacts& device = facts.device;
  if (device.name.empty()) return;
  if (!device.found)
    return fail(out, "link", fmt::format("there is no interface {}", device.name), "ip link");
  if (!device.up) {
    return fail(out, "link", fmt::format("{} is down", device.name),
                fmt::format("ip link set {} up", device.name));
  }
  pass(out, "link",
       device.speed_mbps > 0 ? fmt::format("{} is up, {} Mbit/s", device.name, device.speed_mbps)
                             : fmt::format("{} is up", device.name));
  const uint32_t wanted = facts.node->mtu;
  if (device.mtu == 0 || device.mtu >= wanted) {
    pass(out, "mtu", fmt::format("{} of {}", device.mtu, device.name));
  } else {
    const std::string remedy = fmt::format("ip link set {} mtu {} (and the switches), or [port] mtu = {}",
                                           device.name, wanted, device.mtu);
    const std::string text = fmt::format("[port] mtu = {}, and {} has {}", wanted, device.name, device.mtu);
    // Sockets take what the interface has.
    on_sockets(facts) ? warn(out, "mtu", text, remedy) : fail(out, "mtu", text, remedy);
  }
}

}  // namespace

void check_device(const Facts& facts, std::vector<Finding>& out) {
  const DeviceFacts& device = facts.device;
  if (on_sockets(facts) && !device.address.empty()) {
    fail(out, "address", fmt::format("this host has no address {}", device.address),
         "ip address, then [port] address4 or address6");
  }
  if (device.kind == DeviceFacts::Kind::kPci) {
    check_pci(device, out);
  } else {
    check_link(facts, out);
  }
  if (!on_sockets(facts)) return;
  const uint64_t least = std::min(facts.kernel.rmem_max, facts.kernel.wmem_max);
  if (least == 0 || least >= kSocketBytesWanted) {
    pass(out, "socket_buffers", "sockets may have buffers of 4 MiB");
  } else {
    warn(
        out, "socket_buffers",
        fmt::format("net.core.rmem_max = {}, wmem_max = {}: at high rates datagrams are lost, and sent again",
                    facts.kernel.rmem_max, facts.kernel.wmem_max),
        fmt::format("sysctl -w net.core.rmem_max={0} net.core.wmem_max={0}", kSocketBytesWanted));
  }
}

// ---- UDP ports ---------------------------------------------------------------------------------

namespace {

constexpr uint32_t kLanePorts = 256;

// "10.1.2.3/24" and "10.1.2.3/16" are one address.
bool same_address(const std::string& one, const std::string& other) {
  return !one.empty() && one.substr(0, one.find('/')) == other.substr(0, other.find('/'));
}

bool ports_meet(const config::Node& one, const config::Node& other) {
  // Where none is named one is chosen when the node starts, and it may be the same.
  const auto chooses = [](const config::Node& node) {
    return node.address4.empty() && node.address6.empty();
  };
  const auto [low, high] = std::minmax<uint32_t>({one.udp_port_base, other.udp_port_base});
  if (other.device != config::kSocketDevice || high - low >= kLanePorts) return false;
  return chooses(one) || chooses(other) || same_address(one.address4, other.address4) ||
         same_address(one.address6, other.address6);
}

}  // namespace

void check_ports(const Facts& facts, std::vector<Finding>& out) {
  if (!on_sockets(facts)) return;
  const uint32_t base = facts.node->udp_port_base;
  const std::string ports = fmt::format("{} to {}", base, base + kLanePorts - 1);
  bool alone = true;
  for (const OtherNode& other : facts.other_nodes) {
    const bool usual = base == config::Node{}.udp_port_base;
    if (other.node ? !ports_meet(*facts.node, *other.node) : !usual) continue;
    alone = false;
    const std::string who =
        other.node ? fmt::format("node {} in {}", other.node->name, other.directory)
                   : fmt::format("the node of user {}, whose node.toml may not be read,", other.user);
    warn(out, "udp_ports",
         fmt::format("{} {} UDP ports {} as well: where both need one, a session waits for the other's", who,
                     other.node ? "uses" : "may use", ports),
         fmt::format("[port] udp_port_base = {} in one of the two, and in the firewall", base + kLanePorts));
  }
  if (alone) pass(out, "udp_ports", fmt::format("no other node of this host uses {}", ports));
}

// ---- cores -------------------------------------------------------------------------------------

void check_cores(const Facts& facts, std::vector<Finding>& out) {
  const config::Node& node = *facts.node;
  if (node.workers >= facts.cpus.size()) {
    warn(out, "cores",
         fmt::format("{} {} with all else", base::counted(node.workers, "worker shares", "workers share"),
                     base::counted(facts.cpus.size(), "CPU")),
         node.workers > 1 ? "lower [dataplane] workers"
                          : "give this host, or this virtual machine, more CPUs");
  } else {
    pass(out, "cores",
         fmt::format("{} for {}", base::counted(facts.cpus.size(), "CPU"),
                     base::counted(node.workers, "worker")));
  }
  for (const int core : node.cores) {
    const auto found = std::find_if(facts.cpus.begin(), facts.cpus.end(),
                                    [core](const CpuFacts& cpu) { return cpu.cpu == core; });
    if (found == facts.cpus.end()) {
      fail(out, "cores",
           fmt::format("[dataplane] cores names CPU {}, which is not there or not allowed", core),
           "lscpu -e, then [dataplane] cores");
      continue;
    }
    if (facts.device.numa_node >= 0 && found->numa_node >= 0 && found->numa_node != facts.device.numa_node) {
      warn(
          out, "numa",
          fmt::format("CPU {} is on NUMA node {}, the device on {}{}", core, found->numa_node,
                      facts.device.numa_node, distance_text(facts, found->numa_node, facts.device.numa_node)),
          "choose CPUs of the device's node for [dataplane] cores, or leave it empty");
    }
    if (!found->isolated && node.poll == "busy") {
      warn(out, "isolation",
           fmt::format("CPU {} polls without end, and the kernel runs other things on it", core),
           fmt::format("boot with isolcpus={0} nohz_full={0}, or poll = \"adaptive\"", core));
    }
  }
  std::string slow;
  for (const CpuFacts& cpu : facts.cpus) {
    const bool used =
        node.cores.empty() || std::find(node.cores.begin(), node.cores.end(), cpu.cpu) != node.cores.end();
    if (used && !cpu.governor.empty() && cpu.governor != "performance") slow = cpu.governor;
  }
  if (slow.empty()) {
    pass(out, "governor", "CPUs run at their full frequency, or the kernel does not scale it");
  } else {
    warn(out, "governor", fmt::format("the frequency of CPUs is governed by {}", slow),
         "cpupower frequency-set -g performance");
  }
}

// ---- the kernel --------------------------------------------------------------------------------

namespace {

void check_open_files(const std::optional<ProcessFacts>& process, uint64_t own, std::vector<Finding>& out) {
  const uint64_t limit = process ? process->nofile : own;
  if (limit >= kFilesWanted)
    return pass(out, "open_files", fmt::format("limit {}{}", limit_text(limit), holder(process)));
  warn(out, "open_files",
       fmt::format("the limit{} is {}: a session may have 4096 files", holder(process), limit),
       "LimitNOFILE=65536 in the unit, /etc/security/limits.conf, or ulimit -n 65536; then start the daemon "
       "again");
}

}  // namespace

void check_kernel(const Facts& facts, std::vector<Finding>& out) {
  const KernelFacts& kernel = facts.kernel;
  if (kernel.io_uring_problem.empty()) {
    pass(out, "io_uring", "it can be set up");
  } else if (facts.looker.stranger) {
    warn(out, "io_uring", fmt::format("{} may not set it up: {}", facts.looker.user, kernel.io_uring_problem),
         as_owner(facts));
  } else {
    fail(out, "io_uring", fmt::format("it cannot be set up: {}", kernel.io_uring_problem),
         kernel.io_uring_remedy);
  }
  const uint64_t memory = facts.node ? uint64_t{facts.node->memory_mib} << 20 : 0;
  const auto& locker = facts.dataplane_process;
  const uint64_t memlock_bytes = locker ? locker->memlock_bytes : kernel.memlock_bytes;
  if (memlock_bytes >= memory) {
    pass(out, "locked_memory", fmt::format("limit {}{}", limit_text(memlock_bytes), holder(locker)));
  } else {
    warn(out, "locked_memory",
         fmt::format("the limit{} is {} bytes: buffers cannot be registered with the disk, which costs CPU",
                     holder(locker), memlock_bytes),
         "ulimit -l unlimited, or LimitMEMLOCK=infinity in the unit; then start sluice-dataplane again");
  }
  // Both daemons hold the files of a session.
  check_open_files(facts.control_process, kernel.nofile, out);
  if (facts.dataplane_process) check_open_files(facts.dataplane_process, kernel.nofile, out);
  if (!kernel.clock_synchronized || *kernel.clock_synchronized) {
    pass(out, "clock",
         kernel.clock_synchronized ? "it is synchronised" : "whether it is synchronised is not known");
  } else {
    warn(out, "clock", "it is not synchronised: logs and deadlines of two nodes do not agree",
         "timedatectl set-ntp true, or run chrony");
  }
}

}  // namespace sluice::doctor
