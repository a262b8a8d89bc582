// SPDX-License-Identifier: Apache-2.0
#include "control/session/negotiation.h"

#include <gtest/gtest.h>

#include <cstring>

#include "control/board/flow_table.h"

namespace sluice::control {
namespace {

Abilities node_with(bool ip4, bool ip6, uint8_t last = 1) {
  Abilities node;
  node.port.workers = 1;
  node.port.extent_bytes_max = 1U << 20;
  node.port.rate_bps_max = 100'000'000'000;
  if (ip4) {
    const uint8_t ip[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 10, 77, 0, last};
    std::memcpy(node.port.ip4, ip, 16);
    node.port.chunk_bytes_max_ip4 = 8896;
  }
  if (ip6) {
    node.port.ip6[0] = 0xFD;
    node.port.ip6[15] = last;
    node.port.chunk_bytes_max_ip6 = 8872;
  }
  return node;
}

Options wishes() {
  Options options;
  options.rate_bps = 10'000'000'000;
  return options;
}

struct Outcome {
  Agreement initiator;
  Agreement other;
};

Result<Outcome> negotiate(const Abilities& a, const Abilities& b, const Options& options, uint32_t offered,
                          uint32_t possible, bool discard = false) {
  std::vector<uint16_t> ports_a;
  for (uint32_t i = 0; i < offered; ++i) ports_a.push_back(static_cast<uint16_t>(47000 + i));
  auto spec = make_specification(a, options, true, discard, ports_a);
  if (!spec) return spec.error();
  auto lanes = lanes_for(*spec, possible);
  if (!lanes) return lanes.error();
  std::vector<uint16_t> ports_b;
  for (uint32_t i = 0; i < *lanes; ++i) ports_b.push_back(static_cast<uint16_t>(48000 + i));
  auto set = answer(*spec, b, 64ULL << 20, ports_b);
  if (!set) return set.error();
  auto initiator = agree(*spec, *set, a, true);
  if (!initiator) return initiator.error();
  auto other = agree(*spec, *set, b, false);
  if (!other) return other.error();
  return Outcome{*initiator, *other};
}

TEST(Negotiation, TakesTheSmallerNumberOfLanesAndCrossesThePorts) {
  const auto outcome = negotiate(node_with(true, false, 1), node_with(true, false, 2), wishes(), 4, 2);
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_EQ(outcome->initiator.lanes, 2U);
  EXPECT_EQ(outcome->initiator.peer_ports, (std::vector<uint16_t>{48000, 48001}));
  EXPECT_EQ(outcome->other.peer_ports, (std::vector<uint16_t>{47000, 47001}));
  EXPECT_EQ(outcome->initiator.local_ip, outcome->other.peer_ip);
  EXPECT_EQ(outcome->initiator.peer_ip, outcome->other.local_ip);
  EXPECT_EQ(outcome->initiator.peer_ip[15], 2);
}

TEST(Negotiation, ChunksFitBothPortsAndAreMultiplesOfTheStep) {
  Abilities small = node_with(true, false);
  small.port.chunk_bytes_max_ip4 = 1403;
  const auto outcome = negotiate(node_with(true, false), small, wishes(), 1, 1);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->initiator.chunk_bytes, 1400U);
  small.port.chunk_bytes_max_ip4 = 252;
  EXPECT_EQ(negotiate(node_with(true, false), small, wishes(), 1, 1).error().code, ErrorCode::kIncompatible);
}

TEST(Negotiation, ChoosesAFamilyThatBothHave) {
  const auto family_is_4 = [](const Agreement& a) { return a.peer_ip[10] == 0xFF; };
  auto both = negotiate(node_with(true, true), node_with(true, true), wishes(), 1, 1);
  ASSERT_TRUE(both);
  EXPECT_TRUE(family_is_4(both->initiator));
  auto only6 = negotiate(node_with(true, true), node_with(false, true), wishes(), 1, 1);
  ASSERT_TRUE(only6);
  EXPECT_FALSE(family_is_4(only6->initiator));
  Options six = wishes();
  six.family = IpFamily::kIp6;
  auto forced = negotiate(node_with(true, true), node_with(true, true), six, 1, 1);
  ASSERT_TRUE(forced);
  EXPECT_FALSE(family_is_4(forced->initiator));
  EXPECT_EQ(negotiate(node_with(true, true), node_with(true, false), six, 1, 1).error().code,
            ErrorCode::kIncompatible);
  EXPECT_EQ(negotiate(node_with(true, false), node_with(true, true), six, 1, 1).error().code,
            ErrorCode::kConfiguration);
}

TEST(Negotiation, NoCrcOnlyIntoADiscardSink) {
  Options none = wishes();
  none.crc_kind = wire::CrcKind::kNone;
  EXPECT_EQ(negotiate(node_with(true, false), node_with(true, false), none, 1, 1).error().code,
            ErrorCode::kIncompatible);
  const auto outcome = negotiate(node_with(true, false), node_with(true, false), none, 1, 1, true);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->other.crc_kind, wire::CrcKind::kNone);
}

TEST(Negotiation, UdpChecksumWhenEitherSideNeedsIt) {
  Abilities always = node_with(true, false);
  always.udp_checksum_always = true;
  EXPECT_FALSE(negotiate(node_with(true, false), node_with(true, false), wishes(), 1, 1)->other.udp_checksum);
  EXPECT_TRUE(negotiate(node_with(true, false), always, wishes(), 1, 1)->initiator.udp_checksum);
  EXPECT_TRUE(negotiate(always, node_with(true, false), wishes(), 1, 1)->other.udp_checksum);
}

TEST(Negotiation, RateIsTheSmallerLimit) {
  Abilities slow = node_with(true, false);
  slow.port.rate_bps_max = 1'000'000'000;
  EXPECT_EQ(negotiate(node_with(true, false), slow, wishes(), 1, 1)->initiator.rate_bps, 1'000'000'000U);
  EXPECT_EQ(negotiate(slow, node_with(true, false), wishes(), 1, 1)->other.rate_bps, 1'000'000'000U);
}

TEST(Negotiation, AnAnswerBeyondTheOfferIsRefused) {
  const Abilities node = node_with(true, false);
  const auto spec = make_specification(node, wishes(), true, false, {47000, 47001});
  const auto good = answer(*spec, node, 64ULL << 20, {48000, 48001});
  ASSERT_TRUE(agree(*spec, *good, node, true));
  const auto refused = [&](auto change) {
    peer::SpecificationSet set = *good;
    change(set);
    const auto result = agree(*spec, set, node, true);
    return !result && result.error().code == ErrorCode::kIncompatible;
  };
  EXPECT_TRUE(refused([](auto& s) { s.set_lanes(3); }));
  EXPECT_TRUE(refused([](auto& s) { s.set_lanes(0); }));
  EXPECT_TRUE(refused([](auto& s) { s.set_chunk_bytes(16384); }));
  EXPECT_TRUE(refused([](auto& s) { s.set_chunk_bytes(1001); }));
  EXPECT_TRUE(refused([](auto& s) { s.set_extent_bytes(3U << 18); }));
  EXPECT_TRUE(refused([](auto& s) { s.set_extent_bytes(1U << 21); }));
  EXPECT_TRUE(refused([](auto& s) { s.set_partition_bytes(5); }));
  EXPECT_TRUE(refused([](auto& s) { s.set_crc_kind(peer::CRC_KIND_NONE); }));
  EXPECT_TRUE(refused([](auto& s) { s.set_rate_bps(20'000'000'000); }));
  EXPECT_TRUE(refused([](auto& s) { s.set_data_ip("abc"); }));
  EXPECT_TRUE(refused([](auto& s) { s.set_data_ip(std::string(16, 1)); }));
  EXPECT_TRUE(refused([](auto& s) { s.set_udp_ports(0, 70000); }));
}

TEST(Negotiation, BadSpecificationsAreRefused) {
  const Abilities node = node_with(true, false);
  const auto good = make_specification(node, wishes(), true, false, {47000});
  const auto refused = [&](auto change) {
    peer::Specification spec = *good;
    change(spec);
    return !lanes_for(spec, 4) || !answer(spec, node, 64ULL << 20, {48000});
  };
  EXPECT_FALSE(refused([](auto&) {}));
  EXPECT_TRUE(refused([](auto& s) { s.set_role(peer::Specification::ROLE_UNSPECIFIED); }));
  EXPECT_TRUE(refused([](auto& s) { s.set_lanes_max(0); }));
  EXPECT_TRUE(refused([](auto& s) { s.set_lanes_max(2); }));
  EXPECT_TRUE(refused([](auto& s) { s.set_data_ip4("12345"); }));
  EXPECT_TRUE(refused([](auto& s) { s.set_udp_ports(0, 0); }));
  EXPECT_TRUE(refused([](auto& s) { s.set_rate_bps_max(0); }));
  EXPECT_TRUE(refused([](auto& s) { s.clear_crc_kinds(); }));
  EXPECT_TRUE(refused([](auto& s) { s.set_extent_bytes_max(1024); }));
}

TEST(Negotiation, HelloNeedsACommonVersionAndASessionId) {
  peer::Hello hello;
  hello.set_protocol_version_min(1);
  hello.set_protocol_version_max(3);
  hello.set_session_id(std::string(16, 'x'));
  EXPECT_TRUE(check_hello(hello));
  hello.set_protocol_version_min(kProtocolVersion + 1);
  EXPECT_EQ(check_hello(hello).error().code, ErrorCode::kIncompatible);
  hello.set_protocol_version_min(1);
  hello.set_session_id("short");
  EXPECT_FALSE(check_hello(hello));
}

TEST(Options, NameWhatIsWrongAndFillInTheNodesDefaults) {
  config::Node node;
  api::TransferOptions asked;
  auto options = parse_options(asked, node, false);
  ASSERT_TRUE(options);
  EXPECT_EQ(options->lanes, node.lanes);
  EXPECT_EQ(options->chunk_bytes, 8192U);
  asked.set_crc("none");
  EXPECT_EQ(parse_options(asked, node, false).error().code, ErrorCode::kUsage);
  EXPECT_TRUE(parse_options(asked, node, true));
  asked.set_crc("md5");
  EXPECT_FALSE(parse_options(asked, node, false));
  asked.set_crc("crc32c");
  asked.set_lanes(kLanesMax + 1);
  EXPECT_FALSE(parse_options(asked, node, false));
  asked.set_lanes(2);
  asked.set_ip("5");
  EXPECT_FALSE(parse_options(asked, node, false));
  asked.set_ip("6");
  asked.set_chunk_bytes(1001);
  EXPECT_FALSE(parse_options(asked, node, false));
  asked.set_chunk_bytes(1024);
  EXPECT_EQ(parse_options(asked, node, false)->chunk_bytes, 1024U);
}

TEST(Options, MemorySourcesHaveASize) {
  EXPECT_FALSE(parse_memory_source("/data/x")->has_value());
  EXPECT_EQ(**parse_memory_source("memory:1GiB"), 1ULL << 30);
  EXPECT_FALSE(parse_memory_source("memory:lots"));
  EXPECT_FALSE(parse_memory_source("memory:"));
}

}  // namespace
}  // namespace sluice::control
