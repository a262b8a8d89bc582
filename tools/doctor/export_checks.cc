// Exports, and the disks beneath them.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "tools/doctor/findings.h"

namespace sluice::doctor {
namespace {

constexpr uint32_t kDirectAlignment = 4096;  // of the dataplane's reads and writes

void check_export(const Facts& all, const ExportFacts& facts, std::vector<Finding>& out) {
  const std::string what = fmt::format("export {} ({})", facts.root.name, facts.root.path.string());
  const bool usable = facts.problem.empty() && (!facts.root.read || facts.readable) &&
                      (!(facts.root.write || facts.root.manage) || facts.writable);
  if (all.looker.stranger && !usable)
    return warn(out, "export", fmt::format("{}: {}", what, unseen(all)), as_owner(all));
  if (!facts.problem.empty()) {
    return fail(out, "export", fmt::format("{}: {}", what, facts.problem),
                fmt::format("mkdir -p {0}, mount it, or correct [[export]] path", facts.root.path.string()));
  }
  if (facts.root.read && !facts.readable)
    return fail(out, "export", what + " may not be read by this user",
                fmt::format("chmod or chown {}, or mode = \"w\"", facts.root.path.string()));
  if ((facts.root.write || facts.root.manage) && !facts.writable)
    return fail(out, "export", what + " may not be written by this user",
                fmt::format("chmod or chown {}, or mode = \"r\"", facts.root.path.string()));
  pass(out, "export", what + (facts.file_system.empty() ? "" : ", " + facts.file_system));
  const double free = facts.size_bytes == 0
                          ? 1
                          : static_cast<double>(facts.free_bytes) / static_cast<double>(facts.size_bytes);
  if (facts.root.write && free < kLittleSpace) {
    warn(out, "space", fmt::format("{:.1f} % is free beneath {}", 100 * free, what), "make room there");
  } else {
    pass(out, "space",
         fmt::format("{} MiB are free beneath export {}", facts.free_bytes >> 20, facts.root.name));
  }
  if (facts.in_memory) {
    warn(out, "durability", what + " lies in memory: what arrives there is lost with the machine",
         "export a directory of a disk");
  } else if (!facts.root.direct) {
    pass(out, "direct_io", what + ": files pass the page cache, as direct = \"no\" says");
  } else if (facts.direct_io && !*facts.direct_io) {
    warn(out, "direct_io",
         what + ": its file system takes no O_DIRECT: data pass the page cache, which costs CPU",
         "use ext4 or xfs");
  } else if (facts.direct_io) {
    pass(out, "direct_io", fmt::format("export {} takes O_DIRECT", facts.root.name));
  }
}

// RUNBOOK, "Storage of a centre".
void check_nfs(const ExportFacts& facts, std::vector<Finding>& out) {
  if (facts.file_system != "nfs" || !facts.problem.empty()) return;
  const std::string options = "," + facts.mounted_with + ",";
  const auto has = [&](const char* option) { return options.find(option) != std::string::npos; };
  const std::string what = fmt::format("export {} is on NFS, mounted ", facts.root.name);
  if (has(",soft,") || has(",softerr,"))
    warn(out, "nfs", what + "soft: transfers fail whenever its server is slow", "mount it hard, the default");
  else if (has(",local_lock=all,") || has(",local_lock=flock,"))
    warn(out, "nfs", what + "without locks at the server: no other host may write to it",
         "mount it with vers=4.2, or without nolock and local_lock");
  else
    pass(out, "nfs", what + "hard, with locks at the server");
}

void check_disk(const Facts& facts, const ExportFacts& one, std::vector<Finding>& out) {
  const DiskFacts& disk = one.disk;
  if (disk.block_bytes > kDirectAlignment) {
    fail(out, "alignment",
         fmt::format("{} beneath export {} has blocks of {} bytes; Sluice writes at multiples of {}",
                     disk.device, one.root.name, disk.block_bytes, kDirectAlignment),
         "format it with blocks of 4096 bytes or less (nvme format --lbaf, mkfs)");
  } else if (disk.block_bytes != 0) {
    pass(out, "alignment", fmt::format("{} has blocks of {} bytes", disk.device, disk.block_bytes));
  }
  if (disk.numa_node >= 0 && facts.device.numa_node >= 0 && disk.numa_node != facts.device.numa_node) {
    warn(out, "numa",
         fmt::format("{} beneath export {} is on NUMA node {}, the device on {}{}", disk.device,
                     one.root.name, disk.numa_node, facts.device.numa_node,
                     distance_text(facts, disk.numa_node, facts.device.numa_node)),
         "use a disk of the device's node (sluice node topology)");
  }
  if (!disk.write_bytes_per_s || !disk.read_bytes_per_s) return;
  constexpr double kMega = 1e-6;
  const std::string text =
      fmt::format("export {}: writes {:.0f} MB/s, reads {:.0f} MB/s (one short try, O_DIRECT)", one.root.name,
                  *disk.write_bytes_per_s * kMega, *disk.read_bytes_per_s * kMega);
  const double link_bytes_per_s = static_cast<double>(facts.device.speed_mbps) * 1e6 / 8;
  const double slower = std::min(*disk.write_bytes_per_s, *disk.read_bytes_per_s);
  if (facts.device.speed_mbps > 0 && slower < link_bytes_per_s) {
    warn(out, "disk_speed", text + fmt::format(": less than the link's {} Mbit/s", facts.device.speed_mbps),
         "sluice bench NODE --to DIR measures it at length; stripe several disks (mdadm, LVM)");
  } else {
    pass(out, "disk_speed", text);
  }
}

void check_peers_of(const config::Export& root, const std::vector<PeerFacts>& known,
                    std::vector<Finding>& out) {
  if (!root.peers) return;
  for (const config::ExportPeer& peer : *root.peers) {
    if (std::ranges::find(known, peer.name, &PeerFacts::name) != known.end()) continue;
    warn(out, "export",
         fmt::format("export {} is open to peer {}, which this node does not trust", root.name, peer.name),
         "sluice node trust, or correct [[export]] peers in node.toml");
  }
}

}  // namespace

void check_exports(const Facts& facts, std::vector<Finding>& out) {
  if (facts.exports.empty()) {
    warn(out, "export", "there is none: nothing can be sent or received but memory: and null:",
         "add an [[export]] to node.toml");
  }
  for (const ExportFacts& each : facts.exports) {
    check_export(facts, each, out);
    check_nfs(each, out);
    check_disk(facts, each, out);
    check_peers_of(each.root, facts.peers, out);
  }
}

}  // namespace sluice::doctor
