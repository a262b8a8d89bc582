// A transfer between two nodes, in whose middle one side is sent a datagram that is false in one field.
//
// The datagram is right in form, seal, address and flow. Under `crc` a stranger can make such data; all else
// only a peer that lies, for it has the keys. The transfer must go on by the next true datagrams.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include "dataplane/lane/lane_fixture_for_test.h"

namespace sluice::lane::testing {

class Forgery : public Lane {
 protected:
  static constexpr uint64_t kFar = uint64_t{1} << 40;
  static constexpr uint32_t kChunk = 8192;

  // As the other side would send it. The seal is made right.
  Frame frame_of(Side& from, Side& to, wire::Header header, std::span<const uint8_t> payload) {
    header.flow_id = 0xABCDEF0000000000ULL | kRxSlot;
    header.length = static_cast<uint32_t>(payload.size());
    const net::FrameTemplate front(net::Address::of(from.port.info().ip4), 47000,
                                   net::Address::of(to.port.info().ip4), 47000);
    Frame frame(front.bytes() + wire::kHeaderBytes + payload.size());
    front.write(frame.data(), static_cast<uint32_t>(wire::kHeaderBytes + payload.size()));
    uint8_t* const at = frame.data() + front.bytes();
    tap_.seal(crc_).seal(header, payload, std::span<uint8_t, wire::kHeaderBytes>(at, wire::kHeaderBytes),
                         at + wire::kHeaderBytes);
    return frame;
  }
  void forge_status(const wire::Status& status, uint64_t seq) {
    std::vector<uint8_t> payload(wire::kStatusBytesMax);
    payload.resize(wire::encode_status(status, payload).bytes);
    a_.port.frames().arrived.push_back(
        frame_of(b_, a_, {.type = wire::Type::kStatus, .tx_seq = seq, .send_time_ns = now_ns_}, payload));
  }
  void forge(wire::Header header, std::span<const uint8_t> payload = {}) {
    // Ahead of the true ones, each of which would come as a copy else.
    if (header.type == wire::Type::kProbe && header.offset == 0) header.offset = 400 + forged_probes_++;
    b_.port.frames().arrived.push_back(frame_of(a_, b_, header, payload));
  }
  // What the true peer would say now.
  wire::Status true_status() {
    const auto& rx = b_.board().flows[kRxSlot].state;
    wire::Status status;
    status.echo_send_time_ns = now_ns_ - 50'000;
    status.received_end = rx.highest_data_end;
    status.credit_extents = rx.credit_extents;
    status.bytes_received = rx.bytes;
    status.datagrams_received = rx.datagrams;
    status.done_end = static_cast<uint32_t>(rx.extents_done);
    return status;
  }
  // The next one's, which comes too late then; another one for each of several.
  uint64_t status_seq() {
    forged_statuses_ = std::max<uint64_t>(forged_statuses_ + 1, b_.board().flows[kRxSlot].state.statuses);
    return forged_statuses_;
  }
  wire::Header true_header(wire::Type type) {
    const auto& tx = a_.board().flows[kTxSlot].state;
    const auto& rx = b_.board().flows[kRxSlot].state;
    return {.type = type,
            .tx_seq = rx.highest_data_end,
            .send_time_ns = now_ns_,
            .done_seen = static_cast<uint32_t>(tx.extents_done)};
  }

  // A transfer with `strike` in its middle. No NEED comes before 40 ms without progress.
  void begin() {
    data_ = make_source(40 * kExtentBytes);
    open_flows(crc_, kChunk);
    a_.board().flows[kTxSlot].control.rate_bps = 2'000'000'000;
    transfer(10 * kExtentBytes);
  }
  void transfer(uint64_t until) {
    bytes_ = data_.size();
    for (uint32_t step = 0; written_ < until; ++step) {
      ASSERT_LT(step, 40'000U) << written_ << " of " << until;
      feed();
      step_alone();
      if (step % 50 == 0 && detects_) detect_loss();
      handle_events();
      if (ask_for_missing()) ++needs_;
    }
  }
  // All bytes came, nothing is held at the sender any more, and both count the same credit.
  void expect_mended(uint64_t needs = 0) {
    transfer(data_.size());
    run_steps(3000);  // 60 ms
    expect_identical(data_);
    EXPECT_LE(needs_, needs);
    const auto& tx = a_.board().flows[kTxSlot].state;
    const auto& rx = b_.board().flows[kRxSlot].state;
    EXPECT_EQ(a_.objects.find(0, 0)->extents_in_use.load(), 0U);
    EXPECT_EQ(tx.opened_extents, rx.extents_done);
    EXPECT_EQ(tx.credit_extents, rx.credit_extents);
    EXPECT_EQ(rx.credit_extents, rx.extents_done + 4) << "nothing of the credit is lost";
    EXPECT_LT(rx.gaps_reported, 1000U);
    EXPECT_LT(tx.gaps_reported, 1000U);
    EXPECT_LT(rx.probe_end, kFar);
    close_flows();
    expect_counters_add_up(a_);
    expect_counters_add_up(b_);
  }

  Tap tap_;
  uint64_t forged_probes_ = 0;
  uint64_t forged_statuses_ = 0;
  std::vector<uint8_t> data_;
  uint64_t needs_ = 0;
  bool detects_ = true;
};

}  // namespace sluice::lane::testing
