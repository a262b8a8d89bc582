// SPDX-License-Identifier: Apache-2.0
#include "tools/wire/corrupt.h"

#include <gtest/gtest.h>

#include <bit>

#include "dataplane/core/wire.h"
#include "dataplane/crc/crc.h"
#include "tools/wire/frames_for_test.h"
#include "tools/wire/statistics_for_test.h"

namespace sluice::emulator {
namespace {

using Bytes = std::vector<uint8_t>;

struct Damaged {
  Bytes bytes;
  uint64_t counts[kCorruptKinds] = {};
};

Damaged damage(const CorruptSettings& settings, const Bytes& frame, uint64_t number = 1,
               Framing framing = Framing::kEthernet) {
  Corrupter corrupter(settings);
  Damaged result;
  const auto out = corrupter.apply(Draws(3, number, Stage::kCorrupt), frame, framing, result.counts);
  result.bytes.assign(out.begin(), out.end());
  return result;
}

int bits_that_differ(const Bytes& one, const Bytes& other, size_t from = 0) {
  int bits = 0;
  for (size_t i = from; i < one.size(); ++i) bits += std::popcount(static_cast<uint8_t>(one[i] ^ other[i]));
  return bits;
}

TEST(Corrupt, LeavesFramesAloneWhenOff) {
  const Bytes frame = udp_frame(100);
  EXPECT_EQ(damage({}, frame).bytes, frame);
}

TEST(Corrupt, InvertsAsManyBitsAsAsked) {
  for (const uint32_t count : {1U, 2U, 7U, 64U}) {
    for (uint64_t number = 1; number <= 100; ++number) {
      const Bytes frame = udp_frame(1, false, number);
      const Damaged damaged = damage({.bits = 1, .bits_count = count}, frame, number);
      ASSERT_EQ(damaged.bytes.size(), frame.size());
      ASSERT_EQ(bits_that_differ(frame, damaged.bytes), static_cast<int>(count));
      ASSERT_EQ(damaged.counts[kCorruptBits], 1U);
    }
  }
}

TEST(Corrupt, BitsAreAnywhereInTheFrame) {
  const Bytes frame = udp_frame(22);  // 64 bytes
  std::vector<double> counts(512);
  constexpr uint64_t kFrames = 100'000;
  for (uint64_t number = 1; number <= kFrames; ++number) {
    const Bytes damaged = damage({.bits = 1}, frame, number).bytes;
    for (size_t i = 0; i < damaged.size(); ++i) {
      const auto difference = static_cast<uint8_t>(damaged[i] ^ frame[i]);
      if (difference != 0) ++counts[i * 8 + static_cast<size_t>(std::countr_zero(difference))];
    }
  }
  EXPECT_TRUE(fits_counts(counts, std::vector<double>(512, kFrames / 512.0)));
}

class CorruptUdp : public testing::TestWithParam<bool> {};

TEST_P(CorruptUdp, RepairedChecksumIsRight) {
  for (uint64_t number = 1; number <= 500; ++number) {
    const Bytes frame = udp_frame(1 + number % 40, GetParam(), number);
    ASSERT_EQ(udp_sum(frame), 0xffffU);
    const Damaged damaged = damage({.bits_repaired = 1, .bits_count = 4}, frame, number);
    const size_t payload = frame.size() - (1 + number % 40);
    ASSERT_EQ(udp_sum(damaged.bytes), 0xffffU) << number;
    ASSERT_EQ(bits_that_differ(frame, damaged.bytes, payload), 4);
    // Before the payload, only the checksum itself.
    ASSERT_TRUE(std::equal(frame.begin(), frame.begin() + static_cast<ptrdiff_t>(payload - 2),
                           damaged.bytes.begin()));
    ASSERT_EQ(damaged.counts[kCorruptBitsRepaired], 1U);
  }
}

TEST_P(CorruptUdp, SwappedWordsKeepTheChecksum) {
  for (uint64_t number = 1; number <= 500; ++number) {
    const Bytes frame = udp_frame(1001, GetParam(), number);
    const Damaged damaged = damage({.swap_words = 1}, frame, number);
    ASSERT_EQ(udp_sum(damaged.bytes), 0xffffU);
    ASSERT_NE(damaged.bytes, frame);
    const auto payload = static_cast<ptrdiff_t>(frame.size() - 1001);
    ASSERT_TRUE(std::equal(frame.begin(), frame.begin() + payload, damaged.bytes.begin()));
    Bytes before = frame;
    Bytes after = damaged.bytes;
    std::ranges::sort(before);
    std::ranges::sort(after);
    ASSERT_EQ(before, after);
    ASSERT_EQ(damaged.counts[kCorruptSwapWords], 1U);
  }
}

TEST_P(CorruptUdp, AMissingChecksumStaysMissing) {
  const Bytes frame = udp_frame(100, GetParam(), 1, false);
  const Bytes damaged = damage({.bits_repaired = 1}, frame).bytes;
  EXPECT_EQ(bits_that_differ(frame, damaged), 1);
}

INSTANTIATE_TEST_SUITE_P(Ip4AndIp6, CorruptUdp, testing::Bool());

TEST(Corrupt, ChangesNothingWhereItsKindIsNotPossible) {
  Bytes arp(60, 1);
  arp[12] = 0x08;
  arp[13] = 0x06;
  for (const Bytes& frame : {arp, udp_frame(0), Bytes(14, 0)}) {
    const Damaged damaged = damage({.bits_repaired = 1, .swap_words = 1}, frame);
    EXPECT_EQ(damaged.bytes, frame);
    EXPECT_EQ(damaged.counts[kCorruptBitsRepaired] + damaged.counts[kCorruptSwapWords], 0U);
  }
  // Words that are all the same cannot change places visibly.
  Bytes same = udp_frame(100);
  std::fill(same.end() - 100, same.end(), 7);
  EXPECT_EQ(damage({.swap_words = 1}, same).counts[kCorruptSwapWords], 0U);
  EXPECT_EQ(damage({.truncate = 1}, Bytes(14, 0)).counts[kCorruptTruncate], 0U);
}

TEST(Corrupt, TruncatesToAnyLengthAboveTheEthernetHeader) {
  const Bytes frame = udp_frame(22);
  std::vector<double> counts(50);
  for (uint64_t number = 1; number <= 50'000; ++number) {
    const Bytes damaged = damage({.truncate = 1}, frame, number).bytes;
    ASSERT_LT(damaged.size(), frame.size());
    ASSERT_GE(damaged.size(), 14U);
    ASSERT_TRUE(std::equal(damaged.begin(), damaged.end(), frame.begin()));
    ++counts[damaged.size() - 14];
  }
  EXPECT_TRUE(fits_counts(counts, std::vector<double>(50, 1000)));
}

TEST(Corrupt, EveryKindHasItsProbability) {
  constexpr CorruptSettings kSettings{
      .bits = 0.01, .bits_repaired = 0.02, .swap_words = 0.03, .truncate = 0.04};
  constexpr double kFrames = 1'000'000;
  Corrupter corrupter(kSettings);
  const Bytes frame = udp_frame(64);
  uint64_t counts[kCorruptKinds] = {};
  for (uint64_t number = 1; number <= 1'000'000; ++number) {
    corrupter.apply(Draws(5, number, Stage::kCorrupt), frame, Framing::kEthernet, counts);
  }
  const auto fits = [&](double factor) {
    const double p[kCorruptKinds] = {kSettings.bits, kSettings.bits_repaired, kSettings.swap_words,
                                     kSettings.truncate};
    std::vector<double> observed;
    std::vector<double> expected;
    for (size_t kind = 0; kind < kCorruptKinds; ++kind) {
      observed.push_back(static_cast<double>(counts[kind]));
      observed.push_back(kFrames - observed.back());
      expected.push_back(kFrames * p[kind] * factor);
      expected.push_back(kFrames - expected.back());
    }
    return fits_counts(observed, expected, kCorruptKinds);
  };
  EXPECT_TRUE(fits(1));
  EXPECT_FALSE(fits(1.03));
  EXPECT_FALSE(fits(0.97));
}

TEST(Corrupt, DamagesBareDatagramsToo) {
  const Bytes payload(64, 0x55);
  EXPECT_EQ(bits_that_differ(payload, damage({.bits_repaired = 1}, payload, 1, Framing::kUdpPayload).bytes),
            1);
  Bytes counting(64);
  for (size_t i = 0; i < counting.size(); ++i) counting[i] = static_cast<uint8_t>(i);
  EXPECT_NE(damage({.swap_words = 1}, counting, 1, Framing::kUdpPayload).bytes, counting);
}

// A frame of ours under `crc`, as an attacker alters it: both checks hold.
TEST(Corrupt, AForgedChunkHasOtherBytesAndARightCrc) {
  for (const bool ip6 : {false, true}) {
    for (uint64_t number = 1; number <= 200; ++number) {
      Bytes frame = udp_frame(static_cast<uint32_t>(wire::kHeaderBytes + 9 + number * 7), ip6, number);
      const size_t sluice = frame.size() - (wire::kHeaderBytes + 9 + number * 7);
      frame[sluice] = wire::kVersion;
      frame[sluice + 1] = 0;
      wire::store_be16(&frame[sluice - 2], udp_checksum(frame, find_udp(frame, Framing::kEthernet)));
      const Damaged damaged = damage({.forge = 1}, frame, number);
      ASSERT_EQ(damaged.counts[kCorruptForge], 1U);
      const auto crc_of = [&](const Bytes& of) {
        const size_t payload = sluice + wire::kHeaderBytes;
        return crc::reference(wire::CrcKind::kCrc64Ecma, 0, of.data() + payload, of.size() - payload);
      };
      EXPECT_EQ(crc_of(damaged.bytes), crc_of(frame));
      EXPECT_EQ(udp_sum(damaged.bytes), 0xffffU);
      EXPECT_GT(bits_that_differ(frame, damaged.bytes, sluice + wire::kHeaderBytes), 10);
      EXPECT_EQ(bits_that_differ(frame, damaged.bytes),
                bits_that_differ(frame, damaged.bytes, sluice + wire::kHeaderBytes) +
                    std::popcount(static_cast<uint16_t>(wire::load_be16(&frame[sluice - 2]) ^
                                                        wire::load_be16(&damaged.bytes[sluice - 2]))));
    }
  }
}

TEST(Corrupt, WhatIsNoChunkIsNotForged) {
  const Bytes frame = udp_frame(300);  // of another version
  EXPECT_EQ(damage({.forge = 1}, frame).bytes, frame);
}

// Whatever lengths a frame claims, only its own bytes are read.
TEST(Corrupt, TrustsNoLengthInTheFrame) {
  const CorruptSettings all{.bits = 0.5, .bits_repaired = 1, .swap_words = 1, .truncate = 0.5, .forge = 1};
  for (const bool ip6 : {false, true}) {
    const Bytes whole = udp_frame(60, ip6);
    for (size_t length = 1; length <= whole.size(); ++length) {
      damage(all, Bytes(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(length)), length);
    }
    for (uint64_t number = 1; number <= 20'000; ++number) {
      Draws draws(9, number, Stage::kLossBurst);
      Bytes wild = whole;
      for (int i = 0; i < 3; ++i) wild[12 + draws.below(50)] = static_cast<uint8_t>(draws.next());
      damage(all, wild, number);
    }
  }
}

}  // namespace
}  // namespace sluice::emulator
