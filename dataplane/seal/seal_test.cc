// Every kind, both ways: what was sealed opens, what was damaged does not, and nothing is written before it
// is known to be right where that was asked.
// SPDX-License-Identifier: Apache-2.0
#include "dataplane/seal/seal.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace sluice::seal {
namespace {

using Bytes = std::vector<uint8_t>;
using wire::CrcKind;
using wire::Type;

Bytes some_bytes(size_t size, uint32_t seed = 1) {
  std::mt19937 random(seed);
  Bytes bytes(size);
  for (auto& b : bytes) b = static_cast<uint8_t>(random());
  return bytes;
}

// As a sender builds it, its payload copied in the pass that sums it, or beside.
Bytes sealed(const FlowSeal& seal, Type type, const Bytes& payload, bool copying, uint64_t* digest) {
  const wire::Header header{.type = type,
                            .flow_id = 0x1122334455660007,
                            .tx_seq = 42,
                            .length = static_cast<uint32_t>(payload.size())};
  Bytes datagram(wire::kHeaderBytes + payload.size());
  const std::span<uint8_t, wire::kHeaderBytes> front(datagram.data(), wire::kHeaderBytes);
  *digest = seal.seal(header, payload, front, copying ? datagram.data() + wire::kHeaderBytes : nullptr);
  if (!copying) std::copy(payload.begin(), payload.end(), datagram.begin() + wire::kHeaderBytes);
  return datagram;
}

Opened open(const FlowSeal& seal, const Bytes& datagram, uint8_t* place) {
  wire::Header header;
  EXPECT_EQ(wire::decode(datagram, &header), wire::Reject::kNone);
  return seal.open(header, datagram, place);
}

class EveryKind : public testing::TestWithParam<CrcKind> {
 protected:
  const FlowSeal seal_{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Seal, EveryKind,
                         testing::Values(CrcKind::kNone, CrcKind::kCrc32c, CrcKind::kCrc64Ecma),
                         [](const auto& each) { return std::string(wire::crc_kind_name(each.param)); });

TEST_P(EveryKind, OpensWhatItSealedInBothOrders) {
  for (const size_t size : {size_t{1}, size_t{63}, size_t{1384}, size_t{8192}, size_t{32768}}) {
    const Bytes payload = some_bytes(size);
    for (const bool copying : {false, true}) {
      uint64_t digest = 0;
      const Bytes datagram = sealed(seal_, Type::kData, payload, copying, &digest);
      EXPECT_EQ(digest, crc::reference(GetParam(), 0, payload.data(), size));
      Bytes place(size, 0xEE);
      const Opened once = open(seal_, datagram, place.data());
      FlowSeal::publish();
      EXPECT_TRUE(once.good() && once.placed());
      EXPECT_EQ(once.digest(), digest);
      EXPECT_EQ(place, payload);

      std::fill(place.begin(), place.end(), 0xEE);
      const Opened twice = open(seal_, datagram, nullptr);
      EXPECT_TRUE(twice.good() && !twice.placed());
      EXPECT_EQ(twice.digest(), digest);
      EXPECT_EQ(place, Bytes(size, 0xEE)) << "nothing is written by looking";
      twice.place(place.data());
      EXPECT_EQ(place, payload);
    }
  }
}

TEST_P(EveryKind, StatusesAndProbesAreUnderCrc64WhateverTheDataIs) {
  for (const Type type : {Type::kStatus, Type::kProbe}) {
    const Bytes payload = some_bytes(type == Type::kStatus ? 200 : 0);
    uint64_t digest = 0;
    Bytes datagram = sealed(seal_, type, payload, true, &digest);
    EXPECT_EQ(digest, crc::reference(CrcKind::kCrc64Ecma, 0, payload.data(), payload.size()));
    EXPECT_TRUE(open(seal_, datagram, nullptr).good());
    datagram[17] ^= 1;  // of tx_seq
    EXPECT_FALSE(open(seal_, datagram, nullptr).good());
  }
}

class EverySum : public EveryKind {};
INSTANTIATE_TEST_SUITE_P(Seal, EverySum, testing::Values(CrcKind::kCrc32c, CrcKind::kCrc64Ecma),
                         [](const auto& each) { return std::string(wire::crc_kind_name(each.param)); });

// Any bit of payload or header that decode() lets pass.
TEST_P(EverySum, RefusesADatagramWithAnyBitTurned) {
  const Bytes payload = some_bytes(300);
  uint64_t digest = 0;
  const Bytes datagram = sealed(seal_, Type::kData, payload, true, &digest);
  uint32_t refused = 0;
  for (size_t bit = 0; bit < 8 * datagram.size(); ++bit) {
    Bytes damaged = datagram;
    damaged[bit / 8] ^= static_cast<uint8_t>(1U << (bit % 8));
    wire::Header header;
    if (wire::decode(damaged, &header) != wire::Reject::kNone || header.type != Type::kData) continue;
    const Opened opened = seal_.open(header, damaged, nullptr);
    ASSERT_FALSE(opened.good()) << bit;
    EXPECT_EQ(opened.digest(), 0U);
    ++refused;
  }
  EXPECT_GT(refused, 8 * (payload.size() + 40));
}

TEST_P(EverySum, WritesNothingOverGoodBytesBeforeItKnows) {
  const Bytes payload = some_bytes(8192);
  uint64_t digest = 0;
  Bytes damaged = sealed(seal_, Type::kData, payload, true, &digest);
  damaged.back() ^= 1;
  Bytes place = some_bytes(payload.size(), 2);
  const Bytes before = place;
  const Opened opened = open(seal_, damaged, nullptr);
  EXPECT_FALSE(opened.good());
  EXPECT_EQ(place, before);
  EXPECT_DEATH(opened.place(place.data()), "only after they were found to be right");
}

TEST_P(EveryKind, PlacesNothingTwice) {
  uint64_t digest = 0;
  const Bytes datagram = sealed(seal_, Type::kData, some_bytes(512), true, &digest);
  Bytes place(512);
  const Opened opened = open(seal_, datagram, place.data());
  EXPECT_DEATH(opened.place(place.data()), "only after");
}

// `none` proves nothing, but its field is zero all the same.
TEST(SealNone, TakesDamagedBytesAndNoOtherField) {
  const FlowSeal seal(CrcKind::kNone);
  uint64_t digest = 1;
  Bytes datagram = sealed(seal, Type::kData, some_bytes(100), true, &digest);
  EXPECT_EQ(digest, 0U);
  datagram.back() ^= 1;
  EXPECT_TRUE(open(seal, datagram, nullptr).good());
  datagram[wire::kHeaderBytes - 1] = 1;
  EXPECT_FALSE(open(seal, datagram, nullptr).good());
}

}  // namespace
}  // namespace sluice::seal
