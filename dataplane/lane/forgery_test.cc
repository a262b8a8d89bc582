// Data or a probe that is false in one field is counted, and the transfer goes on by the next true ones.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "dataplane/lane/forgery_for_test.h"

namespace sluice::lane::testing {
namespace {

TEST_F(Forgery, NumberOfADatum) {
  begin();
  const std::vector<uint8_t> payload(data_.begin(), data_.begin() + kChunk);
  for (const uint64_t seq : {kFar, uint64_t{UINT64_MAX}, SeqWindow::kSeqEnd - 1}) {
    wire::Header header = true_header(wire::Type::kData);
    header.tx_seq = seq;
    forge(header, payload);
    forge(header, payload);  // and its copy
    transfer(written_ + 2 * kExtentBytes);
  }
  EXPECT_EQ(b_.counter(Counter::rx_drop_far_tx_seq), 6U);
  expect_mended();
  EXPECT_EQ(b_.counter(Counter::rx_window_restarts), 0U);
}

// The true chunk that has this number is not lost by it.
TEST_F(Forgery, NumberThatIsTheNextOnes) {
  begin();
  wire::Header header = true_header(wire::Type::kData);
  header.object = 55;  // which is not open
  for (uint64_t i = 0; i < 10; ++i) {
    header.tx_seq = b_.board().flows[kRxSlot].state.highest_data_end + i;
    forge(header, std::vector<uint8_t>(kChunk));
  }
  transfer(written_ + 2 * kExtentBytes);
  EXPECT_EQ(b_.counter(Counter::rx_drop_unknown_object), 10U);
  expect_mended();
}

// Two that agree move the window; when nothing else comes than what is old by that, it goes back.
TEST_F(Forgery, NumbersOfTwoData) {
  begin();
  detects_ = false;  // the detector takes all before the false ones for settled
  wire::Header header = true_header(wire::Type::kData);
  const std::vector<uint8_t> payload(data_.begin(), data_.begin() + kChunk);
  for (header.tx_seq = kFar; header.tx_seq < kFar + 2; ++header.tx_seq) forge(header, payload);
  transfer(written_ + 10 * kExtentBytes);
  EXPECT_EQ(b_.counter(Counter::rx_window_restarts), 1U);
  transfer(data_.size());
  expect_identical(data_);
}

TEST_F(Forgery, SendTimeOfADatum) {
  begin();
  const std::vector<uint8_t> payload(data_.begin(), data_.begin() + kChunk);
  for (const uint64_t time_ns : {uint64_t{1}, now_ns_ + kFar, uint64_t{UINT64_MAX}}) {
    wire::Header header = true_header(wire::Type::kData);
    header.send_time_ns = time_ns;
    forge(header, payload);
    transfer(written_ + 2 * kExtentBytes);
  }
  EXPECT_LT(a_.board().flows[kTxSlot].state.rtt_ns, 10'000'000U);
  expect_mended();
}

TEST_F(Forgery, PlaceAndLengthOfADatum) {
  begin();
  wire::Header header = true_header(wire::Type::kData);
  for (const uint64_t offset : {uint64_t{1}, kFar, uint64_t{UINT64_MAX}}) {
    header.offset = offset;
    forge(header, std::vector<uint8_t>(kChunk));
  }
  header.offset = 0;
  forge(header, std::vector<uint8_t>(kChunk - 4));
  forge(header);
  step_alone();
  EXPECT_EQ(b_.counter(Counter::rx_drop_out_of_range), 5U);
  expect_mended();
}

// The receiver would not list again what the sender has never heard of.
TEST_F(Forgery, DoneSeenOfADatumOrAProbe) {
  begin();
  for (const auto type : {wire::Type::kData, wire::Type::kProbe}) {
    for (const uint32_t done_seen : {0U, UINT32_MAX, 0x8000'0000U}) {
      const std::vector<uint8_t> payload(data_.begin(), data_.begin() + kChunk);
      wire::Header header = true_header(type);
      header.done_seen = done_seen;
      forge(header,
            type == wire::Type::kData ? std::span<const uint8_t>(payload) : std::span<const uint8_t>());
      transfer(written_ + kExtentBytes);
    }
    for (int i = 0; i < 200; ++i) {  // whatever was completed just now
      wire::Header header = true_header(wire::Type::kProbe);
      header.done_seen = static_cast<uint32_t>(b_.board().flows[kRxSlot].state.extents_done);
      forge(header);
      feed();
      step_alone();
      handle_events();
    }
  }
  EXPECT_GT(b_.counter(Counter::rx_false_done_seen), 0U);
  expect_mended();
}

TEST_F(Forgery, NumberOfAProbe) {
  begin();
  for (const uint64_t seq : {uint64_t{100'000}, uint64_t{1} << 20, uint64_t{1} << 22}) {
    wire::Header header = true_header(wire::Type::kProbe);
    header.tx_seq = seq;
    forge(header);
    transfer(written_ + 2 * kExtentBytes);
  }
  EXPECT_EQ(b_.counter(Counter::rx_far_probes), 3U);
  EXPECT_LT(b_.board().flows[kRxSlot].state.probe_end, 100'000U);
  expect_mended();
}

TEST_F(Forgery, FieldsThatATypeDoesNotUse) {
  begin();
  wire::Header probe = true_header(wire::Type::kProbe);
  probe.object = 1;
  forge(probe);
  probe = true_header(wire::Type::kProbe);
  probe.flags = wire::kFlagRepair;
  forge(probe);
  Frame frame = frame_of(a_, b_, true_header(wire::Type::kProbe), {});
  frame[frame.size() - wire::kHeaderBytes + 4] = 1;  // key_epoch
  b_.port.frames().arrived.push_back(frame);
  step_alone();
  EXPECT_EQ(b_.counter(Counter::rx_drop_reserved_not_zero), 2U);
  EXPECT_EQ(b_.counter(Counter::rx_drop_bad_key_epoch), 1U);
  expect_mended();
}

// ---- what honest peers do ----------------------------------------------------------------------

// All data of a while are lost, and then nothing but probes and retransmissions can come.
TEST_F(Forgery, AnHonestLeapIsBelieved) {
  data_ = make_source(40 * kExtentBytes);
  open_flows(crc_, 256);
  a_.board().flows[kTxSlot].control.rate_bps = 2'000'000'000;
  transfer(10 * kExtentBytes);
  for (int i = 0; i < 1000; ++i) {
    feed();
    step_alone();
    b_.port.frames().arrived.clear();
  }
  expect_mended(1);
}

TEST_F(Forgery, RepeatsToASilentSenderBecomeRare) {
  begin();
  transfer(data_.size());
  run_steps(3000);
  const auto& statuses = b_.board().flows[kRxSlot].state.statuses;
  b_.board().flows[kRxSlot].control.settled_below = 0;
  // The sender has taken all, and never says so, as it has nothing to send.
  const uint64_t before = statuses;
  run_steps(50'000);  // a second
  EXPECT_LE(statuses - before, 120U);
  EXPECT_GE(statuses - before, 80U);
}

}  // namespace
}  // namespace sluice::lane::testing
