// SPDX-License-Identifier: Apache-2.0
#include "control/leg/negotiation.h"

#include <gtest/gtest.h>

#include <cstring>

#include "control/board/flow_table.h"

namespace sluice::transfer {
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

Result<Outcome> negotiate(const Abilities& a, Abilities b, const Options& options, uint32_t offered,
                          uint32_t possible, bool discard = false) {
  if (b.port.ip4[10] != 0) b.port.ip4[15] = 2;
  if (b.port.ip6[0] != 0) b.port.ip6[15] = 2;
  std::vector<uint16_t> ports_a;
  for (uint32_t i = 0; i < offered; ++i) ports_a.push_back(static_cast<uint16_t>(47000 + i));
  auto spec = make_specification(a, options, Role::kSource, discard, ports_a);
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

TEST(Negotiation, ANodeThatOnlyCallsIsLearnt) {
  Abilities caller = node_with(true, false, 1);
  caller.calls_only = true;
  const auto outcome = negotiate(caller, node_with(true, false, 2), wishes(), 2, 2);
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_EQ(outcome->initiator.reach, board::Reach::kWeOpen);
  EXPECT_EQ(outcome->other.reach, board::Reach::kPeerOpens);
  const auto usual = negotiate(node_with(true, false, 1), caller, wishes(), 2, 2);
  ASSERT_TRUE(usual);
  EXPECT_EQ(usual->initiator.reach, board::Reach::kAgreed);
  EXPECT_EQ(usual->other.reach, board::Reach::kAgreed);
}

TEST(Negotiation, WhatACallerTakesForItsAddressIsNotJudgedIfItIsLearnt) {
  Abilities caller = node_with(true, false, 2);  // behind a NAT, it has the address that we have
  caller.calls_only = true;
  const auto outcome = negotiate(caller, node_with(true, false, 2), wishes(), 1, 1);
  ASSERT_FALSE(outcome) << "the caller itself cannot send to its own address";
  Specification spec = *make_specification(caller, wishes(), Role::kSource, false, {47000});
  const Abilities called = node_with(true, false, 2);
  EXPECT_TRUE(agree(spec, *answer(spec, called, 64ULL << 20, {48000}), called, false));
  spec.learn_address = false;
  EXPECT_FALSE(agree(spec, *answer(spec, called, 64ULL << 20, {48000}), called, false));
}

TEST(Negotiation, APeerThatCannotLearnAddressesIsNamed) {
  Abilities caller = node_with(true, false, 1);
  caller.calls_only = true;
  const Specification spec = *make_specification(caller, wishes(), Role::kSource, false, {47000});
  SpecificationSet set = *answer(spec, node_with(true, false, 2), 64ULL << 20, {48000});
  set.learns_address = false;
  const auto refused = agree(spec, set, caller, true);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kIncompatible);
  EXPECT_NE(refused.error().message.find("upgrade the peer"), std::string::npos);
}

TEST(Negotiation, ChunksFitThePathFromWhicheverNodeIsTheSource) {
  const auto agreed = negotiate(node_with(true, false), node_with(true, false), wishes(), 1, 1);
  ASSERT_TRUE(agreed);
  EXPECT_EQ(agreed->initiator.chunk_reason, rate::SizeReason::kAgreed);
  Abilities narrow = node_with(true, false);
  narrow.ip4.carried_bytes = 1400;
  narrow.ip6.carried_bytes = 1300;
  for (const bool first : {true, false}) {
    const auto outcome = first ? negotiate(narrow, node_with(true, false), wishes(), 1, 1)
                               : negotiate(node_with(true, false), narrow, wishes(), 1, 1);
    ASSERT_TRUE(outcome);
    EXPECT_EQ(outcome->initiator.chunk_bytes, 1400U);
    EXPECT_EQ(outcome->initiator.chunk_reason, rate::SizeReason::kPath);
    EXPECT_EQ(outcome->other.chunk_reason, rate::SizeReason::kPath);
  }
  narrow.ip4.carried_bytes = 8896;
  const auto wide = negotiate(narrow, node_with(true, false), wishes(), 1, 1);
  ASSERT_TRUE(wide);
  EXPECT_EQ(wide->initiator.chunk_bytes, 8192U);
  EXPECT_EQ(wide->initiator.chunk_reason, rate::SizeReason::kAgreed);
}

TEST(Negotiation, TheSizeThatBringsMostIsTakenWhereItWasAskedFor) {
  Abilities measured = node_with(true, false);
  measured.ip4.best_bytes = 1000;
  const auto plain = negotiate(measured, node_with(true, false), wishes(), 1, 1);
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->initiator.chunk_bytes, 8192U);
  EXPECT_FALSE(plain->other.chunk_auto);
  Options by_loss = wishes();
  by_loss.chunk_auto = true;
  for (const bool first : {true, false}) {
    const auto outcome = first ? negotiate(measured, node_with(true, false), by_loss, 1, 1)
                               : negotiate(node_with(true, false), measured, by_loss, 1, 1);
    ASSERT_TRUE(outcome);
    EXPECT_EQ(outcome->initiator.chunk_bytes, 1000U);
    EXPECT_EQ(outcome->other.chunk_reason, rate::SizeReason::kLoss);
    EXPECT_TRUE(outcome->other.chunk_auto);
  }
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
  six.ip = IpFamily::kIp6;
  auto forced = negotiate(node_with(true, true), node_with(true, true), six, 1, 1);
  ASSERT_TRUE(forced);
  EXPECT_FALSE(family_is_4(forced->initiator));
  EXPECT_EQ(negotiate(node_with(true, true), node_with(true, false), six, 1, 1).error().code,
            ErrorCode::kIncompatible);
  EXPECT_EQ(negotiate(node_with(true, false), node_with(true, true), six, 1, 1).error().code,
            ErrorCode::kConfiguration);
}

TEST(Negotiation, NoCrcOnlyIntoADiscardSink) {
  for (const wire::CrcKind kind : {wire::CrcKind::kNone, wire::CrcKind::kRead}) {
    Options unchecked = wishes();
    unchecked.crc = kind;
    EXPECT_EQ(negotiate(node_with(true, false), node_with(true, false), unchecked, 1, 1).error().code,
              ErrorCode::kIncompatible);
    const auto outcome = negotiate(node_with(true, false), node_with(true, false), unchecked, 1, 1, true);
    ASSERT_TRUE(outcome);
    EXPECT_EQ(outcome->other.crc_kind, kind);
  }
}

TEST(Negotiation, UdpChecksumWhenEitherSideNeedsIt) {
  Abilities always = node_with(true, false);
  always.udp_checksum_always = true;
  EXPECT_FALSE(negotiate(node_with(true, false), node_with(true, false), wishes(), 1, 1)->other.udp_checksum);
  EXPECT_TRUE(negotiate(node_with(true, false), always, wishes(), 1, 1)->initiator.udp_checksum);
  EXPECT_TRUE(negotiate(always, node_with(true, false), wishes(), 1, 1)->other.udp_checksum);
}

TEST(Negotiation, TheStricterProtectionCounts) {
  using wire::Protection;
  for (const Protection a : {Protection::kCrc, Protection::kAes128Gcm, Protection::kAes256Gcm}) {
    for (const Protection b : {Protection::kCrc, Protection::kAes128Gcm, Protection::kAes256Gcm}) {
      for (const Protection asked : {Protection::kCrc, Protection::kAes128Gcm, Protection::kAes256Gcm}) {
        Abilities caller = node_with(true, false);
        Abilities called = node_with(true, false);
        Options options = wishes();
        caller.protection = a;
        called.protection = b;
        options.protection = asked;
        const auto outcome = negotiate(caller, called, options, 1, 1);
        EXPECT_EQ(outcome->initiator.protection, std::max({a, b, asked}));
        EXPECT_EQ(outcome->other.protection, outcome->initiator.protection);
      }
    }
  }
}

TEST(Negotiation, AProtectionThatIsNotKnownIsRefused) {
  const Abilities node = node_with(true, false);
  Specification spec = *make_specification(node, wishes(), Role::kSource, false, {47000});
  spec.protection = 3;
  const auto lanes = lanes_for(spec, 1);
  ASSERT_FALSE(lanes);
  EXPECT_NE(lanes.error().message.find("protection"), std::string::npos);
}

TEST(Negotiation, RateIsTheSmallerLimit) {
  Abilities slow = node_with(true, false);
  slow.port.rate_bps_max = 1'000'000'000;
  EXPECT_EQ(negotiate(node_with(true, false), slow, wishes(), 1, 1)->initiator.rate_bps, 1'000'000'000U);
  EXPECT_EQ(negotiate(slow, node_with(true, false), wishes(), 1, 1)->other.rate_bps, 1'000'000'000U);
}

TEST(Negotiation, AnAnswerBeyondTheOfferIsRefused) {
  const Abilities node = node_with(true, false);
  const auto spec = make_specification(node, wishes(), Role::kSource, false, {47000, 47001});
  const auto good = answer(*spec, node_with(true, false, 2), 64ULL << 20, {48000, 48001});
  ASSERT_TRUE(agree(*spec, *good, node, true));
  const auto refused = [&](auto change) {
    SpecificationSet set = *good;
    change(set);
    const auto result = agree(*spec, set, node, true);
    return !result && result.error().code == ErrorCode::kIncompatible;
  };
  EXPECT_TRUE(refused([](auto& s) { s.lanes = 3; }));
  EXPECT_TRUE(refused([](auto& s) { s.lanes = 0; }));
  EXPECT_TRUE(refused([](auto& s) { s.chunk_bytes = 16384; }));
  EXPECT_TRUE(refused([](auto& s) { s.chunk_bytes = 1001; }));
  EXPECT_TRUE(refused([](auto& s) { s.extent_bytes = 3U << 18; }));
  EXPECT_TRUE(refused([](auto& s) { s.extent_bytes = 1U << 21; }));
  EXPECT_TRUE(refused([](auto& s) { s.partition_bytes = 5; }));
  EXPECT_TRUE(refused([](auto& s) { s.partition_bytes += 1; }));
  EXPECT_TRUE(refused([](auto& s) { s.partition_bytes = 0; }));
  EXPECT_TRUE(refused([](auto& s) { s.partition_bytes = 1ULL << 41; }));
  EXPECT_TRUE(refused([](auto& s) { s.crc_kind = 0; }));
  EXPECT_TRUE(refused([](auto& s) { s.rate_bps = 20'000'000'000; }));
  EXPECT_TRUE(refused([](auto& s) { s.data_ip = "abc"; }));
  EXPECT_TRUE(refused([](auto& s) { s.data_ip = std::string(16, 1); }));
  EXPECT_TRUE(refused([](auto& s) { s.udp_ports[0] = 70000; }));
  EXPECT_TRUE(refused([](auto& s) { s.protection = 0; })) << "weaker than what was asked for";
  EXPECT_TRUE(refused([](auto& s) { s.protection = 3; }));
  EXPECT_FALSE(refused([](auto& s) { s.protection = 2; })) << "stricter";
}

// As either side meets it: the peer's word is all there is to say where the data goes.
std::string refusal_of(const std::string& peer_ip, Abilities node) {
  const Abilities other = node_with(true, true, 2);
  Options options = wishes();
  if (peer_ip.size() == 16) options.ip = IpFamily::kIp6;
  const auto spec = make_specification(node, options, Role::kSource, false, {47000});
  SpecificationSet set = *answer(*spec, other, 64ULL << 20, {48000});
  set.data_ip = peer_ip;
  const auto as_initiator = agree(*spec, set, node, true);
  Specification offered = *make_specification(other, options, Role::kSource, false, {47000});
  (peer_ip.size() == 4 ? offered.data_ip4 : offered.data_ip6) = peer_ip;
  const auto as_other = agree(offered, *answer(offered, node, 64ULL << 20, {48000}), node, false);
  EXPECT_EQ(static_cast<bool>(as_initiator), static_cast<bool>(as_other));
  if (as_initiator || as_other) return "";
  EXPECT_EQ(as_initiator.error().code, ErrorCode::kIncompatible);
  EXPECT_EQ(as_initiator.error().message, as_other.error().message);
  return as_other.error().message;
}

std::string ip6_of(uint8_t first, uint8_t last) {
  std::string ip(16, '\0');
  ip.front() = static_cast<char>(first);
  ip.back() = static_cast<char>(last);
  return ip;
}

TEST(Negotiation, DataGoesToNoAddressThatIsNotAnotherHosts) {
  const Abilities node = node_with(true, true, 1);
  const std::string any4(4, '\0');
  const auto names = [&](const std::string& ip, const std::string& what) {
    return refusal_of(ip, node).find(what) != std::string::npos;
  };
  EXPECT_TRUE(names(any4, "0.0.0.0 is no address of a host"));
  EXPECT_TRUE(names("\xff\xff\xff\xff", "255.255.255.255 is a broadcast address"));
  EXPECT_TRUE(names("\xe0\x01\x02\x03", "224.1.2.3 is a multicast address"));
  EXPECT_TRUE(names("\x7f\x01\x01\x01", "127.1.1.1 is a loopback address"));
  EXPECT_TRUE(names(std::string("\x0a\x4d\0\x01", 4),
                    "both nodes have the data address 10.77.0.1: give each its own"));
  EXPECT_TRUE(names(ip6_of(0, 0), "is no address of a host"));
  EXPECT_TRUE(names(ip6_of(0, 1), "is a loopback address"));
  EXPECT_TRUE(names(ip6_of(0, 2), "is no address of a host"));
  EXPECT_TRUE(names(ip6_of(0xFF, 1), "is a multicast address"));
  EXPECT_TRUE(names(ip6_of(0xFD, 1), "both nodes have the data address fd"));
  const std::string mapped = std::string(10, '\0') + "\xff\xff\x0a\x4d" + std::string("\0\x02", 2);
  EXPECT_FALSE(refusal_of(mapped, node).empty()) << "an IPv4 address is not offered as IPv6";
  EXPECT_EQ(refusal_of(std::string("\x0a\x4d\0\x02", 4), node), "");
  EXPECT_EQ(refusal_of(ip6_of(0xFD, 2), node), "");
  EXPECT_EQ(refusal_of(ip6_of(0xFE, 2), node), "");
}

TEST(Negotiation, ANodeOnALoopbackHasItsPeersThere) {
  Abilities node = node_with(true, true, 1);
  node.port.ip4[12] = 127;
  EXPECT_EQ(refusal_of("\x7f\x01\x01\x02", node), "");
}

TEST(Negotiation, BadSpecificationsAreRefused) {
  const Abilities node = node_with(true, false);
  const auto good = make_specification(node, wishes(), Role::kSource, false, {47000});
  const auto refused = [&](auto change) {
    Specification spec = *good;
    change(spec);
    return !lanes_for(spec, 4) || !answer(spec, node, 64ULL << 20, {48000});
  };
  EXPECT_FALSE(refused([](auto&) {}));
  EXPECT_TRUE(refused([](auto& s) { s.role = OfferedRole::kUnspecified; }));
  EXPECT_TRUE(refused([](auto& s) { s.lanes_max = 0; }));
  EXPECT_TRUE(refused([](auto& s) { s.lanes_max = 2; }));
  EXPECT_TRUE(refused([](auto& s) { s.data_ip4 = "12345"; }));
  EXPECT_TRUE(refused([](auto& s) { s.udp_ports[0] = 0; }));
  EXPECT_TRUE(refused([](auto& s) { s.rate_bps_max = 0; }));
  EXPECT_TRUE(refused([](auto& s) { s.crc_kinds.clear(); }));
  EXPECT_TRUE(refused([](auto& s) { s.extent_bytes_max = 1024; }));
}

TEST(Negotiation, WhatThePeerOffersBesidesIsCutToWhatThisNodeHas) {
  const Abilities node = node_with(true, true);
  auto spec = *make_specification(node, wishes(), Role::kDestination, false, {47000, 47001, 47002});
  spec.lanes_max = 3;
  EXPECT_EQ(*lanes_for(spec, 2), 2U);
  EXPECT_EQ(*lanes_for(spec, 100), 3U);
  EXPECT_EQ(lanes_for(spec, 0).error().code, ErrorCode::kResources);
  spec.lanes_max = UINT32_MAX;
  EXPECT_EQ(lanes_for(spec, 100).error().code, ErrorCode::kIncompatible) << "without a port for each";
  spec.udp_ports.assign(100, 47000);
  spec.lanes_max = 100;
  EXPECT_EQ(*lanes_for(spec, 100), board::kLanesMax);
}

TEST(Negotiation, TheFirstCrcKindThatThisNodeKnowsIsTaken) {
  const Abilities node = node_with(true, false);
  Specification spec = *make_specification(node, wishes(), Role::kSource, false, {47000});
  spec.crc_kinds = {99, 0, 1, 2};
  EXPECT_EQ(answer(spec, node, 64ULL << 20, {48000})->crc_kind, 1U);
  spec.crc_kinds = {99, 0};
  EXPECT_EQ(answer(spec, node, 64ULL << 20, {48000}).error().code, ErrorCode::kIncompatible);
}

TEST(Negotiation, HelloNeedsACommonVersionAndASessionId) {
  Hello hello = make_hello(std::string(32, 'x'));
  hello.version_min = 1;
  hello.version_max = kProtocolVersion;
  EXPECT_TRUE(check_hello(hello));
  hello.version_min = kProtocolVersion + 1;
  EXPECT_EQ(check_hello(hello).error().code, ErrorCode::kIncompatible);
  hello.version_min = hello.version_max = kProtocolVersion - 1;
  EXPECT_EQ(check_hello(hello).error().code, ErrorCode::kIncompatible);
  hello.version_max = kProtocolVersion;
  for (const size_t digits : {0U, 5U, 31U, 33U}) {
    hello.session_id = std::string(digits, 'x');
    EXPECT_FALSE(check_hello(hello)) << digits;
  }
}

}  // namespace
}  // namespace sluice::transfer
