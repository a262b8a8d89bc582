// SPDX-License-Identifier: Apache-2.0
#include "dataplane/net/frame.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "dataplane/core/wire.h"

namespace sluice::net {
namespace {

Address ip4(uint8_t last) {
  Address a;
  a.bytes[10] = a.bytes[11] = 0xFF;
  a.bytes[12] = 10;
  a.bytes[13] = 77;
  a.bytes[15] = last;
  return a;
}
Address ip6(uint8_t last) {
  Address a;
  a.bytes[0] = 0xFD;
  a.bytes[1] = 0x77;
  a.bytes[15] = last;
  return a;
}

class Net : public ::testing::TestWithParam<bool> {
 protected:
  Address source() const { return GetParam() ? ip4(1) : ip6(1); }
  Address destination() const { return GetParam() ? ip4(2) : ip6(2); }
  std::vector<uint8_t> frame(size_t payload_bytes, bool checksum) const {
    FrameTemplate t(source(), 47000, destination(), 47001);
    const uint8_t mac_a[6] = {2, 0, 0, 0, 0, 1};
    const uint8_t mac_b[6] = {2, 0, 0, 0, 0, 2};
    t.set_macs(mac_a, mac_b);
    std::vector<uint8_t> bytes(t.bytes() + payload_bytes);
    t.write(bytes.data(), static_cast<uint32_t>(payload_bytes));
    for (size_t i = 0; i < payload_bytes; ++i) bytes[t.bytes() + i] = static_cast<uint8_t>(i * 7 + 1);
    if (checksum) {
      const auto payload = std::span(bytes).subspan(t.bytes());
      const size_t front = std::min<size_t>(64, payload_bytes);
      wire::store_be16(&bytes[t.udp_checksum_at()],
                       t.udp_checksum(payload.first(front), payload.subspan(front)));
    }
    return bytes;
  }
};
INSTANTIATE_TEST_SUITE_P(Families, Net, ::testing::Bool(),
                         [](const auto& family) { return family.param ? "IPv4" : "IPv6"; });

TEST(FrameTemplate, EveryPairOfAddressesHasAGoodHeaderChecksum) {
  for (uint32_t pair = 0; pair < 65536; ++pair) {
    FrameTemplate t(ip4(static_cast<uint8_t>(pair)), 1, ip4(static_cast<uint8_t>(pair >> 8)), 2);
    std::vector<uint8_t> frame(t.bytes());
    t.write(frame.data(), 0);
    UdpFrame udp;
    ASSERT_EQ(parse_udp(frame, &udp), Parse::kUdp) << pair;
  }
}

TEST_P(Net, ParsesItsOwnFrames) {
  for (const size_t bytes : {0, 1, 64, 65, 1448, 8256}) {
    const auto f = frame(bytes, true);
    UdpFrame udp;
    ASSERT_EQ(parse_udp(f, &udp), Parse::kUdp) << bytes;
    EXPECT_EQ(udp.source, source());
    EXPECT_EQ(udp.destination, destination());
    EXPECT_EQ(udp.source_port, 47000);
    EXPECT_EQ(udp.destination_port, 47001);
    EXPECT_EQ(udp.payload.size(), bytes);
    EXPECT_NE(udp.checksum, 0);
    EXPECT_EQ(udp_sum(udp.source, udp.destination, udp.udp), 0xFFFF) << bytes;
  }
}

TEST_P(Net, ChecksumSeesAChangedByte) {
  auto f = frame(200, true);
  f[f.size() - 3] ^= 0x10;
  UdpFrame udp;
  ASSERT_EQ(parse_udp(f, &udp), Parse::kUdp);
  EXPECT_NE(udp_sum(udp.source, udp.destination, udp.udp), 0xFFFF);
}

TEST_P(Net, RefusesEveryTruncation) {
  const auto f = frame(10, false);
  for (size_t n = 0; n < f.size(); ++n) {
    UdpFrame udp;
    EXPECT_EQ(parse_udp(std::span(f).first(n), &udp), Parse::kMalformed) << n;
  }
}

TEST_P(Net, IgnoresEthernetPadding) {
  auto f = frame(1, false);
  f.resize(f.size() + 17);
  UdpFrame udp;
  ASSERT_EQ(parse_udp(f, &udp), Parse::kUdp);
  EXPECT_EQ(udp.payload.size(), 1U);
}

TEST(NetIp4, RefusesOptionsAndABadHeaderChecksum) {
  FrameTemplate t(ip4(1), 1, ip4(2), 2);
  std::vector<uint8_t> good(t.bytes() + 8);
  t.write(good.data(), 8);
  UdpFrame udp;
  ASSERT_EQ(parse_udp(good, &udp), Parse::kUdp);
  for (const auto& [at, value] : {std::pair<size_t, uint8_t>{14, 0x46}, {24, 0xFF}, {22, 63}}) {
    auto bad = good;
    bad[at] = value;
    EXPECT_EQ(parse_udp(bad, &udp), Parse::kMalformed) << at;
  }
}

// Without DF it may have been put together of fragments, by the kernel below an af_packet device.
TEST(NetIp4, RefusesFragmentsAndWhatMayHaveBeenSome) {
  FrameTemplate t(ip4(1), 1, ip4(2), 2);
  std::vector<uint8_t> good(t.bytes() + 8);
  t.write(good.data(), 8);
  UdpFrame udp;
  for (const uint16_t field : {0x0000, 0x2000, 0x0001, 0x6000, 0x4001, 0xC000}) {
    auto bad = good;
    bad[20] = static_cast<uint8_t>(field >> 8);
    bad[21] = static_cast<uint8_t>(field);
    const uint32_t sum = (bad[24] << 8 | bad[25]) + 0x4000U + (~field & 0xFFFFU);  // RFC 1624
    const uint32_t folded = (sum & 0xFFFF) + (sum >> 16);
    bad[24] = static_cast<uint8_t>(folded >> 8);
    bad[25] = static_cast<uint8_t>(folded);
    EXPECT_EQ(parse_udp(bad, &udp), Parse::kFragment) << field;
    bad[23] = 1;  // ICMP, whose checksum is ours to keep right: 17 - 1 more
    const uint32_t more = folded + 16;
    bad[24] = static_cast<uint8_t>(((more & 0xFFFF) + (more >> 16)) >> 8);
    bad[25] = static_cast<uint8_t>((more & 0xFFFF) + (more >> 16));
    EXPECT_EQ(parse_udp(bad, &udp), (field & 0x3FFF) == 0 ? Parse::kOther : Parse::kFragment) << field;
  }
}

// Else a flow of IPv4 could be reached past all that IPv4 is checked for.
TEST(NetIp6, RefusesAddressesOfIp4) {
  for (const bool as_source : {true, false}) {
    FrameTemplate t(ip6(1), 47000, ip6(2), 47001);
    std::vector<uint8_t> frame(t.bytes() + 80);
    t.write(frame.data(), 80);
    UdpFrame udp;
    ASSERT_EQ(parse_udp(frame, &udp), Parse::kUdp);
    std::memcpy(&frame[kEthernetBytes + (as_source ? 8 : 24)], ip4(1).bytes, 16);
    EXPECT_EQ(parse_udp(frame, &udp), Parse::kMalformed) << as_source;
  }
}

TEST(NetOther, LeavesOtherProtocolsToOthers) {
  std::vector<uint8_t> arp(60);
  arp[12] = 0x08;
  arp[13] = 0x06;
  UdpFrame udp;
  EXPECT_EQ(parse_udp(arp, &udp), Parse::kOther);
}

}  // namespace
}  // namespace sluice::net
