// Both ends of a memif in one process, over a driver that only remembers what it was asked.
// SPDX-License-Identifier: Apache-2.0
#include "dataplane/memif/queue.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "dataplane/memif/region_for_test.h"

namespace sluice::memif {
namespace {

constexpr uint32_t kBufferBytes = 2048;
constexpr uint32_t kFrameBytes = 1000;

class FakeDriver final : public DriverQueue {
 public:
  uint32_t rx(net::RxFrame*, uint32_t, net::RxSegmented*) override { return ++bursts, 0; }
  void release(const net::RxFrame* frames, uint32_t count) override {
    for (uint32_t i = 0; i < count; ++i) released += frames[i].handle != nullptr;
  }
  bool keep(net::RxFrame* frame) override {
    kept.assign(frame->data, frame->data + frame->length);
    frame->data = kept.data();
    frame->handle = this;
    return true;
  }
  uint8_t* tx_begin(uint32_t, const uint8_t*, uint32_t, const net::Buffer*, bool) override {
    return ++pending, memory;
  }
  uint32_t tx_flush() override { return pending = 0; }
  uint32_t tx_pending() const override { return pending; }
  bool device_holds(const net::Buffer&) override { return pending > 0; }
  std::span<const net::Buffer> buffers() const override { return {}; }
  std::span<uint8_t> buffer_memory() const override { return {}; }
  void drop_pending() override { pending = 0; }

  uint32_t bursts = 0;
  uint32_t pending = 0;
  uint32_t released = 0;
  std::vector<uint8_t> kept;
  uint8_t memory[kBufferBytes];
};

struct End {
  explicit End(bool client)
      : queue({.client = client, .buffer_bytes = kBufferBytes, .frame_bytes_max = kFrameBytes}, driver,
              gate) {}
  bool send(uint8_t fill) {
    uint8_t* const frame = queue.tx_begin(kFrameBytes, nullptr, 0, nullptr, false);
    if (frame != nullptr) std::memset(frame, fill, kFrameBytes);
    return frame != nullptr;
  }
  // Frames of one burst, each of one byte repeated; all are released.
  std::vector<uint8_t> receive() {
    net::RxFrame frames[net::kBurst];
    net::RxSegmented segmented;
    const uint32_t count = queue.rx(frames, net::kBurst, &segmented);
    std::vector<uint8_t> fills;
    for (uint32_t i = 0; i < count; ++i) {
      EXPECT_EQ(frames[i].length, kFrameBytes);
      EXPECT_EQ(std::memcmp(frames[i].data, frames[i].data + 1, kFrameBytes - 1), 0);
      fills.push_back(frames[i].data[0]);
    }
    queue.release(frames, count);
    return fills;
  }

  FakeDriver driver;
  Gate gate;
  Queue queue;
};

class MemifQueue : public testing::Test {
 protected:
  void connect() {
    client_.queue.attach(&shared_.region);
    server_.queue.attach(&shared_.region);
    client_.receive();  // where a worker adopts what was attached
    server_.receive();
  }
  SharedRegionForTest shared_{1, 4, kBufferBytes};
  End client_{true};
  End server_{false};
};

TEST_F(MemifQueue, CarriesFramesBothWaysInTheSharedMemoryAlone) {
  connect();
  EXPECT_TRUE(client_.queue.caller_copies());
  for (uint8_t round = 0; round < 100; ++round) {
    for (End* from : {&client_, &server_}) {
      End& to = from == &client_ ? server_ : client_;
      ASSERT_TRUE(from->send(round));
      ASSERT_TRUE(from->send(round + 1));
      EXPECT_TRUE(to.receive().empty()) << "nothing is shown before the flush";
      EXPECT_EQ(from->queue.tx_flush(), 0U);
      EXPECT_EQ(to.receive(), (std::vector<uint8_t>{round, static_cast<uint8_t>(round + 1)}));
    }
  }
  EXPECT_EQ(client_.driver.bursts + server_.driver.bursts, 0U);
}

TEST_F(MemifQueue, TakesNoMoreThanTheRingHolds) {
  connect();
  for (int i = 0; i < 16; ++i) ASSERT_TRUE(client_.send(7));
  EXPECT_FALSE(client_.send(7));
  client_.queue.tx_flush();
  EXPECT_FALSE(client_.send(7)) << "until the peer has released them";
  EXPECT_EQ(server_.receive().size(), 16U);
  EXPECT_TRUE(client_.send(7));
}

TEST_F(MemifQueue, AKeptFrameOutlivesItsBurst) {
  connect();
  client_.send(42);
  client_.queue.tx_flush();
  net::RxFrame frame;
  net::RxSegmented segmented;
  ASSERT_EQ(server_.queue.rx(&frame, 1, &segmented), 1U);
  ASSERT_TRUE(server_.queue.keep(&frame));
  server_.queue.release(nullptr, 0);
  for (int i = 0; i < 16; ++i) client_.send(1);  // over the slot it lay in
  EXPECT_EQ(frame.data[kFrameBytes - 1], 42);
  server_.queue.release(&frame, 1);
  EXPECT_EQ(server_.driver.released, 1U);
}

TEST_F(MemifQueue, LeavesTheWorkToTheDriverWhereItHasNoRegion) {
  client_.queue.attach(nullptr);
  client_.receive();
  EXPECT_FALSE(client_.queue.caller_copies());
  client_.send(1);
  EXPECT_EQ(client_.driver.pending, 1U);
  EXPECT_TRUE(client_.queue.device_holds({}));
  client_.queue.attach(&shared_.region);
  client_.receive();
  EXPECT_EQ(client_.driver.pending, 0U) << "what the driver will never send is dropped";
  EXPECT_FALSE(client_.queue.device_holds({}));
}

TEST_F(MemifQueue, TouchesNothingBehindAClosedGate) {
  connect();
  client_.send(1);
  client_.gate.close(Gate::State::kPaused);
  EXPECT_FALSE(client_.send(2));
  EXPECT_EQ(client_.queue.tx_flush(), 1U) << "kept until the gate opens";
  EXPECT_TRUE(server_.receive().empty());
  client_.gate.open();
  EXPECT_EQ(client_.queue.tx_flush(), 0U);
  EXPECT_EQ(server_.receive().size(), 1U);
  client_.send(3);
  client_.gate.close(Gate::State::kOffline);
  client_.queue.tx_flush();
  EXPECT_EQ(client_.queue.tx_pending(), 0U) << "dropped with the link";
}

// The link's thread unmaps the region when every worker has been seen at the gate: so not between rx and
// release.
TEST_F(MemifQueue, AnswersAClosedGateOnlyWhereItHoldsNoFrame) {
  connect();
  client_.send(1);
  client_.queue.tx_flush();
  server_.gate.worker_begins();
  net::RxFrame frame;
  net::RxSegmented segmented;
  ASSERT_EQ(server_.queue.rx(&frame, 1, &segmented), 1U);
  std::atomic<bool> closed{false};
  std::thread link([&] {
    server_.gate.close(Gate::State::kPaused);
    closed = true;
  });
  while (server_.gate.state() == Gate::State::kOpen) std::this_thread::yield();
  EXPECT_EQ(server_.queue.tx_begin(100, nullptr, 0, nullptr, false), nullptr);
  server_.queue.tx_flush();
  EXPECT_FALSE(closed);
  server_.queue.release(&frame, 1);
  EXPECT_FALSE(closed);
  EXPECT_EQ(server_.queue.rx(&frame, 1, &segmented), 0U);
  link.join();
  EXPECT_TRUE(closed);
}

}  // namespace
}  // namespace sluice::memif
