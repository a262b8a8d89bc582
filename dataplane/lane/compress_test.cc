// Extents that travel compressed between two workers: they arrive as they were, whatever is lost; two
// compressions of one extent are never put together; what cannot be restored comes again, plain.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "dataplane/coding/compressible_for_test.h"
#include "dataplane/coding/zstd_frame.h"
#include "dataplane/core/compressed.h"
#include "dataplane/lane/lane_fixture_for_test.h"

namespace sluice::lane::testing {
namespace {

constexpr uint32_t kChunk = 1024;
constexpr uint64_t kSlowBps = 500'000'000;

std::optional<wire::Header> header_of(std::span<const uint8_t> frame) {
  wire::Header header;
  if (frame.size() <= kUdpAt || wire::decode(frame.subspan(kUdpAt), &header) != wire::Reject::kNone)
    return std::nullopt;
  return header;
}

class Compressed : public Lane {
 protected:
  void begin(uint64_t bytes, board::Compress compress = board::Compress::kAlways, bool text = true) {
    data_ = make_source(bytes);
    if (text) {
      data_ = coding::compressible_bytes(bytes, 5);
      const int fd = a_.objects.find(0, 0)->fd.get();
      ASSERT_EQ(::pwrite(fd, data_.data(), bytes, 0), static_cast<ssize_t>(bytes));
    }
    bytes_ = bytes;
    open_flows(crc_, kChunk);
    a_.board().flows[kTxSlot].config.choice.compress = b_.board().flows[kRxSlot].config.choice.compress =
        compress;
    a_.board().flows[kTxSlot].control.rate_bps = kSlowBps;
  }
  void expect_compressed() {
    expect_identical(data_);
    const uint64_t plain = tx().compressed_bytes.load();
    EXPECT_GT(plain, bytes_ / 2);
    EXPECT_LT(tx().compressed_wire_bytes.load(), plain / 2);
    EXPECT_EQ(rx().compressed_bytes.load(), plain);
    EXPECT_EQ(rx().compressed_wire_bytes.load(), tx().compressed_wire_bytes.load());
    EXPECT_EQ(b_.counter(Counter::rx_false_compressed), 0U);
    expect_counters_add_up(b_);
  }
  const board::FlowState& tx() { return a_.board().flows[kTxSlot].state; }
  const board::FlowState& rx() { return b_.board().flows[kRxSlot].state; }

  std::vector<uint8_t> data_;
};

TEST_F(Compressed, ArrivesAsItWas) {
  begin(20 * kExtentBytes + 12'345);
  transfer(bytes_, {}, true);
  expect_compressed();
  EXPECT_LT(tx().bytes.load(), bytes_ / 2);
  run_steps(1000);  // until the last status has come
  EXPECT_EQ(tx().bytes_done.load(), bytes_) << "what is done counts as it lies in the file";
  close_flows();
}

TEST_F(Compressed, ArrivesEncipheredAndUnderTheOtherCrc) {
  protection_ = wire::Protection::kAes128Gcm;
  crc_ = wire::CrcKind::kCrc32c;
  begin(20 * kExtentBytes);
  transfer(bytes_, {.loss = 0.02, .duplicate = 0.01, .reorder = 0.02}, true);
  expect_compressed();
}

TEST_F(Compressed, ArrivesInAFileInMemory) {
  in_memory_ = true;
  begin(20 * kExtentBytes + 999);
  transfer(bytes_, {.loss = 0.02}, true);
  expect_compressed();
  close_flows();
}

TEST_F(Compressed, WhatIsLostComesAgainByGaps) {
  begin(20 * kExtentBytes);
  transfer(bytes_, {.loss = 0.1, .duplicate = 0.05, .reorder = 0.1}, true);
  expect_compressed();
  EXPECT_GT(tx().retransmitted_chunks.load(), 0U);
  close_flows();
}

// Nobody tells gaps: NEED alone.
TEST_F(Compressed, WhatIsLostComesAgainByNeed) {
  begin(8 * kExtentBytes);
  transfer(bytes_, {.loss = 0.3, .to_sender_too = false}, false, 2'000'000);
  expect_identical(data_);
  EXPECT_GT(tx().repaired_chunks.load(), 0U);
  EXPECT_GT(rx().compressed_bytes.load(), 0U);
  EXPECT_EQ(b_.counter(Counter::rx_false_compressed), 0U);
  close_flows();
}

TEST_F(Compressed, RepairSymbolsAreOfWhatTravels) {
  begin(40 * kExtentBytes);
  repair_ahead();
  transfer(bytes_, {.loss = 0.05}, true);
  expect_compressed();
  EXPECT_GT(rx().decoded_chunks.load(), 0U);
}

TEST_F(Compressed, DataThatDoNotGetShorterTravelPlain) {
  begin(20 * kExtentBytes, board::Compress::kAlways, false);
  transfer(bytes_, {.loss = 0.01}, true);
  expect_identical(data_);
  EXPECT_EQ(tx().compressed_bytes.load(), 0U);
  EXPECT_EQ(tx().bytes.load(), bytes_);
}

TEST_F(Compressed, WhereTheNetworkIsFastNothingIsCompressed) {
  begin(20 * kExtentBytes, board::Compress::kWhereItPays);
  a_.board().flows[kTxSlot].control.rate_bps = 20'000'000'000;
  transfer(bytes_, {}, true);
  expect_identical(data_);
  EXPECT_EQ(tx().compressed_bytes.load(), 0U);
}

TEST_F(Compressed, WhereTheNetworkIsSlowAutoCompresses) {
  begin(20 * kExtentBytes, board::Compress::kWhereItPays);
  transfer(bytes_, {}, true);
  expect_compressed();
}

TEST_F(Compressed, AFlowThatDidNotAgreeTakesNothingCompressed) {
  begin(4 * kExtentBytes);
  b_.board().flows[kRxSlot].config.choice.compress = board::Compress::kOff;
  feed();
  run_steps(3000);
  EXPECT_EQ(rx().chunks.load(), 0U);
  EXPECT_GT(b_.counter(Counter::rx_drop_bad_type), 0U);
}

// One chunk of each compressed extent says something else, under a right CRC, until the extents are asked for
// again.
class FalseCompression : public Compressed {
 protected:
  // `change` may do what it likes with the payload of a compressed chunk.
  void falsify(std::function<bool(const wire::Header&, std::span<uint8_t>)> change) {
    on_the_way = [this, change = std::move(change)](Frame& frame, bool from_a) {
      const auto header = header_of(frame);
      if (!from_a || !header || header->type != wire::Type::kData ||
          (header->flags & wire::kFlagCompressed) == 0)
        return true;
      const std::span<uint8_t> datagram(frame.data() + kUdpAt, frame.size() - kUdpAt);
      if (!change(*header, datagram.subspan(wire::kHeaderBytes))) return true;
      Tap tap;
      const std::vector<uint8_t> payload(datagram.begin() + wire::kHeaderBytes, datagram.end());
      tap.seal(crc_).seal(*header, payload,
                          std::span<uint8_t, wire::kHeaderBytes>(datagram.data(), wire::kHeaderBytes),
                          datagram.data() + wire::kHeaderBytes);
      seal::FlowSeal::publish();
      ++changed_;
      return true;
    };
  }
  // As the sender could send it.
  void send_to_b(wire::Header header, std::span<const uint8_t> payload) {
    const net::FrameTemplate front(net::Address::of(a_.port.info().ip4), 47000,
                                   net::Address::of(b_.port.info().ip4), 47000);
    Frame frame(front.bytes() + wire::kHeaderBytes + payload.size());
    front.write(frame.data(), static_cast<uint32_t>(wire::kHeaderBytes + payload.size()));
    uint8_t* const at = frame.data() + front.bytes();
    Tap tap;
    tap.seal(crc_).seal(header, payload, std::span<uint8_t, wire::kHeaderBytes>(at, wire::kHeaderBytes),
                        at + wire::kHeaderBytes);
    seal::FlowSeal::publish();
    b_.port.frames().arrived.push_back(std::move(frame));
    run_steps(2);
  }

  uint64_t changed_ = 0;
};

TEST_F(FalseCompression, AFrameThatIsNoneIsCountedAndTheExtentComesPlain) {
  begin(8 * kExtentBytes);
  falsify([](const wire::Header& h, std::span<uint8_t> payload) {
    if (h.offset % kExtentBytes != 2 * kChunk) return false;
    for (uint8_t& byte : payload.subspan(wire::kCompressedHeadBytes)) byte ^= 0x5A;
    return true;
  });
  transfer(bytes_, {}, true, 2'000'000);
  expect_identical(data_);
  EXPECT_EQ(b_.counter(Counter::rx_false_compressed), 8U);
  EXPECT_EQ(rx().compressed_bytes.load(), 0U);
  close_flows();
}

// The frame is one, and holds what is none of the file's.
TEST_F(FalseCompression, AnotherDigestIsFoundBeforeAByteIsWritten) {
  begin(8 * kExtentBytes);
  falsify([](const wire::Header&, std::span<uint8_t> payload) {
    payload[15] ^= 1;  // of plain_digest
    return true;
  });
  transfer(bytes_, {}, true, 2'000'000);
  expect_identical(data_);
  EXPECT_EQ(b_.counter(Counter::rx_false_compressed), 8U);
}

// Some chunks say that they are of another compression. Without it there are too few; with it there never are
// enough.
TEST_F(FalseCompression, TwoCompressionsAreNeverPutTogether) {
  begin(8 * kExtentBytes);
  falsify([this](const wire::Header& h, std::span<uint8_t> payload) {
    if (changed_ >= 20 || h.offset / kChunk % 3 != 1) return false;
    payload[7] ^= 1;  // of frame_crc
    return true;
  });
  transfer(bytes_, {}, true, 2'000'000);
  expect_identical(data_);
  EXPECT_GT(changed_, 0U);
  EXPECT_EQ(b_.counter(Counter::rx_false_compressed), 0U);
}

// Lengths that cannot be, and a codec that nobody has.
TEST_F(FalseCompression, AHeadThatCannotBeIsDropped) {
  for (const uint32_t form : {0U, 1U, 2U, 3U}) {
    SCOPED_TRACE(form);
    std::array<uint8_t, kChunk> payload{};
    wire::CompressedHead head{.wire_bytes = 10 * kChunk};
    if (form == 0) head.wire_bytes = kExtentBytes;      // not shorter
    if (form == 1) head.wire_bytes = 0;                 // nothing
    if (form == 2) head.wire_bytes = 10 * kChunk + 16;  // a chunk without a piece
    wire::put_head(head, payload.data());
    if (form == 3) payload[0] = 2;
    if (form == 0) begin(4 * kExtentBytes);
    if (form == 0) run_steps(10);
    const uint64_t before = b_.counter(Counter::rx_drop_out_of_range);
    wire::Header header{.type = wire::Type::kData,
                        .flags = wire::kFlagCompressed,
                        .flow_id = b_.board().flows[kRxSlot].config.flow_id,
                        .tx_seq = form,
                        .send_time_ns = now_ns_,
                        .length = kChunk};
    send_to_b(header, payload);
    EXPECT_EQ(b_.counter(Counter::rx_drop_out_of_range), before + 1);
  }
  EXPECT_EQ(rx().chunks.load(), 0U);
}

}  // namespace
}  // namespace sluice::lane::testing
