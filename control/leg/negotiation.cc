// SPDX-License-Identifier: Apache-2.0
#include "control/leg/negotiation.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "control/board/flow_table.h"
#include "control/leg/codes.h"
#include "control/leg/compression.h"
#include "control/words/bounds.h"
#include "dataplane/base/version.h"
#include "dataplane/core/host_address.h"

namespace sluice::transfer {
namespace {

constexpr size_t kSessionIdDigits = 32;

std::string ip4_bytes(const board::PortInfo& port) {
  const auto* ip = reinterpret_cast<const char*>(port.ip4);
  return std::all_of(ip, ip + 16, [](char c) { return c == 0; }) ? "" : std::string(ip + 12, 4);
}

std::string ip6_bytes(const board::PortInfo& port) {
  const auto* ip = reinterpret_cast<const char*>(port.ip6);
  return std::all_of(ip, ip + 16, [](char c) { return c == 0; }) ? "" : std::string(ip, 16);
}

std::array<uint8_t, 16> mapped(const std::string& bytes) {
  std::array<uint8_t, 16> ip{};
  if (bytes.size() == 4) {
    ip[10] = ip[11] = 0xFF;
    std::memcpy(ip.data() + 12, bytes.data(), 4);
  } else {
    std::memcpy(ip.data(), bytes.data(), 16);
  }
  return ip;
}

bool good_address(const std::string& bytes, size_t length) { return bytes.empty() || bytes.size() == length; }

std::string address_text(const std::string& bytes) {
  if (bytes.size() == 4)
    return fmt::format("{}.{}.{}.{}", static_cast<uint8_t>(bytes[0]), static_cast<uint8_t>(bytes[1]),
                       static_cast<uint8_t>(bytes[2]), static_cast<uint8_t>(bytes[3]));
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 2) {
    text += fmt::format("{}{:02x}{:02x}", i == 0 ? "" : ":", static_cast<uint8_t>(bytes[i]),
                        static_cast<uint8_t>(bytes[i + 1]));
  }
  return text;
}

Status check_ports(const std::vector<uint32_t>& ports) {
  for (const uint32_t port : ports) {
    if (port == 0 || port > UINT16_MAX) return incompatible(fmt::format("the peer offers UDP port {}", port));
  }
  return {};
}

bool known_protection(uint32_t protection) { return protection < std::size(wire::kProtectionNames); }

Status check_specification(const Specification& spec) {
  if (spec.role != OfferedRole::kSource && spec.role != OfferedRole::kDestination) {
    return incompatible("the peer's specification has no role");
  }
  if (!good_address(spec.data_ip4, 4) || !good_address(spec.data_ip6, 16)) {
    return incompatible("the peer's data address has a wrong length");
  }
  if (spec.lanes_max == 0 || spec.udp_ports.size() < spec.lanes_max) {
    return incompatible("the peer's specification has fewer UDP ports than lanes");
  }
  if (spec.rate_bps_max == 0) return incompatible("the peer's specification has no rate");
  if (static_cast<size_t>(spec.rate_mode) >= rate::kModeNames.size())
    return incompatible("the peer wants a rate mode that is not known here: use adaptive, fixed or cubic");
  if (!known_protection(spec.protection))
    return incompatible("the peer wants a protection that is not known here: upgrade this node");
  if (spec.expected_loss_ppm > kExpectedLossPpmMax)
    return incompatible("the peer expects more loss than 95 %");
  return check_ports(spec.udp_ports);
}

bool demands_parity(const Specification& spec) {
  return spec.abilities.has(Ability::kParityDemanded) && !spec.discard;
}

bool demands_compression(const Specification& spec) {
  return spec.abilities.has(Ability::kCompressDemanded) && !spec.discard;
}

// A source that sends everything cannot be one of several.
Status check_parts(const Specification& spec, const SpecificationSet& set) {
  const bool demanded = spec.abilities.has(Ability::kParts) && spec.role == OfferedRole::kDestination;
  if (!demanded || set.abilities.has(Ability::kParts)) return {};
  return incompatible(
      "the peer cannot be one of several sources, since it does not know how to send parts of a file: "
      "upgrade "
      "it, or leave it out of --from");
}

// A probe that is not reflected measures nothing.
Status check_echoes(const Specification& spec, const SpecificationSet& set) {
  if (!spec.abilities.has(Ability::kEchoes) || set.abilities.has(Ability::kEchoes)) return {};
  return incompatible(
      "the peer does not know how to reflect datagrams: upgrade it, or probe it with --transfers");
}

// A node that does not know it would store a range as if it were the file.
Status check_ranges(const Specification& spec, const SpecificationSet& set) {
  if (!spec.abilities.has(Ability::kRanges) || set.abilities.has(Ability::kRanges)) return {};
  return incompatible(
      "the peer cannot write a file together with other nodes, a part each: upgrade it, or move the file "
      "whole (plan the fleet with --whole-files)");
}

// Whoever asks for digests relies on them.
Status check_digests(const Specification& spec, const SpecificationSet& set) {
  if (!spec.abilities.has(Ability::kDigests) || set.abilities.has(Ability::kDigests)) return {};
  return incompatible(
      "the peer does not know how to compute digests of what it stores: upgrade it, or leave out --digest, "
      "--manifest and --write-manifest, and run sluice verify there");
}

Status check_learnt(const Specification& spec, const SpecificationSet& set) {
  if (!spec.learn_address || set.learns_address) return {};
  return incompatible(
      "this node only calls ([control] listen = \"none\"), and the peer is too old to learn its address "
      "from its datagrams: upgrade the peer, or listen");
}

Status check_demands(const Specification& spec, const SpecificationSet& set) {
  Status status = check_parts(spec, set);
  if (status) status = check_compression(spec.abilities & set.abilities, demands_compression(spec));
  if (status) status = check_echoes(spec, set);
  if (status) status = check_ranges(spec, set);
  if (status) status = check_learnt(spec, set);
  return status ? check_digests(spec, set) : status;
}

// An older source says nothing, and one of another kind may say anything.
uint32_t digests_agreed(uint32_t said) {
  return std::clamp(said, kDigestsUnansweredMin, kDigestsUnansweredMax);
}

// Checks in an answer what protects data and what repairs them.
Status check_protection(const Specification& spec, const SpecificationSet& set) {
  if (!known_protection(set.protection) || set.protection < spec.protection)
    return incompatible(
        "the peer chose a weaker protection than this node wants, or one that it does not know");
  return check_codes(spec.abilities & set.abilities, demands_parity(spec));
}

// The family both have; empty when there is none.
std::string choose_address(const Specification& spec, const board::PortInfo& port) {
  const std::string ip4 = spec.data_ip4.empty() ? "" : ip4_bytes(port);
  const std::string ip6 = spec.data_ip6.empty() ? "" : ip6_bytes(port);
  if (spec.prefer_ip6 && !ip6.empty()) return ip6;
  return !ip4.empty() ? ip4 : ip6;
}

constexpr uint32_t number_of(wire::CrcKind kind) { return static_cast<uint32_t>(kind); }

Result<uint32_t> choose_crc(const Specification& spec) {
  for (const uint32_t kind : spec.crc_kinds) {
    if (kind > number_of(wire::CrcKind::kRead)) continue;  // of a newer node
    if (wire::checks(static_cast<wire::CrcKind>(kind)) || spec.discard) return kind;
  }
  return incompatible("the nodes share no CRC kind: use crc64 or crc32c");
}

struct ChunkLimit {
  uint32_t bytes = 0;
  rate::SizeReason reason = rate::SizeReason::kAgreed;
};

// The smaller one, and why.
ChunkLimit smaller(const ChunkLimit& a, const ChunkLimit& b) { return b.bytes < a.bytes ? b : a; }

// At a source the path to the peer has a say as well.
ChunkLimit chunk_limit(uint32_t bytes, const Abilities::Path& path, bool by_loss) {
  ChunkLimit limit{.bytes = bytes};
  if (path.carried_bytes != 0)
    limit = smaller(limit, {.bytes = path.carried_bytes, .reason = rate::SizeReason::kPath});
  if (by_loss && path.best_bytes != 0)
    limit = smaller(limit, {.bytes = path.best_bytes, .reason = rate::SizeReason::kLoss});
  return limit;
}

}  // namespace

Result<Specification> make_specification(const Abilities& abilities, const Options& options, Role role,
                                         bool discard, const std::vector<uint16_t>& ports) {
  const board::PortInfo& port = abilities.port;
  Specification spec;
  spec.role = role == Role::kSource ? OfferedRole::kSource : OfferedRole::kDestination;
  spec.lanes_max = static_cast<uint32_t>(ports.size());
  for (const uint16_t udp_port : ports) spec.udp_ports.push_back(udp_port);
  // An explicit family is offered alone: the other node then has no choice.
  if (options.ip != IpFamily::kIp6) spec.data_ip4 = ip4_bytes(port);
  if (options.ip != IpFamily::kIp4) spec.data_ip6 = ip6_bytes(port);
  if (spec.data_ip4.empty() && spec.data_ip6.empty()) {
    return Error{ErrorCode::kConfiguration,
                 fmt::format("this node's data port has no {} in node.toml",
                             options.ip == IpFamily::kIp6   ? "IPv6 address: set [port] address6"
                             : options.ip == IpFamily::kIp4 ? "IPv4 address: set [port] address4"
                                                            : "IP address: set [port] address4 or address6")};
  }
  spec.prefer_ip6 = options.ip == IpFamily::kIp6;
  const ChunkLimit ip4 =
      chunk_limit(std::min(options.chunk_bytes, port.chunk_bytes_max_ip4), abilities.ip4, options.chunk_auto);
  const ChunkLimit ip6 =
      chunk_limit(std::min(options.chunk_bytes, port.chunk_bytes_max_ip6), abilities.ip6, options.chunk_auto);
  spec.chunk_bytes_max_ip4 = ip4.bytes;
  spec.chunk_reason_ip4 = ip4.reason;
  spec.chunk_bytes_max_ip6 = ip6.bytes;
  spec.chunk_reason_ip6 = ip6.reason;
  spec.chunk_auto = options.chunk_auto;
  spec.extent_bytes_max = port.extent_bytes_max;
  spec.crc_kinds.push_back(number_of(options.crc));
  spec.rate_bps_max =
      port.rate_bps_max != 0 ? std::min(options.rate_bps, port.rate_bps_max) : options.rate_bps;
  // An echo is to be damaged rather than lost: what can go without a checksum goes without.
  const bool echoes = options.echoes != 0 && discard && role == Role::kSource;
  spec.udp_checksum_needed = abilities.udp_checksum_always || (port.udp_checksum_offload != 0 && !echoes);
  spec.discard = discard;
  spec.rate_mode = options.mode;
  spec.expected_loss_ppm = options.expected_loss.ppm;
  spec.learn_address = abilities.calls_only;
  spec.queue_datagrams = port.queue_datagrams;
  spec.abilities = AbilitySet::all();
  spec.abilities.set(Ability::kParts, role == Role::kDestination && abilities.several_sources);
  spec.abilities.set(Ability::kEchoes, echoes);
  spec.abilities.set(Ability::kRanges, abilities.file_part);
  // A destination that asks for digests computes them itself.
  spec.abilities.set(Ability::kDigests, role == Role::kSource && options.digests != 0 && !discard);
  // What is judged, or offered by several, has to be known.
  spec.abilities.set(Ability::kGrowingOffer,
                     options.deadline_unix_ns == 0 && !spec.abilities.has(Ability::kParts));
  // Into null: no bytes are kept that lost ones could be made of.
  const Result<AbilitySet> coded =
      want_codes(spec.abilities, discard ? options::Fec::kOff : options.fec, port.codes);
  if (!coded) return coded.error();
  spec.abilities = want_compression(*coded, discard ? options::Compress::kOff : options.compress);
  spec.protection = static_cast<uint32_t>(std::max(options.protection, abilities.protection));
  return spec;
}

Result<uint32_t> lanes_for(const Specification& spec, uint32_t lanes_max) {
  if (Status status = check_specification(spec); !status) return status.error();
  if (lanes_max == 0) {
    return Error{ErrorCode::kResources,
                 "no lane is possible here: raise dataplane.extents_per_worker in node.toml"};
  }
  return std::min({spec.lanes_max, lanes_max, board::kLanesMax});
}

Result<SpecificationSet> answer(const Specification& spec, const Abilities& abilities,
                                uint64_t partition_bytes, const std::vector<uint16_t>& ports) {
  if (Status status = check_specification(spec); !status) return status.error();
  const board::PortInfo& port = abilities.port;
  SpecificationSet set;
  set.lanes = static_cast<uint32_t>(ports.size());
  for (const uint16_t udp_port : ports) set.udp_ports.push_back(udp_port);
  set.data_ip = choose_address(spec, port);
  if (set.data_ip.empty()) {
    return incompatible(
        "the nodes' data ports share no IP family: give both an IPv4 or both an IPv6 address");
  }
  const bool ip4 = set.data_ip.size() == 4;
  const ChunkLimit asked =
      ip4 ? ChunkLimit{.bytes = spec.chunk_bytes_max_ip4, .reason = spec.chunk_reason_ip4}
          : ChunkLimit{.bytes = spec.chunk_bytes_max_ip6, .reason = spec.chunk_reason_ip6};
  const ChunkLimit own = ip4 ? chunk_limit(port.chunk_bytes_max_ip4, abilities.ip4, spec.chunk_auto)
                             : chunk_limit(port.chunk_bytes_max_ip6, abilities.ip6, spec.chunk_auto);
  const ChunkLimit chunk = smaller(asked, own);
  set.chunk_bytes = chunk.bytes / wire::kChunkBytesStep * wire::kChunkBytesStep;
  set.chunk_reason = chunk.reason;
  if (set.chunk_bytes < wire::kChunkBytesMin) {
    return incompatible(
        fmt::format("no chunk of {} bytes fits both data ports: raise [port] mtu", wire::kChunkBytesMin));
  }
  set.extent_bytes = std::bit_floor(std::min(spec.extent_bytes_max, port.extent_bytes_max));
  if (set.extent_bytes < kExtentBytesMin) return incompatible("the peer's extents are smaller than 64 KiB");
  set.partition_bytes = std::max<uint64_t>(partition_bytes / set.extent_bytes, 1) * set.extent_bytes;
  const Result<uint32_t> crc_kind = choose_crc(spec);
  if (!crc_kind) return crc_kind.error();
  set.crc_kind = *crc_kind;
  set.rate_bps = port.rate_bps_max != 0 ? std::min(spec.rate_bps_max, port.rate_bps_max) : spec.rate_bps_max;
  const bool echoes =
      spec.abilities.has(Ability::kEchoes) && spec.role == OfferedRole::kSource && spec.discard;
  set.udp_checksum = spec.udp_checksum_needed || abilities.udp_checksum_always ||
                     (port.udp_checksum_offload != 0 && !echoes);
  set.learns_address = spec.learn_address;
  set.queue_datagrams = port.queue_datagrams;
  set.abilities =
      with_codes_here(spec.abilities & AbilitySet::all(), spec.discard ? 0 : abilities.port.codes);
  if (spec.discard) set.abilities = without_compression(set.abilities);
  if (spec.role != OfferedRole::kDestination) set.abilities.set(Ability::kParts, false);
  if (set.abilities.has(Ability::kParts))
    set.digests_unanswered = std::min(abilities.digests_unanswered, kDigestsUnansweredMax);
  set.abilities.set(Ability::kEchoes, echoes);
  if (spec.role != OfferedRole::kSource) set.abilities.set(Ability::kDigests, false);
  if (Status status = check_codes(set.abilities, demands_parity(spec)); !status) return status.error();
  if (Status status = check_compression(set.abilities, demands_compression(spec)); !status)
    return status.error();
  set.protection = std::max(spec.protection, static_cast<uint32_t>(abilities.protection));
  return set;
}

Result<Agreement> agree(const Specification& spec, const SpecificationSet& set, const Abilities& abilities,
                        bool initiator) {
  if (Status status = check_ports(set.udp_ports); !status) return status.error();
  const bool ip4 = set.data_ip.size() == 4;
  const std::string& offered = ip4 ? spec.data_ip4 : spec.data_ip6;
  if ((!ip4 && set.data_ip.size() != 16) || offered.empty())
    return incompatible("the peer chose another IP family");
  if (set.lanes == 0 || set.lanes > spec.lanes_max || set.udp_ports.size() != set.lanes) {
    return incompatible("the peer chose a wrong number of lanes");
  }
  const uint32_t chunk_max = ip4 ? spec.chunk_bytes_max_ip4 : spec.chunk_bytes_max_ip6;
  if (set.chunk_bytes < wire::kChunkBytesMin || set.chunk_bytes > chunk_max ||
      set.chunk_bytes % wire::kChunkBytesStep != 0) {
    return incompatible(fmt::format("the peer chose chunks of {} bytes", set.chunk_bytes));
  }
  if (!std::has_single_bit(set.extent_bytes) || set.extent_bytes < kExtentBytesMin ||
      set.extent_bytes > std::min(spec.extent_bytes_max, abilities.port.extent_bytes_max)) {
    return incompatible(fmt::format("the peer chose extents of {} bytes", set.extent_bytes));
  }
  if (!good_partition(set.partition_bytes, set.extent_bytes)) {
    return incompatible(fmt::format("the peer chose partitions of {} bytes", set.partition_bytes));
  }
  const auto& kinds = spec.crc_kinds;
  if (std::find(kinds.begin(), kinds.end(), set.crc_kind) == kinds.end()) {
    return incompatible("the peer chose another CRC kind");
  }
  if (Status status = check_protection(spec, set); !status) return status.error();
  if (Status status = check_demands(spec, set); !status) return status.error();
  if (set.rate_bps == 0 || set.rate_bps > spec.rate_bps_max)
    return incompatible("the peer chose a wrong rate");
  Agreement result{.lanes = set.lanes,
                   .chunk_bytes = set.chunk_bytes,
                   .extent_bytes = set.extent_bytes,
                   .partition_bytes = set.partition_bytes,
                   .crc_kind = static_cast<wire::CrcKind>(set.crc_kind),
                   .rate_bps = set.rate_bps,
                   .udp_checksum = set.udp_checksum,
                   .discard = spec.discard,
                   .local_ip = mapped(initiator ? offered : set.data_ip),
                   .peer_ip = mapped(initiator ? set.data_ip : offered),
                   .reach = !spec.learn_address ? board::Reach::kAgreed
                            : initiator         ? board::Reach::kWeOpen
                                                : board::Reach::kPeerOpens,
                   .mode = spec.rate_mode,
                   .expected_loss_ppm = spec.expected_loss_ppm,
                   .chunk_reason = set.chunk_reason,
                   .chunk_auto = spec.chunk_auto,
                   .protection = static_cast<wire::Protection>(set.protection),
                   .abilities = spec.abilities & set.abilities,
                   .peer_queue_datagrams = initiator ? set.queue_datagrams : spec.queue_datagrams,
                   .digests_unanswered = digests_agreed(set.digests_unanswered)};
  // One that is learnt is judged when it comes (lane::FlowChannel).
  const bool learnt = result.reach == board::Reach::kPeerOpens;
  if (!learnt && result.peer_ip == result.local_ip)
    return incompatible(
        fmt::format("both nodes have the data address {}: give each its own in [port] address4 or "
                    "address6, also on one host",
                    address_text(set.data_ip)));
  if (const auto problem = address_problem(result.peer_ip, result.local_ip); !learnt && !problem.empty()) {
    return incompatible(
        fmt::format("the peer's data address {} {}: correct [port] address4 or address6 there",
                    address_text(initiator ? set.data_ip : offered), problem));
  }
  for (uint32_t lane = 0; lane < result.lanes; ++lane) {
    result.peer_ports.push_back(
        static_cast<uint16_t>(initiator ? set.udp_ports[lane] : spec.udp_ports[lane]));
  }
  return result;
}

Hello make_hello(const std::string& session_id) {
  return {.version_min = kProtocolVersion,
          .version_max = kProtocolVersion,
          .software = "sluice " SLUICE_VERSION,
          .session_id = session_id};
}

Status check_hello(const Hello& hello) {
  if (hello.version_min > kProtocolVersion || hello.version_max < kProtocolVersion) {
    return incompatible(
        fmt::format("the peer ({}) speaks protocol versions {} to {}, this node {}: upgrade the older",
                    hello.software, hello.version_min, hello.version_max, kProtocolVersion));
  }
  if (hello.session_id.size() != kSessionIdDigits) return incompatible("the peer's hello has no session id");
  return {};
}

}  // namespace sluice::transfer
