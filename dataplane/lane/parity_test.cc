// Repair symbols between two workers: a lost chunk is made of them, what is false is found out, and nothing
// depends on them.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>

#include "dataplane/coding/block_code.h"
#include "dataplane/lane/lane_fixture_for_test.h"

namespace sluice::lane::testing {
namespace {

constexpr uint32_t kSmall = 512;
constexpr uint32_t kChunksOfExtent = kExtentBytes / kSmall;
constexpr size_t kArpBytes = 60;  // which a sender needs before it sends anything

class Parity : public Lane {
 protected:
  void begin(uint8_t codes, uint64_t bytes, uint8_t expected_loss_percent = 5,
             uint32_t chunk_bytes = kSmall) {
    data_ = make_source(bytes);
    bytes_ = bytes;
    open_flows(wire::CrcKind::kCrc64Ecma, chunk_bytes);
    a_.board().flows[kTxSlot].config.codes = b_.board().flows[kRxSlot].config.codes = codes;
    a_.board().flows[kTxSlot].config.choice.parity = board::Parity::kWhereLost;
    a_.board().flows[kTxSlot].config.expected_loss_percent = expected_loss_percent;
    a_.board().flows[kTxSlot].control.rate_bps = 1'000'000'000;
  }
  // What becomes of the sender's datagrams. False: one is lost.
  void on_sent(std::function<bool(const wire::Header&)> passes) {
    on_the_way = [passes = std::move(passes)](Frame& frame, bool from_a) {
      wire::Header header;
      if (!from_a || frame.size() <= kUdpAt ||
          wire::decode({frame.data() + kUdpAt, frame.size() - kUdpAt}, &header) != wire::Reject::kNone) {
        return true;
      }
      return passes(header);
    };
  }
  // Without NEED, and without gaps unless they are told.
  void run_until_written(bool tell_gaps, uint32_t steps = 20'000) {
    feed();
    for (uint32_t i = 0; i < steps && written_ < bytes_; ++i) {
      step_alone();
      if (tell_gaps && i % 50 == 0) detect_loss();
      handle_events();
    }
  }
  const board::FlowState& tx() { return a_.board().flows[kTxSlot].state; }
  const board::FlowState& rx() { return b_.board().flows[kRxSlot].state; }

  std::vector<uint8_t> data_;
};

// Both codes, if this build has both.
class ParityOfEachCode : public Parity, public ::testing::WithParamInterface<uint8_t> {
 protected:
  void SetUp() override {
    if (GetParam() == kCodeRaptorQ && !coding::is_built_in(coding::Scheme::kRaptorQ))
      GTEST_SKIP() << "this build does not have RaptorQ";
  }
};
INSTANTIATE_TEST_SUITE_P(Codes, ParityOfEachCode, ::testing::Values(kCodeReedSolomon, kCodeRaptorQ),
                         [](const auto& each) {
                           return std::string(each.param == kCodeRaptorQ ? "RaptorQ" : "ReedSolomon");
                         });

// No gap is told and no NEED asked: nothing but repair symbols can bring back what is lost.
TEST_P(ParityOfEachCode, BringsBackWhatNobodyReportsLost) {
  begin(GetParam(), 5 * kExtentBytes + 20 * kSmall + 100);
  on_sent([](const wire::Header& h) { return h.type != wire::Type::kData || h.offset / kSmall % 37 != 5; });
  run_until_written(false);
  expect_identical(data_);
  EXPECT_GT(tx().parity.load(), 0U);
  EXPECT_GT(rx().decoded_chunks.load(), 10U);
  EXPECT_EQ(tx().retransmitted_chunks.load() + tx().repaired_chunks.load(), 0U);
  expect_counters_add_up(b_);
  close_flows();
}

// The chunk that is shorter than its symbol, and an extent of which it is the only one.
TEST_P(ParityOfEachCode, BringsBackTheLastChunkOfAFile) {
  const uint64_t bytes = GetParam() == kCodeRaptorQ ? kExtentBytes + 100 : kExtentBytes + kSmall + 9;
  begin(GetParam(), bytes, 30);
  on_sent(
      [bytes](const wire::Header& h) { return h.type != wire::Type::kData || h.offset + h.length != bytes; });
  run_until_written(false);
  expect_identical(data_);
  EXPECT_EQ(rx().decoded_chunks.load(), 1U);
}

TEST_P(ParityOfEachCode, BringsBackABurst) {
  begin(GetParam(), 4 * kExtentBytes, 10);
  on_sent([](const wire::Header& h) {
    const uint64_t chunk = h.offset / kSmall % kChunksOfExtent;
    return h.type != wire::Type::kData || chunk < 40 || chunk >= 48;
  });
  run_until_written(false);
  expect_identical(data_);
  EXPECT_EQ(rx().decoded_chunks.load(), 4U * 8);
}

TEST_P(ParityOfEachCode, IsSentOnceMoreUnderAnotherNumberWhenItIsLost) {
  begin(GetParam(), 4 * kExtentBytes);
  std::map<std::pair<uint64_t, uint8_t>, std::vector<uint16_t>> ids;
  on_sent([&ids](const wire::Header& h) {
    if (h.type == wire::Type::kData) return h.offset / kSmall % 64 != 7;
    if (h.type != wire::Type::kParity) return true;
    auto& sent = ids[{h.offset, h.block}];
    EXPECT_EQ(std::count(sent.begin(), sent.end(), h.repair_id), 0) << "a number comes once";
    sent.push_back(h.repair_id);
    return sent.size() > 7;  // all that is sent ahead is lost
  });
  run_until_written(false, 2000);  // until all of it has left
  run_until_written(true);
  expect_identical(data_);
  EXPECT_GT(rx().decoded_chunks.load(), 0U);
  EXPECT_EQ(tx().retransmitted_chunks.load() + tx().repaired_chunks.load(), 0U);
}

TEST_P(ParityOfEachCode, GoesTogetherWithEveryOtherWayOfRepair) {
  begin(GetParam(), 40 * kExtentBytes + 1234, 10);
  transfer(bytes_, {.loss = 0.1, .duplicate = 0.02, .reorder = 0.05}, true);
  expect_identical(data_);
  EXPECT_GT(rx().decoded_chunks.load(), 0U);
  expect_counters_add_up(a_);
  expect_counters_add_up(b_);
  close_flows();
}

TEST_P(ParityOfEachCode, TakesThePlaceOfRepetitionWhereMuchIsLost) {
  begin(GetParam(), 40 * kExtentBytes + 1234, 40);
  transfer(bytes_, {.loss = 0.4}, true);
  expect_identical(data_);
  EXPECT_GT(rx().decoded_chunks.load(), 1000U);
  close_flows();
}

TEST_P(ParityOfEachCode, IsUnderTheCipherOfData) {
  protection_ = wire::Protection::kAes128Gcm;
  begin(GetParam(), 5 * kExtentBytes);
  on_sent([](const wire::Header& h) { return h.type != wire::Type::kData || h.offset / kSmall % 37 != 5; });
  run_until_written(false);
  expect_identical(data_);
  EXPECT_GT(rx().decoded_chunks.load(), 10U);
}

TEST_P(ParityOfEachCode, BringsBackAFileInMemory) {
  in_memory_ = true;
  begin(GetParam(), 5 * kExtentBytes);
  on_sent([](const wire::Header& h) { return h.type != wire::Type::kData || h.offset / kSmall % 37 != 5; });
  run_until_written(false);
  expect_identical(data_);
  EXPECT_GT(rx().decoded_chunks.load(), 10U);
}

// A peer lies: with the right keys, and bytes that are none of the code's. Nothing false is written, it is
// counted, and NEED brings the chunk.
TEST_P(ParityOfEachCode, ThatIsFalseIsNotBelieved) {
  begin(GetParam(), 2 * kExtentBytes);
  const auto tap = std::make_shared<Tap>();
  on_the_way = [tap](Frame& frame, bool from_a) {
    const std::span datagram(frame.data() + kUdpAt, frame.size() - kUdpAt);
    wire::Header header;
    if (!from_a || frame.size() <= kUdpAt || wire::decode(datagram, &header) != wire::Reject::kNone)
      return true;
    if (header.type == wire::Type::kData)
      return header.offset / kSmall % 64 != 7 || (header.flags & wire::kFlagRepair) != 0;
    if (header.type != wire::Type::kParity) return true;
    auto payload = *tap->open(header, datagram);
    payload[header.repair_id % payload.size()] ^= 1;
    tap->seal().seal(header, payload, datagram.first<wire::kHeaderBytes>(),
                     datagram.data() + wire::kHeaderBytes);
    return true;
  };
  feed();
  for (int i = 0; i < 20'000 && written_ < bytes_; ++i) {
    step_alone();
    handle_events();
    (void)ask_for_missing();
  }
  expect_identical(data_);
  EXPECT_GT(b_.counter(Counter::rx_false_parity), 0U);
  EXPECT_EQ(rx().decoded_chunks.load(), 0U);
  EXPECT_GT(tx().repaired_chunks.load(), 0U);
  expect_counters_add_up(b_);
}

TEST_P(ParityOfEachCode, OfAnOpenBlockIsGivenBackWhenTheFlowEnds) {
  begin(GetParam(), 3 * kExtentBytes);
  on_sent([](const wire::Header& h) { return h.type != wire::Type::kData || h.offset / kSmall % 2 != 0; });
  feed();
  for (int i = 0; i < 2000; ++i) {
    step_alone();
    handle_events();
  }
  EXPECT_GT(rx().parity.load(), 0U);
  close_flows();
}

TEST_F(Parity, IsNotSentWhereNothingIsLost) {
  begin(kCodeReedSolomon, 20 * kExtentBytes, 0);
  run_until_written(true);
  expect_identical(data_);
  EXPECT_EQ(tx().parity.load(), 0U);
}

TEST_F(Parity, ThatWasNotAgreedIsDropped) {
  begin(kCodeReedSolomon, 20 * kExtentBytes);
  b_.board().flows[kRxSlot].config.codes = 0;
  // Until some has left the sender does not hear that it is not needed.
  on_the_way = [this](Frame& frame, bool from_a) {
    return from_a || frame.size() <= kArpBytes || tx().parity.load() > 0;
  };
  run_until_written(false);
  expect_identical(data_);
  EXPECT_GT(tx().parity.load(), 0U);
  EXPECT_EQ(b_.counter(Counter::rx_drop_bad_type), tx().parity.load());
  expect_counters_add_up(b_);
}

// Headers as a peer could say them: none is taken that names no block of the object.
TEST_F(Parity, OfNoBlockIsDropped) {
  begin(kCodeReedSolomon, 20 * kExtentBytes);
  bool altered = false;
  const auto tap = std::make_shared<Tap>();
  on_the_way = [&altered, tap](Frame& frame, bool from_a) {
    const std::span datagram(frame.data() + kUdpAt, frame.size() - kUdpAt);
    wire::Header header;
    if (!from_a) return altered || frame.size() <= kArpBytes;
    if (frame.size() <= kUdpAt || wire::decode(datagram, &header) != wire::Reject::kNone) return true;
    if (header.type != wire::Type::kParity) return true;
    const auto payload = *tap->open(header, datagram);
    switch (header.tx_seq % 4) {
      case 0:
        header.block = 200;
        break;
      case 1:
        header.offset += kSmall;
        break;
      case 2:
        header.offset = 1ULL << 60;
        break;
      default:
        header.repair_id = UINT16_MAX;
    }
    altered = true;
    tap->seal().seal(header, payload, datagram.first<wire::kHeaderBytes>(),
                     datagram.data() + wire::kHeaderBytes);
    return true;
  };
  run_until_written(false);
  expect_identical(data_);
  EXPECT_TRUE(altered);
  EXPECT_GT(b_.counter(Counter::rx_drop_out_of_range), 0U);
  expect_counters_add_up(b_);
}

}  // namespace
}  // namespace sluice::lane::testing
