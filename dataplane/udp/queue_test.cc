// Queues over real sockets of the loopback interface, and one whose socket is full.
// SPDX-License-Identifier: Apache-2.0
#include "dataplane/udp/queue.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <linux/udp.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <tuple>

#include "dataplane/udp/socket.h"

namespace sluice::udp {
namespace {

using board::Counter;
using net::Endpoint;
using net::RxDatagram;

constexpr uint32_t kHeader = 64;
constexpr uint32_t kBufferBytes = 1U << 20;

Endpoint endpoint(const char* address, uint16_t port) {
  Endpoint made{.address = {}, .port = port};
  inet_pton(AF_INET6, address, made.address.bytes);
  return made;
}

// A port of the loopback that nobody has just now.
uint16_t free_port(const char* address) {
  SocketAddress at = socket_address(endpoint(address, 0));
  const UniqueFd socket(::socket(at.storage.ss_family, SOCK_DGRAM, 0));
  EXPECT_EQ(::bind(socket.get(), at.get(), at.bytes), 0);
  EXPECT_EQ(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&at.storage), &at.bytes), 0);
  return endpoint_of(at.storage).port;
}

struct End {
  explicit End(uint8_t seed)
      : memory(Memory::map(2 * size_t{kBufferBytes})),
        queue({{.data = memory.data(), .bytes = kBufferBytes},
               {.data = memory.data() + kBufferBytes, .bytes = kBufferBytes}},
              memory.span(), news, board::CounterWriter(*slot)) {
    for (size_t i = 0; i < memory.bytes(); ++i)
      memory.data()[i] = static_cast<uint8_t>(i * 7 + (i >> 8) + seed);
  }
  uint64_t count(Counter counter) const { return slot->counters[static_cast<uint32_t>(counter)].load(); }

  // True when the queue took it.
  bool begin(uint8_t mark, uint32_t offset, uint32_t bytes, const net::Buffer* owner) {
    const std::span<const uint8_t> payload(memory.data() + offset, bytes);
    const net::TxDatagram datagram = queue.begin(*path, payload, owner, 0);
    if (datagram.header == nullptr) return false;
    std::memset(datagram.header, mark, kHeader);
    if (datagram.payload != nullptr) std::memcpy(datagram.payload, payload.data(), bytes);
    queue.end(*path, payload, datagram);
    return true;
  }

  std::unique_ptr<board::WorkerSlot> slot = std::make_unique<board::WorkerSlot>();
  News news;
  Memory memory;
  Queue queue;
  std::unique_ptr<net::Path> path;
};

struct Got {
  uint8_t mark;
  std::vector<uint8_t> payload;
  Endpoint source;
  Endpoint destination;
};

class SocketQueue : public ::testing::TestWithParam<const char*> {
 protected:
  SocketQueue() {
    const char* const address = GetParam();
    a_end_ = endpoint(address, free_port(address));
    do {
      b_end_ = endpoint(address, free_port(address));
    } while (b_end_.port == a_end_.port);
  }
  static int open(End& end, const Endpoint& local, const Endpoint& peer) {
    return end.queue.open_path({.local = local, .peer = peer, .header_bytes = kHeader}, &end.path);
  }
  void open_both() {
    ASSERT_EQ(open(a_, a_end_, b_end_), 0);
    ASSERT_EQ(open(b_, b_end_, a_end_), 0);
  }
  // Until `count` have come.
  std::vector<Got> receive(End& end, size_t count) {
    std::vector<Got> got;
    RxDatagram burst[net::kBurst];
    for (uint32_t quiet = 0; got.size() < count && quiet < 100;) {
      const uint32_t taken = end.queue.receive(burst);
      for (uint32_t i = 0; i < taken; ++i) {
        const auto payload = burst[i].payload;
        got.push_back({.mark = payload[0],
                       .payload = {payload.begin() + kHeader, payload.end()},
                       .source = burst[i].source,
                       .destination = burst[i].destination});
      }
      if (taken > 0) {
        end.queue.release();
      } else {
        ++quiet;
        end.queue.sleep(100'000'000);  // ends when something has come
      }
    }
    return got;
  }

  Endpoint a_end_, b_end_;
  End a_{1}, b_{2};
};

INSTANTIATE_TEST_SUITE_P(Families, SocketQueue, ::testing::Values("::ffff:127.0.0.1", "::1"),
                         [](const auto& family) { return family.index == 0 ? "Ip4" : "Ip6"; });

TEST_P(SocketQueue, APeerThatIsLearntMayMove) {
  ASSERT_EQ(a_.queue.open_path(
                {.local = a_end_, .peer = b_end_, .header_bytes = kHeader, .learns_peer = true}, &a_.path),
            0);
  EXPECT_FALSE(a_.queue.ready(*a_.path, 1)) << "nobody is known";
  const auto hear = [&](End& from, const Endpoint& end) {
    ASSERT_EQ(open(from, end, a_end_), 0);
    ASSERT_TRUE(from.begin(1, 0, 100, nullptr));
    from.queue.flush();
    const auto heard = receive(a_, 1);
    ASSERT_EQ(heard.size(), 1U);
    EXPECT_EQ(heard[0].source, end);
    a_.queue.move_path(*a_.path, heard[0].source);
    ASSERT_TRUE(a_.queue.ready(*a_.path, 1));
    ASSERT_TRUE(a_.begin(2, 0, 100, nullptr));
    a_.queue.flush();
    EXPECT_EQ(receive(from, 1).size(), 1U);
  };
  hear(b_, b_end_);
  End c{3};
  hear(c, endpoint(GetParam(), free_port(GetParam())));
}

TEST_P(SocketQueue, CarriesHeaderAndPayloadAsTheyLie) {
  open_both();
  constexpr uint32_t kBytes = 8192;
  // Joined by the kernel up to the shorter one; what follows that is the next piece.
  const std::vector<uint32_t> sizes = {kBytes, kBytes, kBytes, kBytes, kBytes, kBytes,
                                       kBytes, kBytes, 1000,   kBytes, 4};
  uint32_t offset = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    ASSERT_TRUE(a_.begin(static_cast<uint8_t>(i), offset, sizes[i], &a_.queue.buffers()[0]));
    offset += sizes[i];
  }
  a_.queue.flush();
  EXPECT_FALSE(a_.queue.device_holds(a_.queue.buffers()[0])) << "the kernel has its copy";
  const auto got = receive(b_, sizes.size());
  ASSERT_EQ(got.size(), sizes.size());
  offset = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    EXPECT_EQ(got[i].mark, i);
    ASSERT_EQ(got[i].payload.size(), sizes[i]);
    EXPECT_EQ(std::memcmp(got[i].payload.data(), a_.memory.data() + offset, sizes[i]), 0);
    EXPECT_EQ(got[i].source, a_end_);
    EXPECT_EQ(got[i].destination, b_end_);
    offset += sizes[i];
  }
  EXPECT_EQ(b_.count(Counter::rx_frames), sizes.size());
  a_.queue.keep_time(1);
  EXPECT_EQ(a_.count(Counter::tx_frames), sizes.size());
  EXPECT_EQ(a_.count(Counter::tx_bytes), b_.count(Counter::rx_bytes));
}

TEST_P(SocketQueue, MoreSmallOnesThanOneBurstComeInOrder) {
  open_both();
  constexpr uint32_t kCount = 100;  // more than the kernel joins, and than a burst holds
  for (uint32_t i = 0; i < kCount; ++i) {
    ASSERT_TRUE(a_.begin(static_cast<uint8_t>(i), i * 256, 256, &a_.queue.buffers()[1]));
  }
  a_.queue.flush();
  const auto got = receive(b_, kCount);
  ASSERT_EQ(got.size(), kCount);
  for (uint32_t i = 0; i < kCount; ++i) EXPECT_EQ(got[i].mark, i);
}

TEST_P(SocketQueue, MayGoWithoutAChecksum) {
  for (const auto& [end, local, peer] : {std::tuple{&a_, a_end_, b_end_}, {&b_, b_end_, a_end_}})
    ASSERT_EQ(
        end->queue.open_path({.local = local, .peer = peer, .header_bytes = kHeader, .no_udp_checksum = true},
                             &end->path),
        0);
  int without = 0;
  socklen_t bytes = sizeof without;
  const bool ip4 = a_end_.address.is_ip4();
  ASSERT_EQ(::getsockopt(static_cast<SocketPath&>(*a_.path).socket.get(), ip4 ? SOL_SOCKET : IPPROTO_UDP,
                         ip4 ? SO_NO_CHECK : UDP_NO_CHECK6_TX, &without, &bytes),
            0);
  EXPECT_NE(without, 0);
  constexpr uint32_t kCount = 20;
  for (uint32_t i = 0; i < kCount; ++i)
    ASSERT_TRUE(a_.begin(static_cast<uint8_t>(i), i * 1000, 1000, &a_.queue.buffers()[0]));
  a_.queue.flush();
  const auto got = receive(b_, kCount);
  ASSERT_EQ(got.size(), kCount);
  for (uint32_t i = 0; i < kCount; ++i) EXPECT_EQ(got[i].mark, i);
  EXPECT_EQ(a_.count(Counter::tx_refused), 0U);
}

// The kernel counts one piece where it dropped several datagrams.
TEST_P(SocketQueue, WhatFoundNoRoomIsCountedInDatagrams) {
  open_both();
  const int small = 1 << 17;
  ASSERT_EQ(::setsockopt(static_cast<SocketPath&>(*b_.path).socket.get(), SOL_SOCKET, SO_RCVBUF, &small,
                         sizeof small),
            0);
  constexpr uint32_t kInPiece = 6, kPieces = 40;
  for (uint32_t piece = 0; piece < kPieces; ++piece) {
    for (uint32_t i = 0; i < kInPiece; ++i) ASSERT_TRUE(a_.begin(1, i * 8192, 8192, &a_.queue.buffers()[0]));
    a_.queue.flush();
  }
  size_t came = 0;
  RxDatagram burst[net::kBurst];
  while (const uint32_t taken = b_.queue.receive(burst)) {
    came += taken;
    b_.queue.release();
  }
  ASSERT_GT(came, 0U);
  ASSERT_LT(came, kInPiece * kPieces);
  b_.queue.keep_time(1);
  EXPECT_EQ(b_.count(Counter::rx_missed), kInPiece * kPieces - came);
}

TEST_P(SocketQueue, PayloadWithoutOwnerIsCopied) {
  open_both();
  ASSERT_TRUE(a_.begin(7, 0, 900, nullptr));
  const std::vector<uint8_t> before(a_.memory.data(), a_.memory.data() + 900);
  std::memset(a_.memory.data(), 0, 900);
  a_.queue.flush();
  const auto got = receive(b_, 1);
  ASSERT_EQ(got.size(), 1U);
  EXPECT_EQ(got[0].payload, before);
}

TEST_P(SocketQueue, HasRoomForABoundedNumber) {
  open_both();
  uint32_t begun = 0;
  while (begun < 1000 && a_.begin(1, 0, 8, &a_.queue.buffers()[0])) ++begun;
  EXPECT_GE(begun, net::kBurst);
  EXPECT_LT(begun, 1000U);
  a_.queue.flush();
  EXPECT_TRUE(a_.begin(1, 0, 8, &a_.queue.buffers()[0]));
}

TEST_P(SocketQueue, StrangersAreNotHeard) {
  open_both();
  const SocketAddress to = socket_address(b_end_);
  const UniqueFd stranger(::socket(to.storage.ss_family, SOCK_DGRAM, 0));
  const char word[] = "let me in";
  ASSERT_GT(::sendto(stranger.get(), word, sizeof word, 0, to.get(), to.bytes), 0);
  ASSERT_TRUE(a_.begin(9, 0, 100, nullptr));
  a_.queue.flush();
  const auto got = receive(b_, 1);
  ASSERT_EQ(got.size(), 1U);
  EXPECT_EQ(got[0].mark, 9);
  EXPECT_EQ(b_.count(Counter::rx_frames), 1U);
}

TEST_P(SocketQueue, AClosedPortIsCountedAndSentToAgain) {
  ASSERT_EQ(open(a_, a_end_, b_end_), 0);
  for (int i = 0; i < 3; ++i) {  // the answer to one is an error of the next
    ASSERT_TRUE(a_.begin(1, 0, 100, nullptr));
    a_.queue.flush();
  }
  RxDatagram burst[net::kBurst];
  EXPECT_EQ(a_.queue.receive(burst), 0U);
  EXPECT_GT(a_.count(Counter::socket_errors), 0U);
  EXPECT_EQ(a_.count(Counter::tx_refused), 0U);
  EXPECT_TRUE(a_.queue.ready(*a_.path, 1));

  ASSERT_EQ(open(b_, b_end_, a_end_), 0);
  ASSERT_TRUE(a_.begin(2, 0, 100, nullptr));
  a_.queue.flush();
  const auto got = receive(b_, 1);
  ASSERT_EQ(got.size(), 1U);
  EXPECT_EQ(got[0].mark, 2);
}

TEST_P(SocketQueue, APortThatIsTakenIsNamed) {
  ASSERT_EQ(open(a_, a_end_, b_end_), 0);
  EXPECT_EQ(open(b_, a_end_, b_end_), EADDRINUSE);
  EXPECT_EQ(b_.path, nullptr);
  const auto news = b_.news.take();
  ASSERT_EQ(news.size(), 1U);
  EXPECT_NE(news[0].find(std::to_string(a_end_.port)), std::string::npos) << news[0];
  EXPECT_NE(news[0].find("udp_port_base"), std::string::npos) << news[0];
}

TEST_P(SocketQueue, AnAddressOfAnotherHostIsRefused) {
  const Endpoint other =
      endpoint(a_end_.address.is_ip4() ? "::ffff:192.0.2.77" : "2001:db8::77", a_end_.port);
  EXPECT_EQ(open(a_, other, b_end_), EADDRNOTAVAIL);
}

// More than a loopback carries: as where the first link of the way has become narrower.
TEST_P(SocketQueue, WhatIsTooLongForTheFirstLinkIsLostAndTheRestGoesOn) {
  open_both();
  ASSERT_TRUE(a_.begin(1, 0, 66'000, &a_.queue.buffers()[0]));
  ASSERT_TRUE(a_.begin(2, 0, 66'000, &a_.queue.buffers()[0]));
  ASSERT_TRUE(a_.begin(3, 0, 1200, &a_.queue.buffers()[0]));
  a_.queue.flush();
  EXPECT_EQ(a_.count(Counter::tx_refused), 2U);
  const auto got = receive(b_, 1);
  ASSERT_EQ(got.size(), 1U);
  EXPECT_EQ(got[0].mark, 3);
  EXPECT_TRUE(a_.queue.ready(*a_.path, 1)) << "nothing waits for it";
}

TEST_P(SocketQueue, APathThatGoesTakesItsDatagramsAlong) {
  open_both();
  ASSERT_TRUE(a_.begin(1, 0, 100, &a_.queue.buffers()[0]));
  EXPECT_TRUE(a_.queue.device_holds(a_.queue.buffers()[0]));
  EXPECT_FALSE(a_.queue.device_holds(a_.queue.buffers()[1]));
  a_.path.reset();
  EXPECT_FALSE(a_.queue.device_holds(a_.queue.buffers()[0]));
  a_.queue.flush();
  // Also what was received and not handed on: more came in one piece than a burst holds.
  ASSERT_EQ(open(a_, a_end_, b_end_), 0);
  for (uint32_t i = 0; i < 60; ++i) ASSERT_TRUE(a_.begin(2, 0, 100, nullptr));
  a_.queue.flush();
  ASSERT_GE(receive(b_, 1).size(), 1U);
  b_.path.reset();
  RxDatagram burst[net::kBurst];
  EXPECT_EQ(b_.queue.receive(burst), 0U);
}

// A pair of unix sockets is one that gets full.
class FullSocket : public ::testing::Test {
 protected:
  FullSocket() {
    int ends[2] = {-1, -1};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, ends), 0);
    other_.reset(ends[1]);
    const net::PathConfig config{
        .local = endpoint("::1", 1), .peer = endpoint("::1", 2), .header_bytes = kHeader};
    auto path = std::make_unique<SocketPath>(end_.queue, config, UniqueFd(ends[0]));
    path->joins = false;
    end_.path = std::move(path);
  }
  std::vector<uint8_t> marks() {
    std::vector<uint8_t> got;
    uint8_t bytes[9000];
    while (::recv(other_.get(), bytes, sizeof bytes, 0) > 0) got.push_back(bytes[0]);
    return got;
  }

  End end_{3};
  UniqueFd other_;
};

TEST_F(FullSocket, KeepsWhatFoundNoRoomFirstInLine) {
  uint8_t next = 0;
  while (end_.begin(next, next * 16, 2000, next % 2 == 0 ? &end_.queue.buffers()[0] : nullptr)) ++next;
  end_.queue.flush();
  EXPECT_TRUE(end_.queue.device_holds(end_.queue.buffers()[0]));
  EXPECT_GT(end_.count(Counter::tx_partial_bursts), 0U);
  std::vector<uint8_t> all = marks();
  ASSERT_LT(all.size(), next);
  for (int turns = 0; turns < 1000 && all.size() < next; ++turns) {
    end_.queue.flush();
    for (const uint8_t mark : marks()) all.push_back(mark);
  }
  ASSERT_EQ(all.size(), next);
  for (size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i], i);
  EXPECT_FALSE(end_.queue.device_holds(end_.queue.buffers()[0]));
  EXPECT_EQ(end_.count(Counter::tx_refused), 0U);
}

TEST_F(FullSocket, WhatTheKernelRefusesIsLostAndTold) {
  other_.reset();
  ASSERT_TRUE(end_.begin(1, 0, 100, nullptr));
  end_.queue.flush();
  EXPECT_EQ(end_.count(Counter::tx_refused), 1U);
  EXPECT_NE(end_.queue.take_refusal(), 0);
  EXPECT_EQ(end_.queue.take_refusal(), 0);
}

}  // namespace
}  // namespace sluice::udp
