// Two whole workers under AES-GCM, and a wire with faults and with somebody on it: what is altered, copied
// or made up costs no more than its loss, and every byte arrives.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "dataplane/lane/lane_fixture_for_test.h"

namespace sluice::lane::testing {
namespace {

constexpr size_t kHeaders = 14 + 20 + 8;  // Ethernet, IPv4, UDP
constexpr uint32_t kSealedChunk = 8192;

bool is_sluice(const Frame& frame) { return frame.size() >= kHeaders + wire::kHeaderBytes && frame[12] == 8; }
wire::Type type_of(const Frame& frame) { return static_cast<wire::Type>(frame[kHeaders + 1]); }

class Enciphered : public Lane, public ::testing::WithParamInterface<wire::Protection> {
 protected:
  Enciphered() { protection_ = GetParam(); }
  void move(uint64_t bytes, const Faults& faults) {
    data_ = make_source(bytes);
    open_flows(crc_, kSealedChunk);
    transfer(bytes, faults, true, 2'000'000);
    expect_identical(data_);
  }
  void end() {
    close_flows();
    expect_counters_add_up(a_);
    expect_counters_add_up(b_);
  }
  uint64_t repeated() { return a_.board().flows[kTxSlot].state.retransmitted_chunks; }

  std::vector<uint8_t> data_;
};
INSTANTIATE_TEST_SUITE_P(Lane, Enciphered,
                         ::testing::Values(wire::Protection::kAes128Gcm, wire::Protection::kAes256Gcm),
                         [](const auto& each) {
                           return std::string(each.param == wire::Protection::kAes128Gcm ? "Aes128"
                                                                                         : "Aes256");
                         });

TEST_P(Enciphered, MovesAFileOverACleanWireWithoutRepeatingAnything) {
  move(3'000'001, {});
  EXPECT_EQ(repeated(), 0U);
  end();
}

TEST_P(Enciphered, EveryFaultAtOnce) {
  move(6'000'000, {.loss = 0.05, .duplicate = 0.05, .corrupt = 0.05, .reorder = 0.2});
  EXPECT_GT(b_.counter(Counter::rx_drop_forged), 0U);
  EXPECT_GT(b_.counter(Counter::rx_drop_replayed), 0U);
  EXPECT_EQ(b_.counter(Counter::rx_drop_crc), 0U);
  end();
}

TEST_P(Enciphered, FilesInMemory) {
  in_memory_ = true;
  move(3'000'001, {.loss = 0.05, .duplicate = 0.05, .corrupt = 0.05, .reorder = 0.2});
  end();
}

TEST_P(Enciphered, PayloadsOfADeviceThatCopies) {
  a_.port.frames().let_caller_copy();
  b_.port.frames().let_caller_copy();
  move(3'000'001, {.loss = 0.02, .reorder = 0.05});
  end();
}

TEST_P(Enciphered, NothingOfAFileIsInTheClear) {
  uint64_t looked = 0;
  on_the_way = [&](Frame& frame, bool from_a) {
    if (!from_a || !is_sluice(frame) || type_of(frame) != wire::Type::kData) return true;
    const std::span payload = std::span(frame).subspan(kHeaders + wire::kHeaderBytes);
    const uint64_t offset = wire::load_be64(&frame[kHeaders + 32]);
    EXPECT_FALSE(std::equal(payload.begin(), payload.end(), data_.begin() + static_cast<ptrdiff_t>(offset)));
    ++looked;
    return true;
  };
  move(500'000, {});
  EXPECT_GT(looked, 60U);
}

// Each datagram is altered once on its way, anywhere behind its flow: as if it had been lost.
TEST_P(Enciphered, WhatIsAlteredCostsItsLossAndMovesNothing) {
  uint64_t altered = 0;
  uint64_t data = 0;
  on_the_way = [&](Frame& frame, bool from_a) {
    if (!is_sluice(frame) || random_() % 20 != 0) return true;
    const size_t at = kHeaders + 16 + random_() % (frame.size() - kHeaders - 16);
    frame[at] ^= static_cast<uint8_t>(1U << (random_() % 8));
    ++altered;
    data += from_a && type_of(frame) == wire::Type::kData ? 1 : 0;
    return true;
  };
  move(4'000'000, {});
  EXPECT_GT(altered, 20U);
  EXPECT_LE(repeated(), data) << "one repetition for one loss at most";
  EXPECT_EQ(b_.counter(Counter::rx_window_restarts), 0U);
  EXPECT_EQ(a_.board().flows[kTxSlot].state.peer_crc_errors, 0U);
  on_the_way = nullptr;
  end();
}

// Everything is said again by somebody, some of it much later: nothing is taken twice.
TEST_P(Enciphered, CopiesAreDroppedBeforeTheyAreOpened) {
  std::deque<Frame> kept;
  uint64_t copies = 0;
  on_the_way = [&](Frame& frame, bool from_a) {
    if (!is_sluice(frame)) return true;
    auto& arrived = (from_a ? b_ : a_).port.frames().arrived;
    arrived.push_back(frame);  // the true one; the copy goes on
    ++copies;
    if (from_a) kept.push_back(frame);
    if (kept.size() > 50) {
      b_.port.frames().arrived.push_back(kept.front());
      ++copies;
      kept.pop_front();
    }
    return true;
  };
  move(2'000'000, {});
  on_the_way = nullptr;
  run_steps(100);
  EXPECT_EQ(a_.counter(Counter::rx_drop_replayed) + b_.counter(Counter::rx_drop_replayed), copies);
  EXPECT_EQ(b_.board().flows[kRxSlot].state.duplicate_chunks, 0U);
  EXPECT_EQ(repeated(), 0U);
  end();
}

// Data that are older than the window, in any number, do not move it.
TEST_P(Enciphered, OldDataDoNotRestartTheWindow) {
  std::vector<Frame> first;
  on_the_way = [&](Frame& frame, bool from_a) {
    if (from_a && is_sluice(frame) && type_of(frame) == wire::Type::kData && first.size() < 100) {
      first.push_back(frame);
      return first.size() % 2 == 0;  // half of them never came
    }
    return true;
  };
  move(2'000'000, {});
  on_the_way = nullptr;
  const uint64_t end_before = b_.board().flows[kRxSlot].state.highest_data_end;
  for (const Frame& frame : first) b_.port.frames().arrived.push_back(frame);
  run_steps(10);
  EXPECT_EQ(b_.counter(Counter::rx_window_restarts), 0U);
  EXPECT_EQ(b_.board().flows[kRxSlot].state.highest_data_end, end_before);
  end();
}

// A stranger who knows all but the keys: names, numbers, addresses.
TEST_P(Enciphered, AStrangersDatagramsChangeNothing) {
  Tap stranger(GetParam(), seal::Secret{99});
  uint64_t made_up = 0;
  on_the_way = [&](Frame& frame, bool from_a) {
    if (!is_sluice(frame) || random_() % 5 != 0) return true;
    wire::Header header;
    const std::span datagram = std::span(frame).subspan(kHeaders);
    if (wire::decode(datagram, &header) != wire::Reject::kNone) return true;
    header.tx_seq += random_() % 400;
    if (header.type == wire::Type::kProbe) header.offset += random_() % 400;
    Frame forged = frame;
    const std::vector<uint8_t> payload(header.length, 0x5A);
    stranger.seal().seal(header, payload,
                         std::span<uint8_t, wire::kHeaderBytes>(forged.data() + kHeaders, wire::kHeaderBytes),
                         forged.data() + kHeaders + wire::kHeaderBytes);
    (from_a ? b_ : a_).port.frames().arrived.push_back(forged);
    ++made_up;
    return true;
  };
  move(4'000'000, {});
  on_the_way = nullptr;
  run_steps(100);
  EXPECT_GT(made_up, 100U);
  EXPECT_EQ(a_.counter(Counter::rx_drop_forged) + b_.counter(Counter::rx_drop_forged) +
                a_.counter(Counter::rx_drop_replayed) + b_.counter(Counter::rx_drop_replayed),
            made_up);
  EXPECT_EQ(repeated(), 0U);
  EXPECT_EQ(a_.board().flows[kTxSlot].state.network_lost, 0U);
  end();
}

// Keys of 64 datagrams each: hundreds of epochs, data sent again under later keys, and what is late under
// earlier ones.
TEST_P(Enciphered, GoesOnOverManyEpochs) {
  a_.shared.key_epoch_bits = b_.shared.key_epoch_bits = 6;
  std::deque<std::pair<int, Frame>> late;
  int now = 0;
  on_the_way = [&](Frame& frame, bool from_a) {
    ++now;
    if (!from_a || !is_sluice(frame)) return true;
    if (!late.empty() && late.front().first < now) {
      b_.port.frames().arrived.push_back(late.front().second);
      late.pop_front();
    }
    if (random_() % 10 != 0) return true;
    late.emplace_back(now + 40, frame);
    return false;
  };
  data_ = make_source(12'000'000);
  open_flows(crc_, 512);
  transfer(data_.size(), {.loss = 0.02}, true, 2'000'000);
  expect_identical(data_);
  EXPECT_GT(b_.board().flows[kRxSlot].state.highest_data_end >> 6, 300U);
  on_the_way = nullptr;
  end();
}

TEST_F(Lane, AFlowWithoutKeysDoesNotOpen) {
  make_source(100'000);
  open_flows(crc_, kSealedChunk);
  const uint32_t tag = a_.board().flows[kTxSlot].config.tag;
  FlowSecret taken;
  ASSERT_TRUE(a_.keys.take(kTxSlot, tag, &taken));
  a_.give_keys(kTxSlot, tag + 1);  // of another flow
  a_.step(now_ns_);
  board::Event event;
  ASSERT_TRUE(a_.board().workers[0].events.pop(&event));
  EXPECT_EQ(event.kind, board::EventKind::kFlowOpened);
  EXPECT_EQ(event.value, static_cast<uint64_t>(ENOKEY));
}

TEST_F(Lane, StatusesAndProbesUnderCrcAreOfTheirPeer) {
  const auto data = make_source(2'000'000);
  on_the_way = [&](Frame& frame, bool from_a) {
    if (!is_sluice(frame) || type_of(frame) == wire::Type::kData) return true;
    Frame altered = frame;
    altered[kHeaders + 24 + 7] ^= 1;  // send_time
    (from_a ? b_ : a_).port.frames().arrived.push_back(altered);
    return true;
  };
  open_flows(crc_, kSealedChunk);
  transfer(data.size(), {}, true);
  expect_identical(data);
  EXPECT_GT(a_.counter(Counter::rx_drop_forged), 10U);
  EXPECT_EQ(a_.counter(Counter::rx_drop_replayed), 0U);
}

}  // namespace
}  // namespace sluice::lane::testing
