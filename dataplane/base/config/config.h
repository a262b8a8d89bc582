// node.toml: the one configuration file of a node, read by both daemons and by the CLI.
//
// Parsed once into an immutable struct. Unknown keys, wrong types and values out of range are errors
// that name the file, the line, the key, what was found and what is allowed. The table of keys in
// docs/REFERENCE.md is checked against this schema by a test.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/base/error.h"
#include "dataplane/base/options/options.h"

namespace sluice::config {

// A peer that may use an export, and how.
struct ExportPeer {
  std::string name;
  std::string mode;  // empty: that of the export

  static std::optional<ExportPeer> parse(std::string_view text);  // "beta", "beta:r"; nothing: neither
  std::string text() const;
  bool operator==(const ExportPeer&) const = default;
};

// What the sessions that a peer begins, or those of a user of this host, may take beneath an export. 0: no
// limit.
struct Quota {
  std::string peer;            // empty, and no user: every peer that has none of its own
  std::string user = {};       // of this host; "*": every user who has none of their own. Then no peer
  uint64_t session_bytes = 0;  // of one session
  uint64_t session_files = 0;  // likewise
  uint64_t sessions_max = 0;   // of one peer, or user, that have not ended
  uint64_t rate_bps = 0;       // key `rate`: of one session

  bool limits() const { return (session_bytes | session_files | sessions_max | rate_bps) != 0; }
  bool operator==(const Quota&) const = default;
};

struct Export {
  std::string name;            // [a-z0-9_-]+
  std::filesystem::path path;  // absolute
  bool read = true;            // mode: any of "r", "w", "m"
  bool write = false;
  bool manage = false;                           // names beneath it may be made, moved and removed
  bool owners = false;                           // who writes to it may choose owners and groups
  bool acls = false;                             // and POSIX ACLs
  bool direct = true;                            // files go past the page cache, where their file system can
  std::optional<std::vector<ExportPeer>> peers;  // nothing: every trusted peer
  std::vector<Quota> quotas;                     // [[export.quota]]

  std::string mode() const;
  // "beta, gamma:r"; empty: every trusted peer.
  std::string peers_text() const;
  // What is wrong with the list; empty: nothing is.
  std::string peers_problem() const;
  // What is wrong with the quotas; empty: nothing is.
  std::string quotas_problem() const;
  // The one that names the peer counts alone; where none does, the one for every peer.
  Quota quota_of(std::string_view peer) const;
  // The same for users of this host.
  Quota quota_of_user(std::string_view user) const;
  // With the rights that this peer has, none if it is not among those that may use it.
  Export for_peer(std::string_view peer) const;
};

// The data port on ordinary UDP sockets.
inline constexpr std::string_view kSocketDevice = "udp";
inline constexpr std::string_view kNoFallback = "none";  // of [port] fallback

inline constexpr uint32_t kExtentsMin = 8;  // of a worker
inline constexpr uint32_t kExtentsMax = 8192;

inline constexpr uint16_t kControlPort = 7400;  // where a node listens that says nothing else

struct Node {
  std::filesystem::path directory;  // where node.toml stands
  std::string name;                 // [node] name

  // [control]
  std::string listen = "0.0.0.0:7400";  // between nodes, TLS; "host:port", "[v6]:port", "none"
  std::string metrics_listen = "none";  // "host:port", "[v6]:port", "none"
  std::string log_level = "info";
  std::string state_dir;                // of journal and audit log; empty: the node's directory
  std::string control_group;            // key `group`: may open control_socket(); empty: its owner alone
  std::string readers_group;            // may open readers_socket(); empty: there is none
  std::string users_group;              // may open users_socket(); empty: there is none
  uint64_t users_uid_min = 1000;        // of those who may send as themselves
  std::string users_map_file;           // which of them peers' users are; empty: none
  std::string ca_file;                  // whoever has a certificate of it is a peer; empty: pinned keys alone
  std::string crl_file;                 // what it has revoked; empty: nothing
  std::string ca_domain;                // of the names that it may give; empty: they have none
  std::string addresses_file;           // where peers listen, one a line; empty: there is none
  std::string expired_pins = "refuse";  // certificates that are pinned and out of date: "refuse", "accept"
  std::string successors = "ask";       // new keys that pinned ones signed: "ask", "accept"
  std::string control_sandbox = "yes";  // key `sandbox`: "yes", "no"
  uint32_t sessions_max = 32;           // that run at a time
  uint32_t sessions_per_peer = 16;      // of these, that one peer began
  uint32_t queue_max = 256;             // that wait for their turn, or for anything else, besides
  uint32_t connect_timeout_s = 60;      // nothing of its data ever arrived for so long: a session fails
  uint32_t stall_timeout_s = 60;        // no progress for so long ends an attempt
  uint32_t resume_timeout_s = 86400;    // an interrupted session tries for so long to go on by itself
  uint32_t keep_timeout_s = 604800;  // a session of another node that does not go on with it is kept so long
  std::string reread = "always";     // what had arrived before an interruption: "always", "never"
  std::string umask = "022";         // of directories that are made without a mode of their own; octal
  uint32_t sync_lag_bytes = 256U << 20;  // written but unsynced bytes before a sync begins
  uint32_t sync_lag_ms = 1000;

  // [transfer] of a session that does not say otherwise: options that are SLUICE_CONFIGURED in
  // dataplane/base/options/options.def. `protection` is the least.
  options::Options transfer;
  uint64_t partition_bytes = 64ULL << 20;

  // [port]
  std::string device{kSocketDevice};  // or a DPDK ethdev: "net_memif0,role=server,...", "0000:01:00.0"
  std::string address4;               // "10.77.0.1/24" or empty
  std::string address6;               // "fd77::1/64" or empty
  std::string gateway4;
  std::string gateway6;
  std::string neighbours;  // "10.77.0.2=02:00:00:00:00:02 fd77::2=...": link addresses that are not asked for
  uint32_t mtu = 9000;     // IP MTU of the data network
  uint16_t udp_port_base = 47000;
  std::string udp_checksum = "auto";         // "auto": zero where the device cannot offload; "always"
  uint64_t port_rate_bps = 100'000'000'000;  // key `rate`: no session may exceed it
  std::string fallback{kNoFallback};  // or kSocketDevice: while a device is gone, sockets carry the data
  std::string fallback_address4;      // as address4, of the sockets
  std::string fallback_address6;
  uint32_t fallback_return_s = 30;  // the device has to be there for so long before the node returns to it

  // [dataplane]
  std::string dataplane_group;            // key `group`: may open dataplane_socket(); empty: its owner alone
  std::string dataplane_sandbox = "yes";  // key `sandbox`: "yes", "no"
  std::string memory = "auto";            // "auto", "hugepages", "no-huge"
  uint32_t memory_mib = 256;
  uint32_t workers = 1;
  std::vector<int> cores;         // CPU numbers; empty: chosen with hwloc
  std::string poll = "adaptive";  // "adaptive", "busy"
  uint32_t extent_bytes = 1U << 20;
  // 0 in the file: as many as a part of memory_mib holds, which the loader puts here.
  uint32_t extents_per_worker = 0;
  uint32_t rx_ring = 256;
  uint32_t tx_ring = 256;

  // [log] level of each component, or "default": log_level
  std::string log_control = "default";
  std::string log_session = "default";
  std::string log_peer = "default";
  std::string log_board = "default";
  std::string log_dataplane = "default";

  std::vector<Export> exports;  // [[export]]

  const std::string& log_level_of(std::string_view component) const;
  // It does not listen: behind a NAT or a firewall nobody could call it.
  bool calls_only() const { return listen == "none"; }
  std::filesystem::path run_dir() const { return directory / "run"; }
  std::filesystem::path control_socket() const { return run_dir() / "control.sock"; }
  std::filesystem::path readers_socket() const { return run_dir() / "readers.sock"; }
  std::filesystem::path users_socket() const { return run_dir() / "users.sock"; }
  // Of processes that open files outside the exports for those who may open control_socket(), or
  // users_socket().
  std::filesystem::path files_socket() const { return run_dir() / "files.sock"; }
  std::filesystem::path users_files_socket() const { return run_dir() / "users-files.sock"; }
  std::filesystem::path users_helper_socket() const { return run_dir() / "users-helper.sock"; }
  std::filesystem::path dataplane_socket() const { return run_dir() / "dataplane.sock"; }
  std::filesystem::path state() const {
    return state_dir.empty() ? directory : std::filesystem::path(state_dir);
  }
  std::filesystem::path journal() const { return state() / "journal.sqlite"; }
  std::filesystem::path audit_log() const { return state() / "audit.ndjson"; }
  std::filesystem::path identity_dir() const { return directory / "identity"; }
  std::filesystem::path trusted_dir() const { return directory / "trusted"; }
};

// Loads and checks DIRECTORY/node.toml.
Result<Node> load(const std::filesystem::path& directory);
// The same from text; `origin` names it in errors. Does not touch the file system (fuzzed).
Result<Node> parse(std::string_view text, const std::filesystem::path& directory, std::string_view origin);

// "10G", "2.5G", "800M", "1000" -> bit/s (decimal prefixes).
Result<uint64_t> parse_rate(std::string_view text);
// "1GiB", "64M" (binary), "100" -> bytes.
Result<uint64_t> parse_size(std::string_view text);

// "host:port" or "[v6]:port".
struct HostPort {
  std::string host;
  uint16_t port = 0;
};
// A device that may go while the node runs: a card (failed, unbound, pulled) or an interface of the kernel.
bool can_vanish(std::string_view device);
Result<HostPort> parse_host_port(std::string_view text);
// "ADDRESS=MAC ...": at most 16, each address once, the link addresses of hosts.
struct NeighbourText {
  std::string address;
  bool ip6 = false;
  uint8_t ip[16] = {};  // the first 4 bytes for IPv4
  uint8_t mac[6] = {};
};
Result<std::vector<NeighbourText>> parse_neighbours(std::string_view text);
// [a-z0-9][a-z0-9_-]{0,62}
bool valid_node_name(std::string_view name);

// A Markdown table of every key, made from the schema; docs/REFERENCE.md contains it word for word
// between <!-- config-reference-begin --> and <!-- config-reference-end -->.
std::string reference_markdown();

// What `sluice node init` was told; everything else keeps its default.
struct TemplateOptions {
  std::string name;
  std::string listen;
  std::string state_dir;
  std::string control_group;
  std::string dataplane_group;
  std::string device;  // empty: the default
  std::string address4;
  std::string address6;
  std::string gateway4;
  std::string gateway6;
  uint32_t mtu = Node{}.mtu;
  uint16_t udp_port_base = Node{}.udp_port_base;
  std::string memory;  // empty: the default
  uint32_t memory_mib = Node{}.memory_mib;
  uint32_t workers = Node{}.workers;
  std::vector<int> cores;
  std::string poll;  // empty: the default
  uint64_t rate_bps = Node{}.transfer.rate_bps;
  std::string ca_file;
  std::string crl_file;
  std::string ca_domain;
  std::string addresses_file;
  std::vector<Export> exports;
};
// A commented node.toml: every key with its meaning; keys that keep their default are commented out.
// parse() accepts it when the options are valid.
std::string make_template(const TemplateOptions& options);

}  // namespace sluice::config
