// Long paths are filled, up to 100 Gbit/s over a round trip of 200 ms: 2.5 GB and 305,000 datagrams are
// unanswered at any time. Virtual time, the workers' own code, and the test in the place of control. What
// lies on the wire is headers, since payload that is generated and thrown away need not be kept.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <array>

#include "dataplane/lane/lane_fixture_for_test.h"

namespace sluice::lane::testing {
namespace {

constexpr uint64_t kMs = 1'000'000;
constexpr uint32_t kExtent = 1U << 20;
constexpr uint32_t kLongChunk = 8192;
constexpr uint32_t kAround = wire::kHeaderBytes + 42 + 24;  // headers, and what Ethernet puts around a frame

struct Case {
  const char* name;
  uint64_t rate_bps;
  uint64_t rtt_ns;
  double loss;
  uint32_t buffers;  // extents of 1 MiB at each node, half for sending and half for receiving
  uint64_t extents;  // to be sent
  uint64_t step_ns;
  double share;  // of the rate, less what is lost, that is reached while the middle of it all is sent
};

// Generated and thrown away: nothing is read or written.
class NoDisk final : public storage::Disk {
 public:
  Status open(uint32_t, std::span<uint8_t>, std::span<const int>,
              const std::function<void(const std::string&)>&) override {
    return {};
  }
  void start(uint32_t, const storage::Operation&) override { ADD_FAILURE() << "there is no disk"; }
  void submit() override {}
  uint32_t poll(std::span<storage::Completion>) override { return 0; }
  uint32_t in_flight() const override { return 0; }
  uint64_t short_operations() const override { return 0; }
};

class Wire {
 public:
  explicit Wire(uint64_t delay_ns) : delay_ns_(delay_ns) {}
  void take(std::deque<Frame>* sent, uint64_t now_ns, double loss) {
    for (; !sent->empty(); sent->pop_front()) {
      const Frame& frame = sent->front();
      if (loss > 0 && std::uniform_real_distribution<>(0, 1)(random_) < loss) continue;
      InFlight& one = on_the_way_.emplace_back();
      one.due_ns = now_ns + delay_ns_;
      one.bytes = static_cast<uint32_t>(frame.size());
      one.kept = std::min<uint32_t>(one.bytes, frame.size() > kLongChunk ? kHeaders : sizeof one.data);
      std::copy_n(frame.begin(), one.kept, one.data.begin());
    }
  }
  void give(std::deque<Frame>* arrived, uint64_t now_ns) {
    for (; !on_the_way_.empty() && on_the_way_.front().due_ns <= now_ns; on_the_way_.pop_front()) {
      const InFlight& one = on_the_way_.front();
      Frame frame(one.bytes);
      std::copy_n(one.data.begin(), one.kept, frame.begin());
      arrived->push_back(std::move(frame));
    }
  }

 private:
  static constexpr uint32_t kHeaders = 14 + 20 + 8 + wire::kHeaderBytes;
  struct InFlight {
    uint64_t due_ns = 0;
    uint32_t bytes = 0;
    uint32_t kept = 0;
    std::array<uint8_t, 120> data;
  };
  std::deque<InFlight> on_the_way_;
  const uint64_t delay_ns_;
  std::mt19937_64 random_{1};
};

// Statuses are longer than what a wire keeps of a datum, and few.
class StatusWire {
 public:
  explicit StatusWire(uint64_t delay_ns) : delay_ns_(delay_ns) {}
  void take(std::deque<Frame>* sent, uint64_t now_ns) {
    for (; !sent->empty(); sent->pop_front())
      on_the_way_.emplace_back(now_ns + delay_ns_, std::move(sent->front()));
  }
  void give(std::deque<Frame>* arrived, uint64_t now_ns) {
    for (; !on_the_way_.empty() && on_the_way_.front().first <= now_ns; on_the_way_.pop_front())
      arrived->push_back(std::move(on_the_way_.front().second));
  }

 private:
  const uint64_t delay_ns_;
  std::deque<std::pair<uint64_t, Frame>> on_the_way_;
};

class LongPath : public ::testing::TestWithParam<Case> {
 protected:
  LongPath() {
    source_.open_object(-1, bytes_, board::kObjectGenerate);
    destination_.open_object(-1, bytes_, board::kObjectWrite | board::kObjectDiscard);
    board::FlowConfig c;
    c.flow_id = 0xABCDEF0000000000ULL | kRxSlot;
    c.rate_bps_max = GetParam().rate_bps;
    c.partition_bytes = kPartition;
    c.chunk_bytes = kLongChunk;
    c.extent_bytes = kExtent;
    c.credit_extents = 16;
    c.status_interval_ns = 1'000'000;
    c.crc_kind = static_cast<uint8_t>(wire::CrcKind::kNone);
    c.local_port = c.peer_port = 47000;
    std::memcpy(c.local_ip, destination_.port.info().ip4, 16);
    std::memcpy(c.peer_ip, source_.port.info().ip4, 16);
    c.direction = board::Direction::kRx;
    rx_.config = c;
    destination_.give_keys(kRxSlot, 0);
    destination_.command({.kind = board::CommandKind::kOpenFlow, .flow = kRxSlot});
    std::swap(c.local_ip, c.peer_ip);
    c.direction = board::Direction::kTx;
    tx_.config = c;
    tx_.control.rate_bps = GetParam().rate_bps;
    source_.give_keys(kTxSlot, 0);
    source_.command({.kind = board::CommandKind::kOpenFlow, .flow = kTxSlot});
  }

  // What control does about once a millisecond: credit, losses, work.
  void control() {
    const uint64_t most = GetParam().buffers / 2 - kRepairReserve;
    const uint64_t wanted = std::min<uint64_t>(rx_.state.wanted_extents, most);
    const uint64_t credit = std::max<uint64_t>(rx_.control.credit_extents, 16);
    if (wanted > credit) rx_.control.credit_extents = std::min(2 * credit, wanted);
    const uint64_t data_end = rx_.state.highest_data_end;
    for (uint64_t seq = rx_.control.settled_below; seq < aged_; ++seq) {
      const bool received = (rx_.window[(seq % board::kWindowBits) / 64] >> (seq % 64)) & 1;
      ASSERT_TRUE(received || rx_.gaps.push({seq, 1}));
    }
    rx_.control.settled_below = std::max<uint64_t>(rx_.control.settled_below, aged_);
    aged_ = std::max({aged_, data_end - std::min<uint64_t>(3, data_end), rx_.state.probe_end.load()});
    while (next_ < bytes_ && ended_ + 12 > next_ / kPartition) {
      const uint64_t length = std::min(kPartition, bytes_ - next_);
      source_.command(
          {.kind = board::CommandKind::kPartition, .flow = kTxSlot, .offset = next_, .length = length});
      next_ += length;
    }
    const uint64_t sent = tx_.state.chunks + tx_.state.retransmitted_chunks;
    unanswered_ =
        std::max<uint64_t>(unanswered_, sent - std::min<uint64_t>(sent, tx_.state.peer_received_end));
  }
  void step() {
    now_ns_ += GetParam().step_ns;
    source_.board().control_alive_ns = destination_.board().control_alive_ns = now_ns_;
    if (now_ns_ - controlled_ns_ >= kMs) {
      controlled_ns_ = now_ns_;
      control();
    }
    data_wire_.give(&destination_.port.frames().arrived, now_ns_);
    status_wire_.give(&source_.port.frames().arrived, now_ns_);
    source_.worker.step(now_ns_);
    destination_.worker.step(now_ns_);
    data_wire_.take(&source_.port.frames().sent, now_ns_, GetParam().loss);
    status_wire_.take(&destination_.port.frames().sent, now_ns_);
    source_.port.frames().times.clear();
    destination_.port.frames().times.clear();
    board::Event e;
    while (source_.board().workers[0].events.pop(&e)) {
      ended_ += e.kind == board::EventKind::kPartitionSent ? 1 : 0;
    }
    while (destination_.board().workers[0].events.pop(&e)) {
    }
  }
  // When so many bytes had come, in seconds.
  double run_to(uint64_t bytes) {
    while (rx_.state.bytes < bytes && now_ns_ < kBeganNs + 60'000 * kMs) step();
    return static_cast<double>(now_ns_ - kBeganNs) * 1e-9;
  }

  static constexpr uint64_t kBeganNs = 1000 * kMs;
  static constexpr uint64_t kPartition = 16 * kExtent;
  const uint64_t bytes_ = GetParam().extents * kExtent;
  Side source_{1, GetParam().buffers, kExtent, std::make_unique<NoDisk>()};
  Side destination_{2, GetParam().buffers, kExtent, std::make_unique<NoDisk>()};
  board::FlowSlot& tx_ = source_.board().flows[kTxSlot];
  board::FlowSlot& rx_ = destination_.board().flows[kRxSlot];
  Wire data_wire_{GetParam().rtt_ns / 2};
  StatusWire status_wire_{GetParam().rtt_ns / 2};
  uint64_t now_ns_ = kBeganNs;
  uint64_t controlled_ns_ = 0;
  uint64_t aged_ = 0;
  uint64_t next_ = 0;
  uint64_t ended_ = 0;
  uint64_t unanswered_ = 0;
};

TEST_P(LongPath, IsFilledAndLosesNothingForGood) {
  const Case& path = GetParam();
  const double quarter = run_to(bytes_ / 4);
  const double most = run_to(bytes_ / 10 * 9);
  const double end = run_to(bytes_);
  const double rate =
      (static_cast<double>(bytes_ / 10 * 9) - static_cast<double>(bytes_ / 4)) * 8 / (most - quarter);
  const double possible =
      static_cast<double>(path.rate_bps) * kLongChunk / (kLongChunk + kAround) * (1 - path.loss);
  std::printf("%s: %.3f of the rate, a quarter after %.2f s, all after %.2f s\n", path.name, rate / possible,
              quarter, end);
  EXPECT_EQ(rx_.state.bytes, bytes_);
  EXPECT_GE(rate, path.share * possible);
  // Two round trips until the sender has the credit that it wants, and some for the repair of the last bytes.
  EXPECT_LT(
      end, static_cast<double>(bytes_) * 8 / possible / path.share + 6e-9 * static_cast<double>(path.rtt_ns));
  const double unanswered =
      static_cast<double>(path.rate_bps) / 8e9 * static_cast<double>(path.rtt_ns) / (kLongChunk + kAround);
  EXPECT_GT(static_cast<double>(unanswered_), 0.95 * unanswered) << "the path is full";
  EXPECT_EQ(rx_.state.no_buffer_drops, 0U);
  EXPECT_EQ(tx_.state.repaired_chunks, 0U) << "all losses were found and repeated at once";
  const auto lost = static_cast<double>(tx_.state.network_lost);
  EXPECT_NEAR(lost, path.loss * static_cast<double>(tx_.state.peer_received_end), 0.1 * lost + 100);
  EXPECT_LE(static_cast<double>(tx_.state.retransmitted_chunks), 1.02 * lost + 100);
}

constexpr Case kCases[] = {
    {"lossy_1g_100ms", 1'000'000'000, 100 * kMs, 0.01, 160, 400, 2'000, 0.97},
    {"very_lossy_1g_100ms", 1'000'000'000, 100 * kMs, 0.10, 240, 400, 2'000, 0.95},
    {"clean_5g_200ms", 5'000'000'000, 200 * kMs, 0, 640, 1000, 500, 0.97},
    {"lossy_10g_200ms", 10'000'000'000, 200 * kMs, 0.01, 2000, 2000, 500, 0.95},
    {"lossy_100g_200ms", 100'000'000'000, 200 * kMs, 0.001, 10'000, 9000, 10'000, 0.95},
};
INSTANTIATE_TEST_SUITE_P(Paths, LongPath, ::testing::ValuesIn(kCases),
                         [](const auto& path) { return std::string(path.param.name); });

}  // namespace
}  // namespace sluice::lane::testing
