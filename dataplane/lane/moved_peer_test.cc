// One end is behind a NAT: the other learns where its datagrams come from, follows it when the NAT gives it
// another port, and is led astray by no stranger.
// SPDX-License-Identifier: Apache-2.0
#include "dataplane/core/moved_peer.h"

#include <gtest/gtest.h>

#include "dataplane/lane/lane_fixture_for_test.h"

namespace sluice::lane::testing {
namespace {

constexpr uint16_t kPort = 47000;
constexpr uint64_t kMillisecondNs = 1'000'000;

enum class Inside : uint8_t { kSource, kDestination };

// The inside is behind a NAT that shows it under another port, and lets in what comes to that port from where
// something was sent.
class MovedPeer : public Lane, public ::testing::WithParamInterface<Inside> {
 protected:
  MovedPeer() {
    on_the_way = [this](Frame& frame, bool from_a) { return pass(frame, from_a == source_inside()); };
  }
  static bool source_inside() { return GetParam() == Inside::kSource; }
  Side& outside() { return source_inside() ? b_ : a_; }
  Side& inside() { return source_inside() ? a_ : b_; }
  board::FlowConfig& config(Side& side) {
    return side.board().flows[&side == &a_ ? kTxSlot : kRxSlot].config;
  }

  void begin() {
    data_ = make_source(40 * kExtentBytes);
    open_flows(crc_, 8192);
    config(inside()).reach = board::Reach::kWeOpen;
    config(outside()).reach = board::Reach::kPeerOpens;
    // What it takes for its own address is no use out here.
    config(outside()).peer_ip[15] = 200;
    a_.board().flows[kTxSlot].control.rate_bps = 2'000'000'000;
  }
  bool pass(Frame& frame, bool outwards) {
    net::UdpFrame udp;
    if (net::parse_udp(frame, &udp) != net::Parse::kUdp) return true;  // ARP
    if (closed_to_all_) return false;
    if (outwards) {
      opened_ = true;
      frame = addressed(udp.payload, udp.source, shown_port_, udp.destination, udp.destination_port);
      last_out_ = frame;
      return true;
    }
    if (!opened_ || udp.destination_port != shown_port_) {
      ++kept_out_;
      return false;
    }
    frame = addressed(udp.payload, udp.source, udp.source_port, udp.destination, kPort);
    return true;
  }
  static Frame addressed(std::span<const uint8_t> payload, const net::Address& from, uint16_t from_port,
                         const net::Address& to, uint16_t to_port) {
    const net::FrameTemplate front(from, from_port, to, to_port);
    Frame frame(front.bytes());
    front.write(frame.data(), static_cast<uint32_t>(payload.size()));
    frame.insert(frame.end(), payload.begin(), payload.end());
    return frame;
  }
  // A datagram to the outside from another host than the peer's, or from another port of it.
  void strike(const Frame& like, uint8_t host, uint16_t port) {
    net::UdpFrame udp;
    ASSERT_EQ(net::parse_udp(like, &udp), net::Parse::kUdp);
    net::Address from = udp.source;
    from.bytes[15] = host;
    outside().port.frames().arrived.push_back(
        addressed(udp.payload, from, port, udp.destination, udp.destination_port));
  }
  void run_until(uint64_t bytes, uint32_t steps_max = 200'000) {
    bytes_ = data_.size();
    for (uint32_t step = 0; written_ < bytes; ++step) {
      ASSERT_LT(step, steps_max) << written_ << " of " << bytes;
      feed();
      step_alone();
      if (step % 50 == 0) detect_loss();
      handle_events();
      (void)ask_for_missing();
    }
  }
  void pass_a_millisecond() {
    now_ns_ += kMillisecondNs - kStepNs;
    step_alone();
    handle_events();
  }
  void pass_ms(uint64_t ms) {
    for (uint64_t i = 0; i < ms; ++i) pass_a_millisecond();
  }
  void expect_done() {
    run_until(data_.size());
    pass_ms(50);
    expect_identical(data_);
    close_flows();
    expect_counters_add_up(a_);
    expect_counters_add_up(b_);
  }

  std::vector<uint8_t> data_;
  uint16_t shown_port_ = 61000;
  bool opened_ = false;
  bool closed_to_all_ = false;
  uint64_t kept_out_ = 0;
  Frame last_out_;
};

INSTANTIATE_TEST_SUITE_P(Either, MovedPeer, ::testing::Values(Inside::kSource, Inside::kDestination),
                         [](const auto& inside) {
                           return inside.param == Inside::kSource ? "Source" : "Destination";
                         });

TEST_P(MovedPeer, IsLearntFromItsFirstDatagram) {
  begin();
  expect_done();
  EXPECT_EQ(outside().counter(Counter::peer_addresses), 1U);
  EXPECT_EQ(inside().counter(Counter::peer_addresses), 0U);
  EXPECT_EQ(outside().counter(Counter::rx_false_address), 0U);
  EXPECT_EQ(kept_out_, 0U) << "nothing is sent inwards before something came out";
}

// What was read waits for the peer's first datagram. A worker to which that is due all the time never sleeps.
TEST_P(MovedPeer, NothingIsDueBeforeThePeerIsKnown) {
  begin();
  closed_to_all_ = true;
  feed();
  pass_ms(100);
  for (Side* side : {&a_, &b_}) {
    pass_a_millisecond();
    EXPECT_GT(side->worker.next_due_ns(now_ns_), now_ns_);
  }
}

TEST_P(MovedPeer, KeepsTheWayOpenWhileNothingIsToBeSent) {
  begin();
  pass_ms(30'000);
  EXPECT_EQ(outside().counter(Counter::peer_addresses), 1U);
  uint64_t longest_ns = 0;
  for (uint64_t sent_ns = now_ns_, end_ns = now_ns_ + 60'000 * kMillisecondNs; now_ns_ < end_ns;) {
    last_out_.clear();
    pass_a_millisecond();
    if (!last_out_.empty()) sent_ns = now_ns_;
    longest_ns = std::max(longest_ns, now_ns_ - sent_ns);
  }
  EXPECT_LE(longest_ns, 10'100 * kMillisecondNs);
  expect_done();
}

TEST_P(MovedPeer, IsFollowedWhenTheNatGivesItAnotherPort) {
  begin();
  run_until(10 * kExtentBytes);
  shown_port_ = 61001;
  expect_done();
  EXPECT_EQ(outside().counter(Counter::peer_addresses), 2U);
  EXPECT_GT(outside().counter(Counter::rx_false_address), 0U) << "not before the old port was silent";
  EXPECT_GT(kept_out_, 0U);
}

TEST_P(MovedPeer, IsFollowedOftenAndWhileItIdles) {
  begin();
  run_until(10 * kExtentBytes);
  pass_ms(3000);
  for (uint16_t i = 1; i <= 3; ++i) {
    shown_port_ = static_cast<uint16_t>(61000 + i);
    pass_ms(3000);
  }
  expect_done();
  EXPECT_EQ(outside().counter(Counter::peer_addresses), 4U);
}

TEST_P(MovedPeer, ACopyFromElsewhereIsNotFollowed) {
  begin();
  run_until(10 * kExtentBytes);
  const Frame old = last_out_;
  for (int i = 0; i < 20; ++i) {
    strike(last_out_, 66, 5000);
    step_alone();
  }
  EXPECT_EQ(outside().counter(Counter::rx_false_address), 20U) << "while the peer is heard";
  closed_to_all_ = true;
  pass_ms(2 * kMovedSilenceNs / kMillisecondNs);
  strike(old, 66, 5000);
  strike(last_out_, 66, 5000);
  step_alone();
  EXPECT_EQ(outside().counter(Counter::rx_false_address) + outside().counter(Counter::rx_drop_replayed), 22U)
      << "nor when it is not";
  EXPECT_EQ(outside().counter(Counter::peer_addresses), 1U);
  closed_to_all_ = false;
  expect_done();
  EXPECT_EQ(outside().counter(Counter::peer_addresses), 1U);
}

TEST_P(MovedPeer, IsAtNoAddressThatIsNoHosts) {
  begin();
  on_the_way = [this](Frame& frame, bool from_a) {
    net::UdpFrame udp;
    if (from_a == source_inside() && net::parse_udp(frame, &udp) == net::Parse::kUdp) {
      net::Address multicast = udp.source;
      multicast.bytes[12] = 224;
      strike(addressed(udp.payload, multicast, kPort, udp.destination, udp.destination_port), 2,
             kPort);  // 224.0.0.2
      net::Address own = udp.destination;
      frame = addressed(udp.payload, own, kPort, udp.destination, udp.destination_port);
    }
    return true;
  };
  pass_ms(50);
  EXPECT_EQ(outside().counter(Counter::peer_addresses), 0U);
  EXPECT_GE(outside().counter(Counter::rx_false_address), 2U);
}

}  // namespace
}  // namespace sluice::lane::testing
