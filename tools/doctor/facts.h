// What `sluice doctor` knows of a host and of a node on it before it judges.
//
// Plain data: gathered by tools/doctor/gather.h, or made up by a test.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "dataplane/base/config/config.h"

namespace sluice::doctor {

struct HugepagePool {
  int numa_node = 0;
  uint64_t page_kib = 0;
  uint64_t all_mib = 0;
  uint64_t free_mib = 0;
};

struct CpuFacts {
  int cpu = 0;
  int numa_node = -1;  // -1: not known
  bool isolated = false;
  std::string governor;  // empty: the kernel does not scale its frequency
};

// What carries the data, as the kernel knows it.
struct DeviceFacts {
  enum class Kind : uint8_t { kSockets, kPci, kInterface, kOther };
  Kind kind = Kind::kSockets;
  std::string name;          // PCI address, or interface; empty: none is known
  bool found = false;        // there is such a thing
  std::string driver;        // of a PCI device; empty: none is bound
  bool iommu_group = false;  // of a PCI device
  int numa_node = -1;        // -1: not known
  bool up = false;           // of an interface
  uint32_t mtu = 0;          // of an interface; 0: not known
  int64_t speed_mbps = -1;   // of an interface; -1: not known
  std::string address;       // [port] address4 or address6 that this host lacks; empty: it has them
};

// What an export lies on.
struct DiskFacts {
  std::string device;        // "nvme0n1"; empty: none that the kernel names
  int numa_node = -1;        // -1: not known
  uint32_t block_bytes = 0;  // that O_DIRECT must be aligned to; 0: not known
  // As a short try measured them, with O_DIRECT; nothing: it was not tried.
  std::optional<double> write_bytes_per_s;
  std::optional<double> read_bytes_per_s;
};

struct ExportFacts {
  config::Export root;
  std::string problem;      // why it cannot be opened; empty: it can
  std::string file_system;  // "ext4", "xfs", "tmpfs"; empty: not known
  uint64_t size_bytes = 0;
  uint64_t free_bytes = 0;
  bool readable = false;
  bool writable = false;
  std::string mounted_with;       // options, with commas between them; empty: not known
  bool in_memory = false;         // a tmpfs
  std::optional<bool> direct_io;  // O_DIRECT can be used; nothing: it could not be tried
  DiskFacts disk;
};

struct KernelFacts {
  std::string io_uring_problem;  // empty: it can be set up
  std::string io_uring_remedy;   // then
  uint64_t rmem_max = 0;         // 0: not known
  uint64_t wmem_max = 0;
  std::optional<bool> clock_synchronized;
  uint64_t memlock_bytes = UINT64_MAX;  // limits of this command; UINT64_MAX: none
  uint64_t nofile = UINT64_MAX;
  uint64_t memory_available_mib = 0;
};

// A daemon that runs, by the kernel's word: what it may have, which is not what this command may.
struct ProcessFacts {
  std::string program;
  int pid = 0;
  uint64_t nofile = UINT64_MAX;  // UINT64_MAX: no limit
  uint64_t memlock_bytes = UINT64_MAX;
};

// Who looks, and whose the node is.
struct LookerFacts {
  std::string user;
  std::string owner;      // of the node's key
  bool stranger = false;  // neither the owner nor root: what may not be seen is not missing
};

struct DaemonFacts {
  std::string problem;        // why sluice-control did not answer; empty: it did
  bool stands_still = false;  // it runs, takes calls, and answers none
  std::string version;
  bool attached = false;
  bool hugepages = false;
  std::string fallback_for;  // the device that is gone, while sockets carry the data; else empty
  std::string fallback_reason;
  bool journal_lost = false;  // the journal in its place, if there is one, is not the one that it writes to
};

// One that runs on this host as well.
struct OtherNode {
  std::string directory;             // empty: it may not be seen
  std::string user;                  // as whom it runs
  std::optional<config::Node> node;  // nothing: its node.toml may not be read
};

struct PeerFacts {
  std::string name;
  std::string address;  // empty: it only calls
  std::string problem;  // why no connection could be opened; empty: one could
};

struct PeerSpace {
  std::string name;
  uint64_t size_bytes = 0;
  uint64_t free_bytes = 0;
};

// What a closer look at one peer found: it was called, asked about itself, and a short transfer from memory
// into nothing went there.
struct PeerLook {
  std::string name;
  std::string problem;  // why it could not be asked; empty: it was
  std::string remedy;   // then
  std::string software;
  int64_t clock_offset_ns = 0;  // its clock minus ours
  uint64_t clock_error_ns = 0;
  uint64_t round_trip_ns = 0;  // of the control stream
  std::vector<PeerSpace> spaces;
  std::string path_problem;  // why nothing went over the data port; empty: it did
  uint64_t datagrams = 0;
  uint64_t lost = 0;     // on the network
  uint64_t no_room = 0;  // for want of a buffer there
  double rtt_us = 0;
  double goodput_bps = 0;
  uint32_t chunk_bytes = 0;  // the longest that went through
  bool narrow = false;       // the path carries less than both ports do
};

// A certificate, or a list of revoked ones, that has an end.
struct ExpiryFacts {
  std::string kind;  // as identity::Expiry has it
  std::string name;
  std::string what;    // "the certificate of this node"
  std::string when;    // RFC 3339
  int64_t left_s = 0;  // negative: it is over
};

// Of a node that users use as themselves.
struct UsersFacts {
  std::string helper_problem;           // why sluice-users did not answer; empty: it did
  size_t map_lines = 0;                 // of [control] users_map_file
  std::string map_problem;              // why it is not usable; empty: it is, or there is none
  std::vector<std::string> map_nobody;  // lines that make somebody a user who cannot be: which, and why
};

struct Facts {
  std::string version;    // of this command
  std::string directory;  // of the node
  std::optional<config::Node> node;
  std::string configuration_error;  // without one
  std::string identity_error;       // empty: there is a good one
  std::vector<HugepagePool> hugepages;
  std::vector<CpuFacts> cpus;  // that may be used, in order
  DeviceFacts device;
  std::vector<ExportFacts> exports;
  KernelFacts kernel;
  LookerFacts looker;
  DaemonFacts daemon;
  std::optional<ProcessFacts> control_process;
  std::optional<ProcessFacts> dataplane_process;
  std::vector<OtherNode> other_nodes;
  std::string listen_problem;  // why a sluice-control that does not run could not listen; empty: it could
  std::vector<PeerFacts> peers;
  std::optional<PeerLook> peer_look;             // of the one that was asked for
  std::vector<std::vector<int>> numa_distances;  // [from][to], by the kernel; empty: not known
  std::vector<ExpiryFacts> expiries;
  std::string audit_problem;                // why no line can be added to the audit log; empty: one can
  std::optional<UsersFacts> users;          // nothing: no [control] users_group
  std::vector<std::string> trust_problems;  // files in trusted/ for which sluice-control would not start
};

}  // namespace sluice::doctor
