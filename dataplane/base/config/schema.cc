// The table of keys but those of trust, transfers, logs and exports; see schema.h. Order here is the order in
// the reference and in the template.
// SPDX-License-Identifier: Apache-2.0
#include "dataplane/base/config/schema.h"

#include "dataplane/base/config/problems.h"
#include "dataplane/core/wire.h"

namespace sluice::config {
namespace {

constexpr uint64_t kKi = 1ULL << 10;
constexpr uint64_t kMi = 1ULL << 20;
constexpr uint64_t kGi = 1ULL << 30;

const Key kKeys[] = {
    {.section = "node",
     .name = "name",
     .field = &Node::name,
     .allowed = "`[a-z0-9][a-z0-9_-]{0,62}`",
     .meaning = "Name of this node; its certificate carries it and peers know it by it.",
     .text_problem = name_problem,
     .required = true},

    {.section = "control",
     .name = "listen",
     .field = &Node::listen,
     .allowed = "`host:port`, `[v6]:port`, `none`",
     .meaning =
         "Where sluice-control listens for other nodes (TCP, TLS 1.3). `none`: this node only calls, as "
         "behind a NAT or a firewall; all flows are opened from here.",
     .text_problem = listen_problem},
    {.section = "control",
     .name = "metrics_listen",
     .field = &Node::metrics_listen,
     .allowed = "`host:port`, `[v6]:port`, `none`",
     .meaning =
         "Where sluice-control serves metrics for Prometheus (HTTP, `/metrics`; docs/METRICS.md), to whoever "
         "reaches it: an address of this host alone (`127.0.0.1:7410`), or one behind a proxy or firewall.",
     .text_problem = listen_problem},
    {.section = "control",
     .name = "log_level",
     .type = ValueType::kChoice,
     .field = &Node::log_level,
     .choices = "trace debug info warn error",
     .meaning = "How much both daemons log."},
    {.section = "control",
     .name = "state_dir",
     .field = &Node::state_dir,
     .allowed = "absolute path of a directory, or empty",
     .meaning = "Where the journal and the audit log lie; empty: in the directory of the node.",
     .text_problem = optional_path_problem},
    {.section = "control",
     .name = "group",
     .field = &Node::control_group,
     .allowed = "name of a group of this host, or empty",
     .meaning = "Its members may use `sluice` on this node as its owner does; empty: the owner alone.",
     .text_problem = group_problem},
    {.section = "control",
     .name = "sandbox",
     .type = ValueType::kChoice,
     .field = &Node::control_sandbox,
     .choices = "yes no",
     .meaning =
         "`yes`: sluice-control gives up, once it has started, files beside its exports and its own, and "
         "system "
         "calls that it does not need. `no` only to find out whether a fault comes of that; it is logged."},
    {.section = "control",
     .name = "sessions_max",
     .type = ValueType::kInteger,
     .field = &Node::sessions_max,
     .min = 1,
     .max = 64,
     .unit = "sessions",
     .meaning = "Sessions that run at a time; further ones wait for their turn."},
    {.section = "control",
     .name = "sessions_per_peer",
     .type = ValueType::kInteger,
     .field = &Node::sessions_per_peer,
     .min = 1,
     .max = 64,
     .unit = "sessions",
     .meaning =
         "Sessions begun by one peer that run here at a time; further ones of it wait for their turn."},
    {.section = "control",
     .name = "queue_max",
     .type = ValueType::kInteger,
     .field = &Node::queue_max,
     .min = 0,
     .max = 4096,
     .unit = "sessions",
     .meaning =
         "Sessions that wait, or are paused, besides those that run; further ones are refused. One peer "
         "may have begun half of them."},
    {.section = "control",
     .name = "connect_timeout_s",
     .type = ValueType::kInteger,
     .field = &Node::connect_timeout_s,
     .min = 5,
     .max = 86400,
     .unit = "s",
     .meaning = "A session fails if it sends data for so long and none has ever arrived, as where a firewall "
                "drops UDP."},
    {.section = "control",
     .name = "stall_timeout_s",
     .type = ValueType::kInteger,
     .field = &Node::stall_timeout_s,
     .min = 5,
     .max = 86400,
     .unit = "s",
     .meaning = "A session without progress for so long begins anew with what it has."},
    {.section = "control",
     .name = "resume_timeout_s",
     .type = ValueType::kInteger,
     .field = &Node::resume_timeout_s,
     .min = 1,
     .max = 31536000,
     .unit = "s",
     .meaning = "An interrupted session tries for so long to go on by itself, then it is paused."},
    {.section = "control",
     .name = "keep_timeout_s",
     .type = ValueType::kInteger,
     .field = &Node::keep_timeout_s,
     .min = 60,
     .max = 31536000,
     .unit = "s",
     .meaning =
         "A session that another node began, and has not gone on with for so long, ends; its unfinished "
         "files are removed."},
    {.section = "control",
     .name = "reread",
     .type = ValueType::kChoice,
     .field = &Node::reread,
     .choices = "always never",
     .meaning =
         "`always`: what had arrived before an interruption (a restart, a pause) is read again and "
         "compared, while the transfer goes on. `never` trusts the journal: unsafe where volumes may go "
         "back to a snapshot or files may be replaced."},
    {.section = "control",
     .name = "umask",
     .field = &Node::umask,
     .allowed = "three octal digits, the first 0",
     .meaning =
         "Permissions that directories do not get which `--mkdir` and `sluice mkdir` make, as of umask(1). "
         "Where the directory above has a default ACL, that counts instead.",
     .text_problem = umask_problem},
    {.section = "control",
     .name = "sync_lag_bytes",
     .type = ValueType::kSize,
     .field = &Node::sync_lag_bytes,
     .min = kMi,
     .max = 4 * kGi - kMi,
     .unit = "bytes",
     .meaning = "Bytes written but not yet synced before a sync begins."},
    {.section = "control",
     .name = "sync_lag_ms",
     .type = ValueType::kInteger,
     .field = &Node::sync_lag_ms,
     .min = 10,
     .max = 60000,
     .unit = "ms",
     .meaning = "Time after which a sync begins with fewer bytes."},

    {.section = "port",
     .name = "device",
     .field = &Node::device,
     .allowed = "`udp`; a PCI address, or `net_memif0,...`, `net_af_packet0,...`, `net_af_xdp0,...`, "
                "`net_tap0,...`",
     .meaning = "What carries the data: `udp`, the sockets of this host, which need no privileges and no "
                "hugepages; or a DPDK device.",
     .text_problem = device_problem},
    {.section = "port",
     .name = "address4",
     .field = &Node::address4,
     .allowed = "`a.b.c.d/bits` or empty",
     .meaning = "IPv4 address of the data port. With `udp` one of this host; if neither is set, that of its "
                "default route.",
     .text_problem = address4_problem},
    {.section = "port",
     .name = "address6",
     .field = &Node::address6,
     .allowed = "`v6/bits` or empty",
     .meaning = "IPv6 address of the data port, likewise.",
     .text_problem = address6_problem},
    {.section = "port",
     .name = "gateway4",
     .field = &Node::gateway4,
     .allowed = "`a.b.c.d` or empty",
     .meaning = "Next hop for IPv4 peers outside the prefix.",
     .text_problem = gateway4_problem},
    {.section = "port",
     .name = "gateway6",
     .field = &Node::gateway6,
     .allowed = "`v6` or empty",
     .meaning = "Next hop for IPv6 peers outside the prefix.",
     .text_problem = gateway6_problem},
    {.section = "port",
     .name = "neighbours",
     .field = &Node::neighbours,
     .allowed = "`ADDRESS=MAC ...`, at most 16, or empty",
     .meaning = "Link addresses of hosts and routers on the data network that are never asked for by ARP or "
                "neighbour discovery, and that nothing heard there changes.",
     .text_problem = neighbours_problem},
    {.section = "port",
     .name = "mtu",
     .type = ValueType::kInteger,
     .field = &Node::mtu,
     .min = 1280,
     .max = 65535,
     .unit = "bytes",
     .meaning =
         "IP MTU of the data network, the same at both ends. With `udp` that of the interface, if it is "
         "less."},
    {.section = "port",
     .name = "udp_port_base",
     .type = ValueType::kInteger,
     .field = &Node::udp_port_base,
     .min = 1024,
     .max = 65280,
     .unit = "port",
     .meaning = "First UDP port of the lanes; up to 256 are used."},
    {.section = "port",
     .name = "udp_checksum",
     .type = ValueType::kChoice,
     .field = &Node::udp_checksum,
     .choices = "auto always",
     .meaning = "`auto` sends zero where the device cannot compute it (the CRC covers header and payload)."},
    {.section = "port",
     .name = "rate",
     .type = ValueType::kRate,
     .field = &Node::port_rate_bps,
     .min = 100'000,
     .max = 800'000'000'000,
     .unit = "bit/s",
     .meaning = "No session may exceed it."},
    {.section = "port",
     .name = "fallback",
     .type = ValueType::kChoice,
     .field = &Node::fallback,
     .choices = "none udp",
     .meaning = "`udp`: while `device` is gone (a card that failed or was unbound, an interface that was "
                "deleted), the sockets of this host carry the data. For cards, `net_af_packet` and "
                "`net_af_xdp`. A link that is down is not a device that is gone."},
    {.section = "port",
     .name = "fallback_address4",
     .field = &Node::fallback_address4,
     .allowed = "`a.b.c.d/bits` or empty",
     .meaning =
         "IPv4 address of this host for `fallback`, where the peers' data ports reach it; if neither is "
         "set, that of the default route.",
     .text_problem = address4_problem},
    {.section = "port",
     .name = "fallback_address6",
     .field = &Node::fallback_address6,
     .allowed = "`v6/bits` or empty",
     .meaning = "IPv6 address of this host for `fallback`, likewise.",
     .text_problem = address6_problem},
    {.section = "port",
     .name = "fallback_return_s",
     .type = ValueType::kInteger,
     .field = &Node::fallback_return_s,
     .min = 1,
     .max = 86400,
     .unit = "s",
     .meaning =
         "The device must be there for so long without a break before the node returns to it; twice as "
         "long after each fall within 10 minutes of a return, up to 16 times."},

    {.section = "dataplane",
     .name = "group",
     .field = &Node::dataplane_group,
     .allowed = "name of a group of this host, or empty",
     .meaning = "Its members may attach to the dataplane, if `sluice-control` runs as another user; empty: "
                "the owner alone.",
     .text_problem = group_problem},
    {.section = "dataplane",
     .name = "sandbox",
     .type = ValueType::kChoice,
     .field = &Node::dataplane_sandbox,
     .choices = "yes no",
     .meaning = "`yes`: sluice-dataplane gives up, once it has started, opening files, running programs, "
                "TCP, and system "
                "calls that its port does not need. `no` only to find out whether a fault comes of that; it "
                "is logged."},
    {.section = "dataplane",
     .name = "memory",
     .type = ValueType::kChoice,
     .field = &Node::memory,
     .choices = "auto hugepages no-huge",
     .meaning = "`auto` uses hugepages if there are enough, and ordinary pages with a warning otherwise."},
    {.section = "dataplane",
     .name = "memory_mib",
     .type = ValueType::kInteger,
     .field = &Node::memory_mib,
     .min = 64,
     .max = 1024 * 1024,
     .unit = "MiB",
     .meaning = "Memory of the dataplane: packet buffers and extents. Does not depend on file sizes."},
    {.section = "dataplane",
     .name = "workers",
     .type = ValueType::kInteger,
     .field = &Node::workers,
     .min = 1,
     .max = 16,
     .unit = "threads",
     .meaning = "Pinned threads, each with a queue pair of the device."},
    {.section = "dataplane",
     .name = "cores",
     .type = ValueType::kCores,
     .field = &Node::cores,
     .min = 0,
     .max = 1023,
     .allowed = "array of CPU numbers, one per worker",
     .meaning = "CPUs of the workers; empty chooses on the device's NUMA node, without SMT siblings."},
    {.section = "dataplane",
     .name = "poll",
     .type = ValueType::kChoice,
     .field = &Node::poll,
     .choices = "adaptive busy",
     .meaning = "`adaptive` lets idle workers sleep briefly; `busy` never does, for CPUs of their own."},
    {.section = "dataplane",
     .name = "extent_bytes",
     .type = ValueType::kSize,
     .field = &Node::extent_bytes,
     .min = 64 * kKi,
     .max = kMi,
     .unit = "bytes",
     .allowed = "64KiB..1MiB, a power of two",
     .meaning = "Unit of disk I/O, of buffering and of credit.",
     .number_problem = power_of_two_problem},
    {.section = "dataplane",
     .name = "extents_per_worker",
     .type = ValueType::kInteger,
     .field = &Node::extents_per_worker,
     .min = 0,
     .max = kExtentsMax,
     .unit = "extents",
     .allowed = "0, or 8..8192",
     .meaning =
         "Extent buffers of a worker, half for sending and half for receiving; 0: as many as three quarters "
         "of memory_mib hold.",
     .number_problem = extents_problem},
    {.section = "dataplane",
     .name = "rx_ring",
     .type = ValueType::kInteger,
     .field = &Node::rx_ring,
     .min = 64,
     .max = 4096,
     .unit = "frames",
     .allowed = "64..4096, a power of two",
     .meaning = "Receive ring of a queue; small rings stay in the cache.",
     .number_problem = power_of_two_problem},
    {.section = "dataplane",
     .name = "tx_ring",
     .type = ValueType::kInteger,
     .field = &Node::tx_ring,
     .min = 64,
     .max = 4096,
     .unit = "frames",
     .allowed = "64..4096, a power of two",
     .meaning = "Transmit ring of a queue.",
     .number_problem = power_of_two_problem},
};

}  // namespace

std::span<const Key> schema() {
  static const std::vector<Key> keys = [] {
    std::vector<Key> all;
    const auto add = [&all](std::span<const Key> more) { all.insert(all.end(), more.begin(), more.end()); };
    for (const Key& key : kKeys) {
      if (!all.empty() && all.back().section == "control" && key.section != "control") {
        add(trust_keys());
        add(transfer_keys());
      }
      all.push_back(key);
    }
    add(log_keys());
    add(export_keys());
    return all;
  }();
  return keys;
}

}  // namespace sluice::config
