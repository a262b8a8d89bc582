// Any messages in the place of a peer's Hello, Specification and SpecificationSet: refused with one line, or
// an agreement that this node's own port can carry out, and that both ends understand alike.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <vector>

#include "control/board/flow_table.h"
#include "control/leg/codes.h"
#include "control/leg/negotiation.h"
#include "dataplane/base/input_for_fuzz.h"
#include "dataplane/board/codes.h"

namespace {

using namespace sluice;
using namespace sluice::transfer;

// A list of at most a few, mostly wrong, numbers.
std::vector<uint32_t> numbers(fuzz::Input& input) {
  std::vector<uint32_t> result(input.below(20));
  for (uint32_t& number : result) {
    number = input.flag() ? input.take<uint16_t>() : static_cast<uint32_t>(input.edge());
  }
  return result;
}

std::string address(fuzz::Input& input) {
  constexpr size_t kLengths[] = {0, 4, 16, 5};
  return input.text(kLengths[input.below(4)]);
}

AbilitySet any_abilities(fuzz::Input& input) {
  AbilitySet set;
  const uint32_t bits = input.take<uint8_t>();
  for (uint32_t i = 0; i < kAbilityNames.size(); ++i) set.set(static_cast<Ability>(i), (bits >> i & 1) != 0);
  return set;
}

Hello any_hello(fuzz::Input& input) {
  return {.version_min = input.below(4),
          .version_max = input.below(4),
          .software = input.text(input.below(9)),
          .session_id = input.text(input.flag() ? 32 : input.below(40))};
}

Specification any_specification(fuzz::Input& input) {
  Specification spec{.role = static_cast<OfferedRole>(input.below(4)), .lanes_max = input.below(20)};
  spec.data_ip4 = address(input);
  spec.data_ip6 = address(input);
  spec.chunk_bytes_max_ip4 = static_cast<uint32_t>(input.edge());
  spec.chunk_bytes_max_ip6 = static_cast<uint32_t>(input.edge());
  spec.extent_bytes_max = static_cast<uint32_t>(input.edge());
  spec.crc_kinds = numbers(input);
  spec.rate_bps_max = input.edge();
  spec.udp_checksum_needed = input.flag();
  spec.prefer_ip6 = input.flag();
  spec.discard = input.flag();
  spec.udp_ports = numbers(input);
  spec.learn_address = input.flag();
  spec.queue_datagrams = static_cast<uint32_t>(input.edge());
  spec.abilities = any_abilities(input);
  return spec;
}

SpecificationSet any_set(fuzz::Input& input) {
  SpecificationSet set{.lanes = input.below(20)};
  set.chunk_bytes = static_cast<uint32_t>(input.edge());
  set.extent_bytes = static_cast<uint32_t>(input.edge());
  set.partition_bytes = input.edge();
  set.crc_kind = input.below(4);
  set.rate_bps = input.edge();
  set.udp_checksum = input.flag();
  set.data_ip = address(input);
  set.udp_ports = numbers(input);
  set.learns_address = input.flag();
  set.queue_datagrams = static_cast<uint32_t>(input.edge());
  set.digests_unanswered = static_cast<uint32_t>(input.edge());
  set.abilities = any_abilities(input);
  return set;
}

// Of the node at 10.0.0.`host` and fd00::`host`.
Abilities abilities(fuzz::Input& input, uint8_t host) {
  Abilities a;
  const uint32_t form = input.take<uint8_t>();
  if ((form & 3) != 1) {
    a.port.ip4[10] = a.port.ip4[11] = 0xFF;
    a.port.ip4[12] = 10;
    a.port.ip4[15] = host;
  }
  if ((form & 3) != 2) {
    a.port.ip6[0] = 0xFD;
    a.port.ip6[15] = host;
  }
  a.port.chunk_bytes_max_ip4 = 8904;
  a.port.chunk_bytes_max_ip6 = 8880;
  a.port.workers = 1 + input.below(board::kWorkersMax);
  a.port.extent_bytes_max = 65536U << input.below(5);
  a.port.rx_extents = a.port.tx_extents = input.below(64);
  a.port.udp_port_base = 47000;
  a.port.udp_checksum_offload = form >> 7;
  a.port.rate_bps_max = (form & 4) != 0 ? 10'000'000'000 : 0;
  a.calls_only = (form & 8) != 0;
  a.several_sources = (form & 16) != 0;
  a.digests_unanswered = input.below(2 * kDigestsUnansweredMax);
  a.port.codes = form >> 4 & board::kCodesKnown;
  return a;
}

template <typename T>
bool good(const Result<T>& result) {
  if (result) return true;
  const Error& error = result.error();
  fuzz::require(!error.message.empty() && error.message.find('\n') == std::string::npos, "one line says why");
  fuzz::require(error.code == ErrorCode::kIncompatible || error.code == ErrorCode::kResources ||
                    error.code == ErrorCode::kConfiguration,
                "a refusal has the peer's or the node's reason");
  return false;
}

void check(const Agreement& agreement, const Abilities& a) {
  const bool ip4 = agreement.local_ip[10] == 0xFF && agreement.local_ip[0] == 0;
  fuzz::require(agreement.lanes >= 1 && agreement.peer_ports.size() == agreement.lanes,
                "a port for each lane");
  fuzz::require(std::has_single_bit(agreement.extent_bytes) && agreement.extent_bytes >= 65536 &&
                    agreement.extent_bytes <= a.port.extent_bytes_max,
                "extents that the dataplane has");
  fuzz::require(agreement.chunk_bytes >= wire::kChunkBytesMin &&
                    agreement.chunk_bytes % wire::kChunkBytesStep == 0 &&
                    agreement.chunk_bytes <= (ip4 ? a.port.chunk_bytes_max_ip4 : a.port.chunk_bytes_max_ip6),
                "chunks that fit this port");
  fuzz::require(agreement.partition_bytes > 0 && agreement.partition_bytes % agreement.extent_bytes == 0,
                "partitions of whole extents");
  fuzz::require(agreement.rate_bps > 0, "a rate");
  fuzz::require(agreement.digests_unanswered >= kDigestsUnansweredMin &&
                    agreement.digests_unanswered <= kDigestsUnansweredMax,
                "as many questions as a source takes, and a destination has");
  fuzz::require(agreement.crc_kind <= wire::CrcKind::kCrc64Ecma &&
                    (wire::checks(agreement.crc_kind) || agreement.discard),
                "files are checked");
  fuzz::require((codes_of(agreement.abilities) & ~a.port.codes) == 0, "codes that the dataplane has");
  fuzz::require(!agreement.discard || codes_of(agreement.abilities) == 0, "no codes where nothing is kept");
  for (const uint16_t port : agreement.peer_ports) fuzz::require(port != 0, "ports that exist");
  const uint8_t* const ours = ip4 ? a.port.ip4 : a.port.ip6;
  fuzz::require(std::equal(agreement.local_ip.begin(), agreement.local_ip.end(), ours),
                "from our own address");
  if (agreement.reach == board::Reach::kPeerOpens) return;  // it is seen when it comes
  fuzz::require(agreement.peer_ip != agreement.local_ip, "to another");
  fuzz::require(
      agreement.peer_ip[0] != 0xFF && (!ip4 || (agreement.peer_ip[12] != 0 && agreement.peer_ip[12] < 224)),
      "that a host can have");
}

std::vector<uint16_t> ports(uint32_t lanes) {
  std::vector<uint16_t> result;
  for (uint32_t lane = 0; lane < lanes; ++lane) result.push_back(static_cast<uint16_t>(47000 + lane));
  return result;
}

// This node answers what the peer proposes.
void as_answerer(fuzz::Input& input, const Abilities& a) {
  const auto specification = any_specification(input);
  const Result<uint32_t> lanes = lanes_for(specification, input.below(20));
  if (!good(lanes)) return;
  fuzz::require(*lanes >= 1 && *lanes <= board::kLanesMax, "lanes in bounds");
  const Result<SpecificationSet> set = answer(specification, a, input.edge(), ports(*lanes));
  if (!good(set)) return;
  const Result<Agreement> ours = agree(specification, *set, a, false);
  if (good(ours)) check(*ours, a);
}

// The peer answers what this node proposes.
void as_initiator(fuzz::Input& input, const Abilities& a) {
  Options options;
  options.lanes = 1 + input.below(board::kLanesMax);
  options.rate_bps = 1 + input.take<uint32_t>();
  options.crc = static_cast<wire::CrcKind>(input.below(3));
  options.ip = static_cast<IpFamily>(input.below(3));
  options.chunk_bytes = 512 + 8 * input.below(200);
  options.fec = static_cast<options::Fec>(input.below(4));
  const bool discard = !wire::checks(options.crc);
  const auto specification = make_specification(a, options, input.flag() ? Role::kSource : Role::kDestination,
                                                discard, ports(options.lanes));
  if (!good(specification)) return;
  const Result<Agreement> forced = agree(*specification, any_set(input), a, true);
  if (good(forced)) check(*forced, a);
  // An honest peer: both ends must understand the same.
  const Abilities other = abilities(input, 2);
  const Result<uint32_t> lanes = lanes_for(*specification, 1 + input.below(20));
  if (!good(lanes)) return;
  const auto set = answer(*specification, other, 64ULL << 20, ports(*lanes));
  if (!good(set)) return;
  const Result<Agreement> here = agree(*specification, *set, a, true);
  const Result<Agreement> there = agree(*specification, *set, other, false);
  fuzz::require(here && there, "an honest answer is agreed to by both");
  check(*here, a);
  check(*there, other);
  fuzz::require(here->lanes == there->lanes && here->chunk_bytes == there->chunk_bytes &&
                    here->extent_bytes == there->extent_bytes && here->crc_kind == there->crc_kind &&
                    here->abilities == there->abilities &&
                    here->digests_unanswered == there->digests_unanswered &&
                    here->local_ip == there->peer_ip && here->peer_ip == there->local_ip &&
                    (here->reach == board::Reach::kAgreed) == (there->reach == board::Reach::kAgreed),
                "and understood alike");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  const Abilities a = abilities(input, 1);
  (void)check_hello(any_hello(input));
  if (input.flag()) {
    as_answerer(input, a);
  } else {
    as_initiator(input, a);
  }
  return 0;
}
