// The table of keys; see schema.h. Order here is the order in the reference and in the template.
// SPDX-License-Identifier: Apache-2.0
#include "dataplane/base/config/schema.h"

#include <arpa/inet.h>

#include <bit>
#include <charconv>
#include <filesystem>

#include "dataplane/core/wire.h"

namespace sluice::config {
namespace {

constexpr uint64_t kKi = 1ULL << 10;
constexpr uint64_t kMi = 1ULL << 20;
constexpr uint64_t kGi = 1ULL << 30;
constexpr uint64_t kTi = 1ULL << 40;

std::string_view name_problem(std::string_view text) {
  return valid_node_name(text) ? ""
                               : "must be 1 to 63 of a-z, 0-9, '_' and '-', beginning with a letter or digit";
}

std::string_view listen_problem(std::string_view text) {
  return parse_host_port(text) ? "" : "must be \"host:port\" or \"[v6]:port\"";
}

// An address a host can have: neither unspecified nor multicast nor broadcast.
bool host_address(int family, std::string_view text) {
  uint8_t raw[16] = {};
  if (text.find('\0') != std::string_view::npos) return false;
  if (inet_pton(family, std::string(text).c_str(), raw) != 1) return false;
  if (family == AF_INET) return raw[0] != 0 && raw[0] < 224;
  const uint8_t none[16] = {};
  return raw[0] != 0xff && !std::equal(raw, raw + 16, none);
}

bool address_with_prefix(int family, std::string_view text, unsigned bits_max) {
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos) return false;
  const std::string_view bits_text = text.substr(slash + 1);
  unsigned bits = 0;
  const auto [end, failure] = std::from_chars(bits_text.data(), bits_text.data() + bits_text.size(), bits);
  if (failure != std::errc{} || end != bits_text.data() + bits_text.size() || bits_text.empty()) return false;
  return bits >= 1 && bits <= bits_max && host_address(family, text.substr(0, slash));
}

std::string_view address4_problem(std::string_view text) {
  const bool good = text.empty() || address_with_prefix(AF_INET, text, 32);
  return good ? "" : "must be an IPv4 host address with its prefix length, such as \"10.77.0.1/24\"";
}
std::string_view address6_problem(std::string_view text) {
  const bool good = text.empty() || address_with_prefix(AF_INET6, text, 128);
  return good ? "" : "must be an IPv6 host address with its prefix length, such as \"fd77::1/64\"";
}
std::string_view gateway4_problem(std::string_view text) {
  return text.empty() || host_address(AF_INET, text)
             ? ""
             : "must be an IPv4 host address, such as \"10.77.0.254\"";
}
std::string_view gateway6_problem(std::string_view text) {
  return text.empty() || host_address(AF_INET6, text) ? ""
                                                      : "must be an IPv6 host address, such as \"fd77::fe\"";
}

std::string_view neighbours_problem(std::string_view text) {
  return text.find('\0') == std::string_view::npos && parse_neighbours(text)
             ? ""
             : "must be up to 16 of ADDRESS=MAC with blanks between, such as "
               "\"10.77.0.2=02:00:5e:10:00:02\", each address once";
}

std::string_view device_problem(std::string_view text) {
  for (const char c : text) {
    if (c <= ' ' || c > '~') return "must be a DPDK device without blanks, such as \"0000:01:00.0\"";
  }
  return "";
}

std::string_view path_problem(std::string_view text) {
  const std::filesystem::path path(text);
  if (text.find('\0') != std::string_view::npos || !path.is_absolute()) return "must be an absolute path";
  for (const auto& part : path) {
    if (part == "..") return "must not contain \"..\"";
  }
  return "";
}

std::string_view chunk_problem(uint64_t bytes) {
  return bytes == 0 || (bytes >= wire::kChunkBytesMin && bytes % wire::kChunkBytesStep == 0)
             ? ""
             : "must be 0 or a multiple of 4 from 256";
}
std::string_view power_of_two_problem(uint64_t value) {
  return std::has_single_bit(value) ? "" : "must be a power of two";
}

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
     .allowed = "`host:port`, `[v6]:port`",
     .meaning = "Where sluice-control listens for other nodes (TCP, TLS 1.3).",
     .text_problem = listen_problem},
    {.section = "control",
     .name = "log_level",
     .type = ValueType::kChoice,
     .field = &Node::log_level,
     .choices = "trace debug info warn error",
     .meaning = "How much both daemons log."},
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

    {.section = "transfer",
     .name = "lanes",
     .type = ValueType::kInteger,
     .field = &Node::lanes,
     .min = 1,
     .max = 16,
     .unit = "lanes",
     .meaning = "UDP flows of a session; the smaller number of both nodes is used."},
    {.section = "transfer",
     .name = "crc",
     .type = ValueType::kChoice,
     .field = &Node::crc,
     .choices = "crc64 crc32c",
     .meaning = "Checksum of chunks, extents and files."},
    {.section = "transfer",
     .name = "rate",
     .type = ValueType::kRate,
     .field = &Node::rate_bps,
     .min = 100'000,
     .max = 800'000'000'000,
     .unit = "bit/s",
     .meaning = "Rate of one session on the wire, headers included, all its lanes together."},
    {.section = "transfer",
     .name = "chunk_bytes",
     .type = ValueType::kSize,
     .field = &Node::chunk_bytes,
     .min = 0,
     .max = 32768,
     .unit = "bytes",
     .allowed = "0, 256..32768 in steps of 4",
     .meaning = "Payload of one datagram; 0 takes 8192, or what fits the path.",
     .number_problem = chunk_problem},
    {.section = "transfer",
     .name = "partition_bytes",
     .type = ValueType::kSize,
     .field = &Node::partition_bytes,
     .min = kMi,
     .max = kTi,
     .unit = "bytes",
     .allowed = "1MiB..1TiB, a multiple of `extent_bytes`",
     .meaning = "Part of a file that is given to one lane at a time."},

    {.section = "port",
     .name = "device",
     .field = &Node::device,
     .allowed = "a PCI address, or `net_memif0,...`, `net_af_packet0,...`, `net_af_xdp0,...`, `net_tap0,...`",
     .meaning = "The DPDK device that carries the data. The dataplane does not start without one.",
     .text_problem = device_problem},
    {.section = "port",
     .name = "address4",
     .field = &Node::address4,
     .allowed = "`a.b.c.d/bits` or empty",
     .meaning = "IPv4 address of the data port.",
     .text_problem = address4_problem},
    {.section = "port",
     .name = "address6",
     .field = &Node::address6,
     .allowed = "`v6/bits` or empty",
     .meaning = "IPv6 address of the data port.",
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
     .meaning = "IP MTU of the data network, the same at both ends."},
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
     .min = 8,
     .max = 65536,
     .unit = "extents",
     .meaning = "Extent buffers of a worker, for sending and receiving together."},
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

    {.section = "export",
     .name = "name",
     .allowed = "`[a-z0-9][a-z0-9_-]{0,62}`",
     .meaning = "Name of the export: peers may write `NAME/path` instead of the absolute path.",
     .text_problem = name_problem,
     .required = true},
    {.section = "export",
     .name = "path",
     .allowed = "absolute path of a directory",
     .meaning = "Root of the export; nothing outside it is ever opened.",
     .text_problem = path_problem,
     .required = true},
    {.section = "export",
     .name = "mode",
     .type = ValueType::kChoice,
     .choices = "r w rw",
     .meaning = "Whether files beneath it may be sent (`r`), received (`w`) or both."},
};

}  // namespace

std::span<const Key> schema() { return kKeys; }

}  // namespace sluice::config
