// SPDX-License-Identifier: Apache-2.0
#include "dataplane/core/wire.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace sluice::wire {
namespace {

Header sample() {
  return {.type = Type::kData,
          .flags = kFlagRetransmission,
          .key_epoch = 0xB1,
          .flow_id = 0x1122334455660007,
          .tx_seq = 0x0102030405060708,
          .send_time_ns = 0xA1A2A3A4A5A6A7A8,
          .offset = 0x0000005AF3107A40,
          .object = 0xC1C2C3C4,
          .length = 16,
          .done_seen = 0xD1D2D3D4,
          .credit_wanted = 0xF1F2F3,
          .statuses_heard = 0xD5D6D7D8};
}

std::vector<uint8_t> datagram(const Header& header) {
  std::vector<uint8_t> bytes(kHeaderBytes + header.length);
  encode(header, std::span<uint8_t, kHeaderBytes>(bytes.data(), kHeaderBytes));
  return bytes;
}

// Every field at its place. Whole datagrams, as docs/WIRE.md shows them, are in
// dataplane/seal/golden_test.cc.
TEST(Wire, PutsEveryFieldAtItsPlace) {
  const std::array<uint8_t, kHeaderBytes> expected = {
      0x02, 0x00, 0x01, 0x48, 0xB1, 0xF1, 0xF2, 0xF3,  // version type flags header_bytes epoch credit_wanted
      0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x00, 0x07,  // flow id
      0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08,  // tx_seq
      0xA1, 0xA2, 0xA3, 0xA4, 0xA5, 0xA6, 0xA7, 0xA8,  // send time
      0x00, 0x00, 0x00, 0x5A, 0xF3, 0x10, 0x7A, 0x40,  // offset
      0xC1, 0xC2, 0xC3, 0xC4, 0x00, 0x00, 0x00, 0x10,  // object, length
      0xD1, 0xD2, 0xD3, 0xD4, 0xD5, 0xD6, 0xD7, 0xD8,  // done_seen, statuses_heard
      0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,  // seal
      0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
  };
  std::array<uint8_t, kHeaderBytes> actual;
  actual.fill(0xEE);
  encode(sample(), actual);
  EXPECT_EQ(actual, expected);
}

TEST(Wire, DecodesWhatItEncoded) {
  const auto bytes = datagram(sample());
  Header h;
  ASSERT_EQ(decode(bytes, &h), Reject::kNone);
  EXPECT_EQ(h.flow_id, sample().flow_id);
  EXPECT_EQ(h.tx_seq, sample().tx_seq);
  EXPECT_EQ(h.offset, sample().offset);
  EXPECT_EQ(h.object, sample().object);
  EXPECT_EQ(h.length, sample().length);
  EXPECT_EQ(h.done_seen, sample().done_seen);
  EXPECT_EQ(h.flags, sample().flags);
  EXPECT_EQ(h.key_epoch, sample().key_epoch);
}

// Parity has a block, a number and a digest where others have credit, and echoes of statuses.
TEST(Wire, PutsTheFieldsOfParityAtTheirPlaces) {
  const Header parity{.type = Type::kParity,
                      .flags = kFlagRaptorQ,
                      .offset = 0x0000005AF3100000,
                      .object = 7,
                      .length = 0,
                      .block = 0xB1,
                      .repair_id = 0xE1E2,
                      .block_digest = 0xF1F2F3F4F5F6F7F8};
  const auto bytes = datagram(parity);
  EXPECT_EQ(bytes[5], 0xB1);
  EXPECT_EQ(load_be16(&bytes[6]), 0xE1E2);
  EXPECT_EQ(load_be64(&bytes[48]), 0xF1F2F3F4F5F6F7F8);
  Header h;
  ASSERT_EQ(decode(bytes, &h), Reject::kNone);
  EXPECT_EQ(h.type, Type::kParity);
  EXPECT_EQ(h.flags, kFlagRaptorQ);
  EXPECT_EQ(h.block, parity.block);
  EXPECT_EQ(h.repair_id, parity.repair_id);
  EXPECT_EQ(h.block_digest, parity.block_digest);
  EXPECT_EQ(h.credit_wanted | h.done_seen | h.statuses_heard, 0U);
  auto with_another_flag = bytes;
  with_another_flag[2] = kFlagRepair;
  EXPECT_EQ(decode(with_another_flag, &h), Reject::kReservedNotZero);
}

TEST(Wire, AnEchoTellsOfItsSenderAlone) {
  const Header echo{.type = Type::kEcho,
                    .flow_id = 7,
                    .tx_seq = 9,
                    .send_time_ns = 11,
                    .done_seen = 4,
                    .statuses_heard = 42};
  Header h;
  ASSERT_EQ(decode(datagram(echo), &h), Reject::kNone);
  EXPECT_EQ(h.type, Type::kEcho);
  EXPECT_EQ(h.done_seen, 4U);
  EXPECT_EQ(h.statuses_heard, 42U);
  Header reflected = echo;
  reflected.flags = kFlagReflected;
  EXPECT_EQ(decode(datagram(reflected), &h), Reject::kReservedNotZero);
  reflected.done_seen = reflected.statuses_heard = 0;
  EXPECT_EQ(decode(datagram(reflected), &h), Reject::kNone);
  for (const auto change :
       {+[](Header& one) { one.offset = 1; }, +[](Header& one) { one.object = 1; },
        +[](Header& one) { one.credit_wanted = 1; }, +[](Header& one) { one.flags = 2; }}) {
    Header other = echo;
    change(other);
    EXPECT_EQ(decode(datagram(other), &h), Reject::kReservedNotZero);
  }
}

TEST(Wire, RefusesEveryTruncation) {
  const auto bytes = datagram(sample());
  for (size_t n = 0; n < bytes.size(); ++n) {
    Header h;
    EXPECT_EQ(decode(std::span(bytes).first(n), &h),
              n < kHeaderBytes ? Reject::kTooShort : Reject::kBadLength);
  }
}

TEST(Wire, RefusesWhatItDoesNotKnow) {
  const auto refused = [](size_t at, uint8_t value) {
    auto bytes = datagram(sample());
    bytes[at] = value;
    Header h;
    return decode(bytes, &h);
  };
  EXPECT_EQ(refused(0, 1), Reject::kBadVersion);
  EXPECT_EQ(refused(1, 5), Reject::kBadType);
  EXPECT_EQ(refused(2, 0x80), Reject::kBadType);
  EXPECT_EQ(refused(3, 64), Reject::kBadHeaderLength);
}

}  // namespace
}  // namespace sluice::wire
