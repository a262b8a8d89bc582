// Datagrams over a port in memory: two hosts whose frames the test carries, changes or makes up.
// SPDX-License-Identifier: Apache-2.0
#include "dataplane/net/frame_datagrams.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>

#include "dataplane/core/wire.h"
#include "dataplane/net/memory_port_for_test.h"

namespace sluice::net::testing {
namespace {

using board::Counter;

constexpr uint32_t kExtentBytes = 65536;
constexpr uint16_t kPort = 47000;  // the port's udp_port_base
constexpr uint64_t kSentNs = 1'000'000'000;
constexpr uint32_t kFront = kEthernetBytes + kIp4Bytes + kUdpBytes;

struct Host {
  explicit Host(uint8_t number, bool offload = false)
      : port(number, 2, kExtentBytes, offload), datagrams(port.datagrams(0, board::CounterWriter(*slot))) {}

  Endpoint at(uint16_t udp_port) const { return {Address::of(port.info().ip4), udp_port}; }
  std::unique_ptr<Path> path_to(const Host& peer, bool checksum = false) {
    std::unique_ptr<Path> path;
    EXPECT_EQ(datagrams->open_path({at(kPort), peer.at(kPort), 4, checksum}, &path), 0);
    return path;
  }
  uint64_t count(Counter c) const { return slot->counters[static_cast<uint32_t>(c)].load(); }
  // Sends `payload` behind four bytes of header; false: no room.
  bool send(Path& path, const std::string& payload) {
    return send(path, {reinterpret_cast<const uint8_t*>(payload.data()), payload.size()}, nullptr);
  }
  bool send(Path& path, std::span<const uint8_t> payload, const Buffer* owner, uint64_t send_at_ns = 0) {
    const TxDatagram datagram = datagrams->begin(path, payload, owner, send_at_ns);
    if (datagram.header == nullptr) return false;
    std::memcpy(datagram.header, "head", 4);
    if (datagram.payload != nullptr && !payload.empty()) {
      std::memcpy(datagram.payload, payload.data(), payload.size());
    }
    datagrams->end(path, payload, datagram);
    return true;
  }
  // All that has come, as text; every burst is released.
  std::vector<std::string> receive() {
    std::vector<std::string> texts;
    std::array<RxDatagram, kBurst> burst;
    while (const uint32_t count = datagrams->receive(burst)) {
      for (uint32_t i = 0; i < count; ++i) {
        texts.emplace_back(burst[i].payload.begin(), burst[i].payload.end());
      }
      datagrams->release();
    }
    return texts;
  }
  MemoryQueue& frames() { return port.frames(); }

  std::unique_ptr<board::WorkerSlot> slot = std::make_unique<board::WorkerSlot>();
  MemoryPort port;
  std::unique_ptr<DatagramQueue> datagrams;
};

class FrameDatagramsTest : public ::testing::Test {
 protected:
  void carry(Host& from, Host& to) {
    from.datagrams->flush();
    auto& sent = from.frames().sent;
    to.frames().arrived.insert(to.frames().arrived.end(), sent.begin(), sent.end());
    sent.clear();
  }
  // Until `from` knows the way: it asks, the peer answers.
  void resolve(Host& from, Path& path, Host& to) {
    EXPECT_FALSE(from.datagrams->ready(path, kSentNs));
    carry(from, to);
    EXPECT_TRUE(to.receive().empty());
    carry(to, from);
    EXPECT_TRUE(from.receive().empty());
    EXPECT_TRUE(from.datagrams->ready(path, kSentNs));
  }
  Frame one_frame(Host& from, Path& path, const std::string& payload) {
    EXPECT_TRUE(from.send(path, payload));
    from.datagrams->flush();
    EXPECT_EQ(from.frames().sent.size(), 1U);
    Frame frame = from.frames().sent.front();
    from.frames().sent.clear();
    return frame;
  }

  Host a_{1};
  Host b_{2};
};

TEST_F(FrameDatagramsTest, CarriesADatagramFromEndToEnd) {
  const auto path = a_.path_to(b_);
  resolve(a_, *path, b_);
  ASSERT_TRUE(a_.send(*path, "er and payload"));
  carry(a_, b_);
  std::array<RxDatagram, kBurst> burst;
  ASSERT_EQ(b_.datagrams->receive(burst), 1U);
  EXPECT_EQ(std::string(burst[0].payload.begin(), burst[0].payload.end()), "header and payload");
  EXPECT_EQ(burst[0].source, a_.at(kPort));
  EXPECT_EQ(burst[0].destination, b_.at(kPort));
  EXPECT_TRUE(b_.path_to(a_)->is_way_of(burst[0]));
  EXPECT_FALSE(a_.path_to(b_)->is_way_of(burst[0]));
  b_.datagrams->release();
  EXPECT_EQ(path->wire_bytes(18), kFront + 18 + 24) << "preamble, gap and FCS";
}

TEST_F(FrameDatagramsTest, APeerThatIsLearntMayMove) {
  std::unique_ptr<Path> path;
  ASSERT_EQ(a_.datagrams->open_path(
                {.local = a_.at(kPort), .peer = b_.at(kPort), .header_bytes = 4, .learns_peer = true}, &path),
            0);
  EXPECT_FALSE(a_.datagrams->ready(*path, kSentNs));
  a_.datagrams->flush();
  EXPECT_TRUE(a_.frames().sent.empty()) << "nobody is known whose neighbour could be asked for";
  Host c(3);
  for (Host* const peer : {&b_, &c}) {
    const Endpoint where = peer->at(kPort + 5);
    a_.datagrams->move_path(*path, where);
    EXPECT_EQ(path->config().peer, where);
    EXPECT_TRUE(path->is_way_of({.source = where, .destination = a_.at(kPort), .payload = {}}));
    EXPECT_FALSE(path->is_way_of({.source = peer->at(kPort), .destination = a_.at(kPort), .payload = {}}));
    resolve(a_, *path, *peer);
    ASSERT_TRUE(a_.send(*path, "er and payload"));
    carry(a_, *peer);
    EXPECT_EQ(peer->receive(), std::vector<std::string>{"header and payload"});
  }
}

TEST_F(FrameDatagramsTest, AsksForTheNextHopNowAndThenUntilSomebodyAnswers) {
  const auto path = a_.path_to(b_);
  for (uint64_t now_ns = kSentNs; now_ns < kSentNs + 250'000'000; now_ns += 10'000'000) {
    EXPECT_FALSE(a_.datagrams->ready(*path, now_ns));
    a_.datagrams->flush();
  }
  EXPECT_EQ(a_.frames().sent.size(), 3U);
  EXPECT_EQ(a_.count(Counter::tx_unresolved), 3U);
  EXPECT_EQ(a_.count(Counter::tx_frames), 3U);
  carry(a_, b_);
  EXPECT_TRUE(b_.receive().empty());
  EXPECT_EQ(b_.count(Counter::rx_control_frames), 3U);
  EXPECT_EQ(b_.count(Counter::rx_frames), 3U);
  carry(b_, a_);
  a_.receive();
  EXPECT_TRUE(a_.datagrams->ready(*path, kSentNs + 300'000'000));
}

// Each is a frame that came on the wire, and is counted as received and as one thing more.
TEST_F(FrameDatagramsTest, CountsWhatItDropsUnderItsReason) {
  const auto path = a_.path_to(b_, true);
  resolve(a_, *path, b_);
  const Frame good = one_frame(a_, *path, "payload");
  const auto arrives = [&](size_t at, uint8_t bits, Counter counted) {
    SCOPED_TRACE(at);
    Frame frame = good;
    if (at < frame.size()) frame[at] ^= bits;
    const uint64_t before = b_.count(counted);
    const uint64_t frames_before = b_.count(Counter::rx_frames);
    b_.frames().arrived.push_back(frame);
    EXPECT_TRUE(b_.receive().empty());
    EXPECT_EQ(b_.count(counted), before + 1);
    EXPECT_EQ(b_.count(Counter::rx_frames), frames_before + 1);
  };
  arrives(kFront + 5, 1, Counter::rx_drop_udp_checksum);
  arrives(kEthernetBytes + 8, 1, Counter::rx_drop_malformed_ip);  // IP's own checksum
  arrives(kFront - 4, 0x80, Counter::rx_drop_malformed_ip);       // the length of UDP
  arrives(12, 0x40, Counter::rx_drop_not_ours);                   // another protocol
  EXPECT_EQ(good.size(), kFront + 11U);

  b_.frames().arrived.push_back(good);
  b_.frames().told_segmented = {.joined = 1, .dropped = 2};
  const uint64_t frames = b_.count(Counter::rx_frames);
  EXPECT_EQ(b_.receive().size(), 1U) << "what was put together is a datagram like any other";
  EXPECT_EQ(b_.count(Counter::rx_joined_frames), 1U);
  EXPECT_EQ(b_.count(Counter::rx_drop_segmented), 2U);
  EXPECT_EQ(b_.count(Counter::rx_frames), frames + 3);

  FrameTemplate elsewhere(a_.at(1).address, kPort, a_.at(1).address, kPort);
  Frame frame(kFront + 4);
  elsewhere.write(frame.data(), 4);
  b_.frames().arrived.push_back(frame);
  FrameTemplate low_port(a_.at(1).address, kPort, b_.at(1).address, kPort - 1);
  low_port.write(frame.data(), 4);
  b_.frames().arrived.push_back(frame);
  EXPECT_TRUE(b_.receive().empty());
  EXPECT_EQ(b_.count(Counter::rx_drop_not_ours), 3U);
  b_.frames().arrived.push_back(good);
  EXPECT_EQ(b_.receive(), std::vector<std::string>{"headpayload"});
}

TEST_F(FrameDatagramsTest, ComputesTheUdpChecksumOnlyWhereItIsWanted) {
  const size_t at = kFront - 2;
  const auto plain = a_.path_to(b_);
  resolve(a_, *plain, b_);
  const Frame without = one_frame(a_, *plain, "payload");
  EXPECT_EQ(without[at] | without[at + 1], 0);

  const auto summed = a_.path_to(b_, true);
  ASSERT_TRUE(a_.datagrams->ready(*summed, kSentNs));
  UdpFrame udp;
  const Frame copied = one_frame(a_, *summed, "payload");
  ASSERT_EQ(parse_udp(copied, &udp), Parse::kUdp);
  EXPECT_NE(udp.checksum, 0);
  EXPECT_EQ(udp_sum(udp.source, udp.destination, udp.udp), 0xFFFF);

  // Of a payload that is sent from where it lies.
  const Buffer& extent = a_.datagrams->buffers()[0];
  std::memcpy(extent.data, "payload", 7);
  ASSERT_TRUE(a_.send(*summed, {extent.data, 7}, &extent));
  a_.datagrams->flush();
  EXPECT_EQ(a_.frames().sent.front(), copied);
}

TEST_F(FrameDatagramsTest, ADeviceThatSumsIsGivenThePseudoHeadersSum) {
  Host device(3, true);
  const auto path = device.path_to(b_, true);
  resolve(device, *path, b_);
  const Frame frame = one_frame(device, *path, "payload");
  const FrameTemplate front(device.at(kPort).address, kPort, b_.at(kPort).address, kPort);
  EXPECT_EQ(wire::load_be16(&frame[kFront - 2]), front.pseudo_checksum(11));
  EXPECT_EQ(device.frames().offloaded, 1U);
}

TEST_F(FrameDatagramsTest, APayloadWithAnOwnerIsSentFromWhereItLies) {
  const auto path = a_.path_to(b_);
  resolve(a_, *path, b_);
  const Buffer& extent = a_.datagrams->buffers()[1];
  const std::span<const uint8_t> payload(extent.data, 100);
  EXPECT_FALSE(a_.datagrams->device_holds(extent));
  const TxDatagram datagram = a_.datagrams->begin(*path, payload, &extent, 0);
  EXPECT_EQ(datagram.payload, nullptr);
  EXPECT_TRUE(a_.datagrams->device_holds(extent));
  a_.datagrams->flush();
  EXPECT_FALSE(a_.datagrams->device_holds(extent));

  a_.frames().let_caller_copy();
  const TxDatagram copied = a_.datagrams->begin(*path, payload, &extent, 0);
  EXPECT_EQ(copied.payload, copied.header + 4) << "a device that wants its frames in one piece";
}

TEST_F(FrameDatagramsTest, AFullBurstTakesNoMoreUntilItIsFlushed) {
  const auto path = a_.path_to(b_);
  resolve(a_, *path, b_);
  for (uint32_t i = 0; i < kBurst; ++i) EXPECT_TRUE(a_.send(*path, "x"));
  EXPECT_FALSE(a_.send(*path, "x"));
  const uint64_t before = a_.count(Counter::tx_frames);
  a_.datagrams->flush();
  EXPECT_EQ(a_.count(Counter::tx_frames), before + kBurst);
  EXPECT_TRUE(a_.send(*path, "x"));
}

TEST_F(FrameDatagramsTest, ADatagramThatIsKeptOutlivesItsBurstAndIsCountedWhenItGoesBack) {
  const auto path = a_.path_to(b_);
  resolve(a_, *path, b_);
  for (const char* text : {"0", "1", "2"}) a_.send(*path, text);
  carry(a_, b_);
  const uint64_t before = b_.count(Counter::rx_frames);
  std::array<RxDatagram, kBurst> burst;
  ASSERT_EQ(b_.datagrams->receive(burst), 3U);
  RxDatagram kept = burst[1];
  b_.frames().let_keep_copy();  // as from a shared ring, whose slot goes back with its burst
  ASSERT_TRUE(b_.datagrams->keep(&kept));
  EXPECT_NE(kept.payload.data(), burst[1].payload.data());
  b_.datagrams->release();
  EXPECT_EQ(b_.count(Counter::rx_frames), before + 2);
  EXPECT_EQ(b_.frames().held(), 1U);
  EXPECT_EQ(std::string(kept.payload.begin(), kept.payload.end()), "head1");
  b_.datagrams->release_kept(kept);
  EXPECT_EQ(b_.frames().held(), 0U);
  EXPECT_EQ(b_.count(Counter::rx_frames), before + 3);
  EXPECT_EQ(b_.count(Counter::rx_bytes), 3 * (kFront + 5) + 60) << "and the question for the next hop";
}

TEST_F(FrameDatagramsTest, OnlyADeviceThatSendsAtTimesIsToldThem) {
  const auto path = a_.path_to(b_);
  resolve(a_, *path, b_);
  auto& times = a_.frames().times;
  times.clear();
  a_.send(*path, {}, nullptr, kSentNs + 7);
  a_.frames().let_device_time();
  a_.datagrams->keep_time(kSentNs);
  EXPECT_TRUE(a_.datagrams->sends_at_times());
  a_.send(*path, {}, nullptr, kSentNs + 7);
  // What a host owes its neighbours is not kept waiting.
  const auto unknown = a_.path_to(Host(9));
  EXPECT_FALSE(a_.datagrams->ready(*unknown, kSentNs));
  EXPECT_EQ(times, (std::vector<uint64_t>{0, kSentNs + 7, 0}));
}

}  // namespace
}  // namespace sluice::net::testing
