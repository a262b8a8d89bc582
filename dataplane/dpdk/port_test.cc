// A real port: two processes on the ends of a memif.
// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dpdk/port.h"

#include <gtest/gtest.h>
#include <netinet/in.h>

#include <array>
#include <cstring>
#include <memory>

#include "dataplane/dpdk/port_fixture_for_test.h"

namespace sluice::dpdk {
namespace {

constexpr uint32_t kFrames = 10'000;

uint8_t pattern(uint32_t extent, uint32_t offset) {
  return static_cast<uint8_t>(extent * 131 + offset * 7 + (offset >> 8) * 13);
}

Marker data_marker(uint32_t number) {
  constexpr std::array<uint32_t, 6> kSizes{8192, 8892, 1, 8192, 1400, 63};
  return {.kind = 3,
          .number = number,
          .extent = number % 8,
          .offset = number * 64 % 65536,
          .length = kSizes[number % kSizes.size()]};
}

bool intact(const net::RxFrame& frame, const Marker& marker) {
  if (frame.length != kHeaderBytes + marker.length) return false;
  for (uint32_t i = 0; i < marker.length; ++i) {
    if (frame.data[kHeaderBytes + i] != pattern(marker.extent, marker.offset + i)) return false;
  }
  return true;
}

void fill(net::FrameQueue& queue) {
  for (uint32_t e = 0; e < queue.buffers().size(); ++e) {
    for (uint32_t i = 0; i < queue.buffers()[e].bytes; ++i) queue.buffers()[e].data[i] = pattern(e, i);
  }
}

// Sends kFrames and expects as many, in order and intact; returns what went wrong.
class Exchange {
 public:
  explicit Exchange(net::FrameQueue& queue) : queue_(queue) { fill(queue); }

  std::string run() {
    while (received_ < kFrames || sent_ < kFrames || queue_.tx_pending() > 0) {
      receive();
      if (!error_.empty()) return error_;
      if (!peer_ready_) {
        append(queue_, {.kind = heard_ ? 2U : 1U, .number = 2, .length = 4});
      } else {
        while (sent_ < kFrames && append(queue_, data_marker(sent_))) ++sent_;
      }
      queue_.tx_flush();
    }
    for (const net::Buffer& extent : queue_.buffers()) {
      while (queue_.device_holds(extent)) queue_.tx_flush();
    }
    return "done";
  }

 private:
  void receive() {
    net::RxFrame frames[net::kBurst];
    net::RxSegmented segmented;
    const uint32_t count = queue_.rx(frames, net::kBurst, &segmented);
    if (segmented.dropped != 0) error_ = "in several buffers";
    for (uint32_t i = 0; i < count; ++i) take(frames[i]);
    queue_.release(frames, count);
  }
  void take(const net::RxFrame& frame) {
    Marker marker;
    memcpy(&marker, frame.data + 14, sizeof marker);
    heard_ = true;
    if (marker.kind >= 2) peer_ready_ = true;
    if (marker.kind != 3) return;
    const Marker wanted = data_marker(received_++);
    if (memcmp(&marker, &wanted, sizeof marker) != 0)
      error_ = "not in order: " + std::to_string(marker.number);
    if (!intact(frame, marker)) error_ = "damaged: " + std::to_string(marker.number);
  }

  net::FrameQueue& queue_;
  bool heard_ = false;       // the peer's frames arrive
  bool peer_ready_ = false;  // ours arrive there
  uint32_t sent_ = 0;
  uint32_t received_ = 0;
  std::string error_;
};

int exchange(const config::Node& node, const Wire& wire) {
  auto port = open_port(node, wire);
  if (port == nullptr) return 1;
  std::vector<std::string> results(node.workers);
  const Status launched = port->launch([&](uint32_t w) { results[w] = Exchange(port->frames(w)).run(); });
  if (!launched) return 2;
  port->join();
  for (const std::string& result : results) wire.say(result);
  // The last frames sent lie in memory shared with the peer, who may still read: stay until told.
  while (!wire.stop_wanted()) usleep(1000);
  return 0;
}

// ---- tests -------------------------------------------------------------------------------------

TEST_F(PortTest, MovesFramesOfAllSizesIntactAndInOrderBothWays) {
  Child server([&](const Wire& wire) { return exchange(node(true), wire); });
  Child client([&](const Wire& wire) { return exchange(node(false), wire); });
  EXPECT_EQ(server.line(), "done");
  EXPECT_EQ(client.line(), "done");
  EXPECT_EQ(server.exit_status(), 0);
  EXPECT_EQ(client.exit_status(), 0);
  EXPECT_FALSE(fs::exists(socket()));
}

TEST_F(PortTest, EveryWorkerHasItsOwnQueuePair) {
  Child client([&](const Wire& wire) { return exchange(node(false, 2), wire); });
  Child server([&](const Wire& wire) { return exchange(node(true, 2), wire); });
  for (Child* child : {&server, &client}) {
    EXPECT_EQ(child->line(), "done");
    EXPECT_EQ(child->line(), "done");
  }
  EXPECT_EQ(server.exit_status(), 0);
  EXPECT_EQ(client.exit_status(), 0);
}

TEST_F(PortTest, ReconnectsAfterEitherSideIsKilledUnderLoad) {
  uint32_t number = 99;  // multiples of three are sent by reference; three digits, none within another
  const auto start = [&](bool is_server) {
    number += 3;
    return std::make_unique<Child>(
        [&, is_server](const Wire& wire) { return chat(node(is_server), number, wire); });
  };
  auto server = start(true);
  auto client = start(false);
  server->expect_line_with("heard " + std::to_string(number));
  client->expect_line_with("heard " + std::to_string(number - 3));
  for (int round = 0; round < 3; ++round) {
    for (const bool kill_server : {false, true}) {
      auto& killed = kill_server ? server : client;
      auto& stays = kill_server ? client : server;
      killed->kill_hard();
      killed = start(kill_server);
      stays->expect_line_with("heard " + std::to_string(number));
      killed->expect_line_with("heard ");
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_EQ(client->exit_status(), 0);
  EXPECT_EQ(server->exit_status(), 0);
}

TEST_F(PortTest, SaysSoWhenThePeerHasAnotherNumberOfWorkers) {
  const auto wait_for_news = [](const config::Node& node, const Wire& wire) {
    auto port = Port::open(node, [&](const std::string& news) { wire.say(news); });
    if (!port) return 1;
    while (!wire.stop_wanted()) {
      (*port)->maintain();
      usleep(1000);
    }
    return 0;
  };
  Child server([&](const Wire& wire) { return wait_for_news(node(true, 2), wire); });
  Child client([&](const Wire& wire) { return wait_for_news(node(false, 1), wire); });
  server.expect_line_with("has 1 queue pairs, ours 2");
  EXPECT_EQ(client.exit_status(), 0);
  EXPECT_EQ(server.exit_status(), 0);
}

TEST_F(PortTest, RefusesASocketThatAnotherNodeServes) {
  Child server([&](const Wire& wire) { return chat(node(true), 3, wire); });
  server.expect_line_with("ready");
  Child second([&](const Wire& wire) { return chat(node(true), 3, wire); });
  second.expect_line_with("another process serves there");
  EXPECT_EQ(second.exit_status(), 1);
  EXPECT_EQ(server.exit_status(), 0);
}

// By the driver's word; libpcap's says what it is, and takes what runs over the loopback.
TEST_F(PortTest, SaysWhatTheDeviceHadNoRoomFor) {
  if (geteuid() != 0) GTEST_SKIP() << "capturing needs root";
  config::Node captures = node(true);
  captures.device = "net_pcap0,iface=lo";
  captures.mtu = 1500;
  Child child([&](const Wire& wire) {
    const auto port = open_port(captures, wire);
    if (port == nullptr) return 1;
    const UniqueFd sender(::socket(AF_INET, SOCK_DGRAM, 0));
    sockaddr_in discard{
        .sin_family = AF_INET, .sin_port = htons(9), .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
    const std::array<char, 1000> bytes{};
    // Others use this interface as well: some frames may have been missed before.
    const uint64_t before = port->missed_frames();
    while (port->missed_frames() == before && !wire.stop_wanted())
      (void)sendto(sender.get(), bytes.data(), bytes.size(), 0, reinterpret_cast<sockaddr*>(&discard),
                   sizeof discard);
    wire.say("missed");
    return 0;
  });
  child.expect_line_with("missed");
  EXPECT_EQ(child.exit_status(), 0);
}

TEST_F(PortTest, NamesWhatIsWrongWithTheConfiguration) {
  const auto message = [&](const config::Node& wrong) {
    Child child([&](const Wire& wire) { return open_port(wrong, wire) == nullptr ? 1 : 0; });
    return child.line();
  };
  config::Node wrong = node(true);
  wrong.memory_mib = 16;
  EXPECT_NE(message(wrong).find("memory_mib = 16 is too small"), std::string::npos) << message(wrong);
  wrong = node(true);
  wrong.device = "net_memif0,role=server,socket-abstract=no,socket=/no/such/directory/a.sock";
  EXPECT_NE(message(wrong).find("directory does not exist"), std::string::npos) << message(wrong);
  wrong.device = "net_nosuch0";
  EXPECT_NE(message(wrong).find("device"), std::string::npos) << message(wrong);
  wrong.device = "net_af_packet0,iface=nosuch0";
  EXPECT_NE(message(wrong).find("interface nosuch0"), std::string::npos) << message(wrong);
  wrong = node(true);
  wrong.address4 = "10.77.0.1";
  EXPECT_NE(message(wrong).find("address4"), std::string::npos) << message(wrong);
  wrong = node(true);
  wrong.memory = "hugepages";
  wrong.memory_mib = 1U << 30;
  EXPECT_NE(message(wrong).find("free hugepages are needed"), std::string::npos) << message(wrong);
}

}  // namespace
}  // namespace sluice::dpdk
