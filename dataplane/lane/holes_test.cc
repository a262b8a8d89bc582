// Where most is lost, the receiver tells which chunks its extents still miss, and the sender repeats those.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "dataplane/core/status.h"
#include "dataplane/lane/lane_fixture_for_test.h"

namespace sluice::lane::testing {
namespace {

constexpr uint32_t kSmallChunk = 512;
constexpr uint32_t kChunks = kExtentBytes / kSmallChunk;
constexpr size_t kBeforeUdp = 14 + 20 + 8;  // Ethernet, IPv4, UDP

class Holes : public Lane {
 protected:
  // Extents and chunks that never arrive.
  using Lost = std::function<bool(uint64_t extent, uint64_t chunk)>;

  void begin(uint64_t extents, Lost lost) {
    data_ = make_source(extents * kExtentBytes);
    bytes_ = data_.size();
    open_flows(wire::CrcKind::kCrc64Ecma, kSmallChunk);
    a_.board().flows[kTxSlot].config.expected_loss_percent = 25;
    a_.board().flows[kTxSlot].control.rate_bps = 1'000'000'000;
    on_the_way = [this, lost = std::move(lost)](Frame& frame, bool from_a) {
      wire::Header header;
      const std::span datagram(frame.data() + kBeforeUdp, frame.size() - kBeforeUdp);
      if (frame.size() <= kBeforeUdp || wire::decode(datagram, &header) != wire::Reject::kNone) return true;
      if (!from_a) return see_status(header, datagram);
      if (header.type != wire::Type::kData) return true;
      const uint64_t chunk = header.offset / kSmallChunk;
      ++sent_[chunk];
      order_.push_back(chunk);
      return !lost(chunk / kChunks, chunk % kChunks);
    };
    feed();
    step_some(100);
  }
  bool see_status(const wire::Header& header, std::span<const uint8_t> datagram) {
    wire::Status status;
    if (header.type != wire::Type::kStatus) return true;
    const auto payload = tap_.open(header, datagram);
    EXPECT_TRUE(payload && wire::decode_status(*payload, &status));
    holes_told_ += status.holes_count;
    return true;
  }
  // Without NEED, and without gaps.
  void step_some(uint32_t milliseconds) {
    for (uint64_t i = 0; i < milliseconds * 1'000'000 / kStepNs; ++i) step_alone();
  }
  // How often chunks were sent in so many milliseconds.
  std::map<uint64_t, uint64_t> sends_of(uint32_t milliseconds) {
    sent_.clear();
    step_some(milliseconds);
    return sent_;
  }

  std::vector<uint8_t> data_;
  std::map<uint64_t, uint64_t> sent_;
  std::vector<uint64_t> order_;  // of chunks, as they left
  uint64_t holes_told_ = 0;
  Tap tap_;
};

TEST_F(Holes, WhatIsGivenUpIsNotHeldAlsoWhileItIsClosed) {
  begin(3, [](uint64_t, uint64_t chunk) { return chunk % 3 == 1; });
  std::unique_ptr<Object> object = b_.objects.retract(0, 0);
  ASSERT_GT(object->extents_in_use.load(), 0U);
  b_.command({.kind = board::CommandKind::kGiveUp, .flow = kRxSlot, .length = bytes_});
  step_some(1);
  EXPECT_EQ(object->extents_in_use.load(), 0U);
  ASSERT_TRUE(b_.objects.publish(std::move(object)));
}

TEST_F(Holes, WhatStillComesOfWhatIsGivenUpIsNotTaken) {
  begin(3, [](uint64_t, uint64_t chunk) { return chunk % 3 == 1; });
  b_.command({.kind = board::CommandKind::kGiveUp, .flow = kRxSlot, .length = bytes_});
  on_the_way = nullptr;
  step_some(50);
  EXPECT_EQ(b_.objects.find(0, 0)->extents_in_use.load(), 0U);
  EXPECT_EQ(written_, 0U);
}

// Control may cut the file to its size only when nothing of it is on its way to the disk any more.
TEST_F(Holes, WhoGivesUpSaysWhatIsBeingWrittenStill) {
  const auto still_writing = [this](uint32_t tag) {
    b_.command({.kind = board::CommandKind::kGiveUp, .flow = kRxSlot, .tag = tag, .length = bytes_});
    step_some(1);
    board::Event e;
    while (b_.board().workers[0].events.pop(&e)) {
      if (e.kind == board::EventKind::kGivenUp && e.tag == tag) return e.length;
    }
    ADD_FAILURE() << "no answer";
    return uint64_t{0};
  };
  b_.disk().hold();
  begin(3, [](uint64_t extent, uint64_t chunk) { return extent == 2 && chunk == 0; });
  ASSERT_EQ(b_.disk().held(), 2U);
  EXPECT_EQ(still_writing(7), 2 * kExtentBytes);
  b_.disk().let_go();
  step_some(1);
  EXPECT_EQ(still_writing(8), 0U);
  EXPECT_EQ(b_.objects.find(0, 0)->extents_in_use.load(), 0U);
}

TEST_F(Holes, OnlyWhatIsMissingIsRepeated) {
  begin(3, [](uint64_t, uint64_t chunk) { return chunk % 3 == 1; });
  EXPECT_GT(holes_told_, 0U);
  const auto sends = sends_of(50);
  EXPECT_GT(sends.size(), 30U);
  for (const auto& [chunk, times] : sends) EXPECT_EQ(chunk % kChunks % 3, 1U) << chunk << " " << times;
  on_the_way = nullptr;
  for (int i = 0; i < 5000 && written_ < bytes_; ++i) {
    step_alone();
    handle_events();
  }
  expect_identical(data_);
}

// Its one chunk leaves several times before the many of the others leave once more.
TEST_F(Holes, TheExtentThatMissesLeastComesFirst) {
  begin(3, [](uint64_t extent, uint64_t chunk) { return extent == 1 ? chunk == 7 : chunk % 2 == 1; });
  order_.clear();
  step_some(50);
  const auto rare = [](uint64_t chunk) { return chunk == kChunks + 7; };
  size_t times = 0;
  for (auto at = order_.begin(); (at = std::find_if(at, order_.end(), rare)) != order_.end(); ++times) {
    const auto end = std::find_if_not(at, order_.end(), rare);
    if (at != order_.begin() && end != order_.end()) {
      EXPECT_GE(end - at, 5);
    }
    at = end;
  }
  EXPECT_GE(times, 3U);
}

TEST_F(Holes, AreNotToldWhereLittleIsLost) {
  begin(8, [](uint64_t, uint64_t chunk) { return chunk % 20 == 0; });
  EXPECT_EQ(holes_told_, 0U);
}

// A chunk of which a copy came before the others were found lost is not sent again.
TEST_F(Holes, WhatCameMeanwhileIsNotSentForAGap) {
  begin(3, [](uint64_t, uint64_t chunk) { return chunk % 3 == 1; });
  auto& slot = b_.board().flows[kRxSlot];
  const uint64_t end = slot.state.highest_data_end;
  // Control at the destination says that all was lost that was sent at first.
  sent_.clear();
  ASSERT_TRUE(slot.gaps.push({0, std::min<uint64_t>(end, 3 * kChunks)}));
  step_some(50);
  EXPECT_GT(a_.board().flows[kTxSlot].state.gaps_reported, 0U);
  for (const auto& [chunk, times] : sent_) EXPECT_EQ(chunk % kChunks % 3, 1U) << chunk << " " << times;
}

}  // namespace
}  // namespace sluice::lane::testing
