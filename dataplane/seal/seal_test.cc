// Every kind, both ways: what was sealed opens, what was damaged does not, and nothing is written before it
// is known to be right where that was asked.
// SPDX-License-Identifier: Apache-2.0
#include "dataplane/seal/seal.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

namespace sluice::seal {
namespace {

using Bytes = std::vector<uint8_t>;
using wire::CrcKind;
using wire::Protection;
using wire::Type;

constexpr Secret kSecret = {1, 2, 3};
constexpr uint32_t kEpochBits = 4;

Bytes some_bytes(size_t size, uint32_t seed = 1) {
  std::mt19937 random(seed);
  Bytes bytes(size);
  for (auto& b : bytes) b = static_cast<uint8_t>(random());
  return bytes;
}

// One end of a flow.
struct End {
  explicit End(CrcKind a_kind, Protection a_protection, const Secret& secret = kSecret)
      : kind(a_kind), protection(a_protection), keys(a_protection, secret, kEpochBits) {}

  // As a sender builds it, its payload copied in the pass that sums it, or beside where it leaves from its
  // place.
  Bytes sealed(wire::Header header, const Bytes& payload, bool copying = true, uint64_t* digest = nullptr) {
    header.flow_id = 0x1122334455660007;
    header.length = static_cast<uint32_t>(payload.size());
    Bytes datagram(wire::kHeaderBytes + payload.size());
    const std::span<uint8_t, wire::kHeaderBytes> front(datagram.data(), wire::kHeaderBytes);
    copying |= seal.enciphers(header.type);
    uint8_t* const out = copying ? datagram.data() + wire::kHeaderBytes : nullptr;
    const uint64_t its_digest = seal.seal(header, payload, front, out);
    if (digest != nullptr) *digest = its_digest;
    if (!copying) std::copy(payload.begin(), payload.end(), datagram.begin() + wire::kHeaderBytes);
    return datagram;
  }
  Opened open(const Bytes& datagram, uint8_t* place) {
    wire::Header header;
    EXPECT_EQ(wire::decode(datagram, &header), wire::Reject::kNone);
    return seal.open(header, datagram, place);
  }

  const CrcKind kind;
  const Protection protection;
  FlowKeys keys;
  std::unique_ptr<Scratch> scratch = std::make_unique<Scratch>();
  FlowSeal seal{kind, protection, keys, *scratch};
};

struct Case {
  CrcKind kind;
  Protection protection;
};
std::string name_of(const testing::TestParamInfo<Case>& each) {
  std::string name(wire::protection_name(each.param.protection));
  std::erase(name, '-');
  return name + "_" + std::string(wire::crc_kind_name(each.param.kind));
}

class EveryKind : public testing::TestWithParam<Case> {
 protected:
  End from_{GetParam().kind, GetParam().protection};
  End to_{GetParam().kind, GetParam().protection};
};
INSTANTIATE_TEST_SUITE_P(Seal, EveryKind,
                         testing::Values(Case{CrcKind::kNone, Protection::kCrc},
                                         Case{CrcKind::kCrc32c, Protection::kCrc},
                                         Case{CrcKind::kCrc64Ecma, Protection::kCrc},
                                         Case{CrcKind::kNone, Protection::kAes128Gcm},
                                         Case{CrcKind::kCrc32c, Protection::kAes128Gcm},
                                         Case{CrcKind::kCrc64Ecma, Protection::kAes128Gcm},
                                         Case{CrcKind::kCrc64Ecma, Protection::kAes256Gcm}),
                         name_of);

// Of any length, to any place of a line of cache; nothing around it is written, and what was opened stays.
TEST_P(EveryKind, SealsTheSamePastTheCaches) {
  constexpr size_t kLine = 64;
  uint64_t tx_seq = 0;
  for (const size_t size :
       {size_t{1}, size_t{63}, size_t{64}, size_t{900}, size_t{1384}, size_t{8192}, size_t{32768}}) {
    for (size_t skew = 0; skew < kLine; skew += size < 1000 ? 1 : 7) {
      const Bytes payload = some_bytes(size);
      const wire::Header header{.type = Type::kData,
                                .flow_id = 0x1122334455660007,
                                .tx_seq = tx_seq++,
                                .length = static_cast<uint32_t>(size)};
      Bytes front(wire::kHeaderBytes);
      Bytes usual_front(wire::kHeaderBytes);
      Bytes usual(size);
      Bytes room(size + 4 * kLine, 0xEE);
      const size_t at = -reinterpret_cast<uintptr_t>(room.data()) % kLine + kLine + skew;
      std::fill(from_.scratch->bytes.begin(), from_.scratch->bytes.end(), 0x77);
      const uint64_t digest = from_.seal.seal(header, payload, std::span<uint8_t, wire::kHeaderBytes>(front),
                                              &room[at], Store::kPastCaches);
      EXPECT_EQ(digest, from_.seal.seal(header, payload, std::span<uint8_t, wire::kHeaderBytes>(usual_front),
                                        usual.data()));
      EXPECT_EQ(front, usual_front);
      EXPECT_TRUE(std::equal(usual.begin(), usual.end(), &room[at])) << size << " bytes, skew " << skew;
      std::fill_n(&room[at], size, 0xEE);
      EXPECT_EQ(room, Bytes(room.size(), 0xEE)) << "something beside " << size << " bytes, skew " << skew;
      EXPECT_EQ(from_.scratch->bytes.front(), 0x77) << "what was opened lies there";
    }
  }
}

TEST_P(EveryKind, OpensWhatItSealedInBothOrders) {
  uint64_t tx_seq = 0;
  for (const size_t size : {size_t{1}, size_t{63}, size_t{1384}, size_t{8192}, size_t{32768}}) {
    const Bytes payload = some_bytes(size);
    for (const bool copying : {false, true}) {
      uint64_t digest = 0;
      const Bytes datagram = from_.sealed({.tx_seq = tx_seq++}, payload, copying, &digest);
      EXPECT_EQ(digest, crc::reference(GetParam().kind, 0, payload.data(), size));
      Bytes place(size, 0xEE);
      const Opened once = to_.open(datagram, place.data());
      FlowSeal::publish();
      EXPECT_TRUE(once.good() && once.placed());
      EXPECT_EQ(once.digest(), digest);
      EXPECT_EQ(place, payload);

      std::fill(place.begin(), place.end(), 0xEE);
      const Opened twice = to_.open(datagram, nullptr);
      EXPECT_TRUE(twice.good() && !twice.placed());
      EXPECT_EQ(twice.digest(), digest);
      EXPECT_EQ(place, Bytes(size, 0xEE)) << "nothing is written by looking";
      twice.place(place.data());
      EXPECT_EQ(place, payload);
    }
  }
}

TEST_P(EveryKind, StatusesAndProbesAreEncipheredWhateverTheDataAre) {
  End stranger(GetParam().kind, GetParam().protection, Secret{9});
  for (const Type type : {Type::kStatus, Type::kProbe}) {
    const Bytes payload = some_bytes(type == Type::kStatus ? 200 : 0);
    Bytes datagram = from_.sealed({.type = type, .tx_seq = 5}, payload);
    EXPECT_TRUE(payload.empty() || !std::equal(payload.begin(), payload.end(), datagram.end() - 200));
    EXPECT_TRUE(to_.open(datagram, nullptr).good());
    EXPECT_EQ(stranger.open(datagram, nullptr).outcome(), Outcome::kWrong);
    datagram[23] ^= 1;  // of tx_seq
    EXPECT_EQ(to_.open(datagram, nullptr).outcome(), Outcome::kWrong);
  }
}

TEST_P(EveryKind, PlacesNothingTwice) {
  const Bytes datagram = from_.sealed({}, some_bytes(512));
  Bytes place(512);
  const Opened opened = to_.open(datagram, place.data());
  EXPECT_DEATH(opened.place(place.data()), "only after");
}

class EverySum : public EveryKind {};
INSTANTIATE_TEST_SUITE_P(Seal, EverySum,
                         testing::Values(Case{CrcKind::kCrc32c, Protection::kCrc},
                                         Case{CrcKind::kCrc64Ecma, Protection::kCrc},
                                         Case{CrcKind::kNone, Protection::kAes128Gcm},
                                         Case{CrcKind::kCrc64Ecma, Protection::kAes256Gcm}),
                         name_of);

// Any bit of payload or header that decode() lets pass.
TEST_P(EverySum, RefusesADatagramWithAnyBitTurned) {
  const Bytes payload = some_bytes(300);
  const Bytes datagram = from_.sealed({.tx_seq = 3}, payload);
  uint32_t refused = 0;
  for (size_t bit = 0; bit < 8 * datagram.size(); ++bit) {
    Bytes damaged = datagram;
    damaged[bit / 8] ^= static_cast<uint8_t>(1U << (bit % 8));
    wire::Header header;
    if (wire::decode(damaged, &header) != wire::Reject::kNone || header.type != Type::kData) continue;
    const Opened opened = to_.seal.open(header, damaged, nullptr);
    ASSERT_FALSE(opened.good()) << bit;
    EXPECT_EQ(opened.digest(), 0U);
    ++refused;
  }
  EXPECT_GT(refused, 8 * (payload.size() + 40));
  EXPECT_TRUE(to_.open(datagram, nullptr).good());
}

TEST_P(EverySum, WritesNothingOverGoodBytesBeforeItKnows) {
  const Bytes payload = some_bytes(8192);
  Bytes damaged = from_.sealed({}, payload);
  damaged.back() ^= 1;
  Bytes place = some_bytes(payload.size(), 2);
  const Bytes before = place;
  const Opened opened = to_.open(damaged, nullptr);
  EXPECT_FALSE(opened.good());
  EXPECT_EQ(place, before);
  EXPECT_DEATH(opened.place(place.data()), "only after they were found to be right");
}

// `none` proves nothing, but its field is zero all the same.
TEST(SealNone, TakesDamagedBytesAndNoOtherField) {
  End end(CrcKind::kNone, Protection::kCrc);
  uint64_t digest = 1;
  Bytes datagram = end.sealed({}, some_bytes(100), true, &digest);
  EXPECT_EQ(digest, 0U);
  datagram.back() ^= 1;
  EXPECT_TRUE(end.open(datagram, nullptr).good());
  datagram[wire::kHeaderBytes - 1] = 1;
  EXPECT_FALSE(end.open(datagram, nullptr).good());
}

// A codeword of the CRC added to a chunk: it is right by its CRC, and by no tag.
TEST(SealAttack, AnAlteredChunkWithARightCrcDoesNotOpen) {
  const Bytes payload = some_bytes(1000);
  for (const Protection protection : {Protection::kCrc, Protection::kAes128Gcm}) {
    End from(CrcKind::kCrc64Ecma, protection);
    End to(CrcKind::kCrc64Ecma, protection);
    const Bytes datagram = from.sealed({.tx_seq = 1}, payload);
    // Another byte, and behind it the eight bytes that bring the CRC back: it is linear, so Gauss finds them.
    Bytes altered = payload;
    altered[100] ^= 0x55;
    uint64_t columns[64];
    const auto crc_with = [&](uint64_t bits) {
      Bytes tried(altered.begin(), altered.begin() + 109);
      for (size_t i = 0; i < 8; ++i) tried[101 + i] = static_cast<uint8_t>(bits >> (8 * i));
      return crc::reference(CrcKind::kCrc64Ecma, 0, tried.data(), tried.size());
    };
    const uint64_t goal = crc::reference(CrcKind::kCrc64Ecma, 0, payload.data(), 109);
    const uint64_t zero = crc_with(0);
    uint64_t inputs[64];
    for (int i = 0; i < 64; ++i) {
      columns[i] = crc_with(uint64_t{1} << i) ^ zero;
      inputs[i] = uint64_t{1} << i;
    }
    uint64_t rest = goal ^ zero;
    uint64_t bits = 0;
    for (int bit = 0; bit < 64; ++bit) {
      int pivot = bit;
      while (pivot < 64 && ((columns[pivot] >> bit) & 1) == 0) ++pivot;
      ASSERT_LT(pivot, 64);
      std::swap(columns[bit], columns[pivot]);
      std::swap(inputs[bit], inputs[pivot]);
      for (int other = 0; other < 64; ++other) {
        if (other != bit && ((columns[other] >> bit) & 1) != 0) {
          columns[other] ^= columns[bit];
          inputs[other] ^= inputs[bit];
        }
      }
    }
    for (int bit = 0; bit < 64; ++bit) {
      if (((rest >> bit) & 1) != 0) bits ^= inputs[bit];
    }
    for (size_t i = 0; i < 8; ++i) altered[101 + i] = static_cast<uint8_t>(bits >> (8 * i));
    ASSERT_NE(altered, payload);
    ASSERT_EQ(crc::reference(CrcKind::kCrc64Ecma, 0, altered.data(), altered.size()),
              crc::reference(CrcKind::kCrc64Ecma, 0, payload.data(), payload.size()));
    Bytes on_the_wire = datagram;
    for (size_t i = 0; i < payload.size(); ++i) {
      on_the_wire[wire::kHeaderBytes + i] ^= static_cast<uint8_t>(payload[i] ^ altered[i]);
    }
    EXPECT_EQ(to.open(on_the_wire, nullptr).good(), protection == Protection::kCrc);
  }
}

class Epochs : public testing::TestWithParam<Type> {
 protected:
  wire::Header header(uint64_t number) {
    if (GetParam() == Type::kProbe) return {.type = Type::kProbe, .tx_seq = 5, .offset = number};
    return {.type = GetParam(), .tx_seq = number};
  }
  Bytes payload_ = some_bytes(40);
  End from_{CrcKind::kCrc64Ecma, Protection::kAes128Gcm};
  End to_{CrcKind::kCrc64Ecma, Protection::kAes128Gcm};
};
INSTANTIATE_TEST_SUITE_P(Seal, Epochs, testing::Values(Type::kData, Type::kStatus, Type::kProbe),
                         [](const auto& each) {
                           return std::string(each.param == Type::kData     ? "Data"
                                              : each.param == Type::kStatus ? "Status"
                                                                            : "Probe");
                         });

TEST_P(Epochs, ThousandsPass) {
  for (uint64_t tx_seq = 0; tx_seq < 5000 << kEpochBits; tx_seq += 3) {
    const Bytes datagram = from_.sealed(header(tx_seq), payload_);
    ASSERT_EQ(datagram[4], static_cast<uint8_t>(tx_seq >> kEpochBits));
    ASSERT_TRUE(to_.open(datagram, nullptr).good()) << tx_seq;
  }
}

TEST_P(Epochs, OneBeforeOneAfterAndNoOther) {
  std::vector<Bytes> of_epoch;
  for (uint64_t epoch = 0; epoch < 8; ++epoch)
    of_epoch.push_back(from_.sealed(header((epoch << kEpochBits) + 1), payload_));
  EXPECT_EQ(to_.open(of_epoch[2], nullptr).outcome(), Outcome::kBadEpoch) << "two after";
  EXPECT_TRUE(to_.open(of_epoch[1], nullptr).good()) << "one after";
  EXPECT_TRUE(to_.open(of_epoch[0], nullptr).good()) << "one before";
  EXPECT_TRUE(to_.open(of_epoch[2], nullptr).good());
  EXPECT_EQ(to_.open(of_epoch[0], nullptr).outcome(), Outcome::kBadEpoch) << "two before";
  EXPECT_TRUE(to_.open(of_epoch[1], nullptr).good());
  EXPECT_TRUE(to_.open(of_epoch[3], nullptr).good());
}

TEST_P(Epochs, WhatIsNotRightMovesNoKey) {
  Bytes forged = from_.sealed(header((1 << kEpochBits) + 1), payload_);
  forged.back() ^= 1;
  for (int i = 0; i < 10; ++i) EXPECT_EQ(to_.open(forged, nullptr).outcome(), Outcome::kWrong);
  const Bytes two_after = from_.sealed(header((2 << kEpochBits) + 1), payload_);
  EXPECT_EQ(to_.open(two_after, nullptr).outcome(), Outcome::kBadEpoch);
}

TEST_P(Epochs, AnEpochThatIsNotThatOfTheNumberIsRefused) {
  Bytes datagram = from_.sealed(header(1), payload_);
  datagram[4] = 1;
  EXPECT_EQ(to_.open(datagram, nullptr).outcome(), Outcome::kBadEpoch);
}

// Sealed twice, whatever else is the same: no two datagrams have one nonce.
TEST(Nonces, DifferByTypeNumberAndEpoch) {
  FlowKeys keys(Protection::kAes128Gcm, kSecret, kEpochBits);
  std::vector<std::array<uint8_t, kIvBytes>> seen;
  for (const Type type : {Type::kData, Type::kProbe, Type::kStatus}) {
    for (const uint64_t epoch : {0, 1}) {
      for (uint64_t number = 0; number < 100; ++number)
        seen.push_back(nonce_of(*keys.of(type).find(epoch), (epoch << kEpochBits) + number));
    }
  }
  std::sort(seen.begin(), seen.end());
  EXPECT_EQ(std::unique(seen.begin(), seen.end()), seen.end());
}

// Each type counts for itself: a path on which almost all is data leaves the keys of probes where they are.
TEST(Nonces, DataMoveNoKeyOfProbesAndStatuses) {
  for (const Protection protection : {Protection::kCrc, Protection::kAes128Gcm}) {
    End from(CrcKind::kCrc64Ecma, protection);
    End to(CrcKind::kCrc64Ecma, protection);
    const Bytes payload = some_bytes(40);
    for (uint64_t tx_seq = 0; tx_seq < 10 << kEpochBits; ++tx_seq)
      ASSERT_TRUE(to.open(from.sealed({.type = Type::kData, .tx_seq = tx_seq}, payload), nullptr).good());
    const Bytes probe = from.sealed({.type = Type::kProbe, .tx_seq = 10 << kEpochBits, .offset = 1}, {});
    EXPECT_TRUE(to.open(probe, nullptr).good());
    EXPECT_TRUE(to.open(from.sealed({.type = Type::kStatus, .tx_seq = 3}, payload), nullptr).good());
  }
}

TEST(Nonces, ProbesOfOneTxSeqDifferByTheirOwnNumber) {
  End end(CrcKind::kCrc64Ecma, Protection::kAes128Gcm);
  const Bytes payload(64);
  const Bytes one = end.sealed({.type = Type::kProbe, .tx_seq = 7, .offset = 0}, payload);
  const Bytes other = end.sealed({.type = Type::kProbe, .tx_seq = 7, .offset = 1}, payload);
  EXPECT_FALSE(std::equal(one.begin() + wire::kHeaderBytes, one.end(), other.begin() + wire::kHeaderBytes));
}

}  // namespace
}  // namespace sluice::seal
