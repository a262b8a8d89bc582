// One node without its control, and the fixture of lane_test.cc: two of them, a wire with faults between
// them, and the test in the place of control. Time is the test's own, so nothing waits.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <filesystem>
#include <optional>
#include <random>

#include "dataplane/board/codes.h"
#include "dataplane/lane/attach_server.h"
#include "dataplane/lane/late_disk_for_test.h"
#include "dataplane/lane/worker.h"
#include "dataplane/net/memory_port_for_test.h"
#include "storage/ring.h"

namespace sluice::lane::testing {

using net::testing::Frame;

inline constexpr uint32_t kExtentBytes = 65536;
inline constexpr uint32_t kExtents = 16;
inline constexpr uint32_t kTxSlot = 3;
inline constexpr uint32_t kRxSlot = 7;
inline constexpr uint64_t kStepNs = 20'000;
inline constexpr size_t kUdpAt = 14 + 20 + 8;  // where a frame's datagram begins: after Ethernet, IPv4, UDP

// Of every flow of these tests.
inline constexpr seal::Secret kFlowSecret = {7, 1, 4, 9, 2, 2, 8};

// Its keys in other hands: of who lies with them, or looks at what leaves.
struct Tap {
  explicit Tap(wire::Protection a_protection = wire::Protection::kCrc,
               const seal::Secret& secret = kFlowSecret)
      : protection(a_protection),
        keys(a_protection, secret, seal::KeyChain::kEpochBits, seal::best_gcm_engine(), true) {}
  seal::FlowSeal seal(wire::CrcKind kind = wire::CrcKind::kCrc64Ecma) {
    return {kind, protection, keys, *scratch};
  }
  // The payload of a datagram; nothing if it is not right.
  std::optional<std::vector<uint8_t>> open(const wire::Header& header, std::span<const uint8_t> datagram,
                                           wire::CrcKind kind = wire::CrcKind::kCrc64Ecma) {
    std::vector<uint8_t> payload(header.length);
    const seal::Opened opened = seal(kind).open(header, datagram, payload.data());
    if (opened.good() && !opened.placed()) opened.place(payload.data());
    seal::FlowSeal::publish();
    return opened.good() ? std::optional(payload) : std::nullopt;
  }

  const wire::Protection protection;
  seal::FlowKeys keys;
  std::unique_ptr<seal::Scratch> scratch = std::make_unique<seal::Scratch>();
};

struct Faults {
  double loss = 0;
  double duplicate = 0;
  double corrupt = 0;
  double reorder = 0;
  bool to_sender_too = true;
};

// One node without its control.
struct Side {
  explicit Side(uint8_t host, uint32_t extents = kExtents, uint32_t bytes_of_extent = kExtentBytes,
                std::unique_ptr<storage::Disk> a_disk = std::make_unique<LateDisk>())
      : extent_bytes(bytes_of_extent),
        port(host, extents, extent_bytes),
        memory(std::move(*BoardMemory::create(port.info()))),
        shared{.port = port,
               .board = memory.board(),
               .objects = objects,
               .keys = keys,
               .poll_busy = true,
               .stop = stop,
               .epochs = epochs,
               .warn = [](const std::string&) {}},
        worker((epochs.push_back(std::make_unique<std::atomic<uint64_t>>(0)),
                shared.steering.push_back(std::make_unique<SteeringRing>()),
                shared.disks.push_back(std::move(a_disk)), shared),
               0) {
    memory.board().control_alive_ns = 1;
    EXPECT_TRUE(worker.open());
  }
  board::Board& board() { return memory.board(); }
  uint64_t counter(Counter c) { return board().workers[0].counters[static_cast<uint32_t>(c)].load(); }
  // One step, and as many more as the disk needs: in the test's time disks take none.
  void step(uint64_t now_ns) {
    worker.step(now_ns);
    while (worker.disk_operations() > disk().held()) worker.step(now_ns);
  }
  LateDisk& disk() { return static_cast<LateDisk&>(*shared.disks[0]); }
  void command(const board::Command& c) { ASSERT_TRUE(board().workers[0].commands.push(c)); }
  // As control hands them over before it opens a flow.
  void give_keys(uint32_t slot, uint32_t tag, wire::Protection protection = wire::Protection::kCrc) {
    ASSERT_TRUE(keys.put(slot, {tag, protection, kFlowSecret}));
  }
  void open_object(int fd, uint64_t size, uint32_t flags) {
    auto object = std::make_unique<Object>();
    object->id = 0;
    object->flags = flags;
    object->extent_bytes = extent_bytes;
    object->size = size;
    object->fd = UniqueFd(fd);
    if (storage::is_memory_file(fd)) {  // as AttachServer does
      object->mapping = (flags & board::kObjectWrite) != 0 ? storage::Mapping::of_destination(fd, size)
                                                           : storage::Mapping::of_source(fd, size);
    }
    if (flags & board::kObjectWrite)
      object->written = std::make_unique<std::atomic<uint64_t>[]>(object->extent_count() / 64 + 1);
    ASSERT_TRUE(objects.publish(std::move(object)));
  }

  const uint32_t extent_bytes;
  net::testing::MemoryPort port;
  BoardMemory memory;
  ObjectTable objects;
  KeyTable keys;
  std::atomic<bool> stop{false};
  WorkerEpochs epochs;
  WorkerShared shared;
  Worker worker;
};

class Lane : public ::testing::Test {
 protected:
  Lane() : a_(1), b_(2) {
    base::set_dchecks(true);
    directory_ = std::filesystem::temp_directory_path() / ("sluice-lane-" + std::to_string(getpid()));
    std::filesystem::create_directories(directory_);
  }
  ~Lane() override { std::filesystem::remove_all(directory_); }

  void open_flows(wire::CrcKind crc, uint32_t chunk_bytes) {
    board::FlowConfig c;
    c.flow_id = 0xABCDEF0000000000ULL | kRxSlot;
    c.partition_bytes = 4 * kExtentBytes;
    c.chunk_bytes = chunk_bytes;
    c.extent_bytes = kExtentBytes;
    c.credit_extents = 4;
    c.status_interval_ns = 1'000'000;
    c.crc_kind = static_cast<uint8_t>(crc);
    c.local_port = c.peer_port = 47000;
    c.tag = 5;
    std::memcpy(c.local_ip, b_.port.info().ip4, 16);
    std::memcpy(c.peer_ip, a_.port.info().ip4, 16);
    c.direction = board::Direction::kRx;
    b_.board().flows[kRxSlot].config = c;
    b_.give_keys(kRxSlot, c.tag, protection_);
    b_.command({.kind = board::CommandKind::kOpenFlow, .flow = kRxSlot, .tag = c.tag});
    std::swap(c.local_ip, c.peer_ip);
    c.direction = board::Direction::kTx;
    a_.board().flows[kTxSlot].config = c;
    a_.board().flows[kTxSlot].control.rate_bps = 20'000'000'000;
    a_.give_keys(kTxSlot, c.tag, protection_);
    a_.command({.kind = board::CommandKind::kOpenFlow, .flow = kTxSlot, .tag = c.tag});
  }

  // The sender adds repair symbols where it expects losses: a tenth.
  void repair_ahead() {
    for (Side* const side : {&a_, &b_}) {
      board::FlowConfig& config = side->board().flows[side == &a_ ? kTxSlot : kRxSlot].config;
      config.codes = board::kCodeReedSolomon;
      config.choice.parity = board::Parity::kWhereLost;
      config.expected_loss_percent = 10;
    }
  }

  int make_file(const std::string& name) const {
    return in_memory_ ? memfd_create(name.c_str(), MFD_CLOEXEC)
                      : ::open((directory_ / name).c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
  }

  std::vector<uint8_t> make_source(uint64_t bytes) {
    std::vector<uint8_t> data(bytes);
    for (auto& b : data) b = static_cast<uint8_t>(random_());
    const int fd = make_file("source");
    EXPECT_EQ(::write(fd, data.data(), data.size()), static_cast<ssize_t>(data.size()));
    a_.open_object(fd, bytes, 0);
    const int out = make_file("destination");
    EXPECT_EQ(::ftruncate(out, static_cast<off_t>(bytes)), 0);
    destination_ = UniqueFd(::dup(out));
    b_.open_object(out, bytes, board::kObjectWrite);
    for (uint64_t at = 0; at < bytes; at += 4 * kExtentBytes) {
      partitions_.push_back({at, std::min<uint64_t>(4 * kExtentBytes, bytes - at)});
    }
    return data;
  }

  bool chance(double p) { return p > 0 && std::uniform_real_distribution<>(0, 1)(random_) < p; }

  void carry(Side& from, Side& to, const Faults& f) {
    auto& sent = from.port.frames().sent;
    auto& arrived = to.port.frames().arrived;
    while (!sent.empty()) {
      Frame frame = std::move(sent.front());
      sent.pop_front();
      if (on_the_way && !on_the_way(frame, &from == &a_)) continue;
      if (chance(f.loss)) continue;
      if (chance(f.corrupt)) frame[random_() % frame.size()] ^= static_cast<uint8_t>(1U << (random_() % 8));
      if (chance(f.duplicate)) arrived.push_back(frame);
      if (chance(f.reorder) && arrived.size() > 2) {
        arrived.insert(arrived.end() - 1 - static_cast<std::ptrdiff_t>(random_() % (arrived.size() - 1)),
                       frame);
      } else {
        arrived.push_back(std::move(frame));
      }
    }
  }

  // Nobody reads events, or tells of loss.
  void step_alone() {
    now_ns_ += kStepNs;
    a_.board().control_alive_ns = b_.board().control_alive_ns = now_ns_;
    a_.step(now_ns_);
    carry(a_, b_, {});
    b_.step(now_ns_);
    carry(b_, a_, {});
  }

  void run_steps(int count) {
    for (int i = 0; i < count; ++i) {
      step_alone();
      if (i % 50 == 0) detect_loss();
      handle_events();
    }
  }

  // What control does with gaps: everything older than a step and not received is lost.
  void detect_loss() {
    auto& slot = b_.board().flows[kRxSlot];
    const uint64_t end =
        std::max(slot.state.highest_data_end.load() > 3 ? slot.state.highest_data_end - 3 : 0,
                 slot.state.probe_end.load());
    for (uint64_t seq = slot.control.settled_below; seq < settle_; ++seq) {
      const bool received = (slot.window[(seq % board::kWindowBits) / 64] >> (seq % 64)) & 1;
      ASSERT_TRUE(received || slot.gaps.push({seq, 1}));
    }
    slot.control.settled_below = std::max(slot.control.settled_below.load(), settle_);
    settle_ = std::max(settle_, end);
  }

  void handle_events() {
    board::Event e;
    while (a_.board().workers[0].events.pop(&e)) {
      if (e.kind == board::EventKind::kExtentSent) {
        digest_sent_ ^= crc::shift(crc_, e.digest, bytes_ - e.offset - e.length);
        sent_end_ = e.offset + e.length;
      }
      if (e.kind == board::EventKind::kPartitionSent) ++partitions_ended_;
      if (e.kind == board::EventKind::kFlowClosed) ++closed_;
      ASSERT_NE(e.kind, board::EventKind::kExtentFailed);
    }
    while (b_.board().workers[0].events.pop(&e)) {
      if (e.kind == board::EventKind::kExtentWritten) {
        written_ += e.length;
        if (on_written) on_written(e);
        digest_written_ ^= crc::shift(crc_, e.digest, bytes_ - e.offset - e.length);
        quiet_steps_ = 0;
      }
      if (e.kind == board::EventKind::kMissing) {
        a_.command({.kind = board::CommandKind::kRepair,
                    .flow = kTxSlot,
                    .object = e.object,
                    .offset = e.offset,
                    .length = e.length});
      }
      if (e.kind == board::EventKind::kFlowClosed) ++closed_;
      ASSERT_NE(e.kind, board::EventKind::kExtentFailed);
    }
  }

  // Runs until everything is written; fails when it takes too many steps.
  void transfer(uint64_t bytes, const Faults& faults, bool fast_recovery, uint32_t steps_max = 200'000) {
    bytes_ = bytes;
    for (uint32_t step = 0; written_ < bytes; ++step) {
      ASSERT_LT(step, steps_max) << written_ << " of " << bytes;
      now_ns_ += kStepNs;
      a_.board().control_alive_ns = b_.board().control_alive_ns = now_ns_;
      while (next_partition_ < partitions_.size() && a_.board().workers[0].commands.room() > 64 &&
             step % 4 == 0) {
        const auto [offset, length] = partitions_[next_partition_];
        if (next_partition_ >= 8 + written_ / (4 * kExtentBytes)) break;
        a_.command({.kind = board::CommandKind::kPartition,
                    .flow = kTxSlot,
                    .object = 0,
                    .offset = offset,
                    .length = length});
        ++next_partition_;
      }
      a_.step(now_ns_);
      carry(a_, b_, faults);
      b_.step(now_ns_);
      carry(b_, a_, faults.to_sender_too ? faults : Faults{});
      if (fast_recovery && step % 50 == 0) detect_loss();
      handle_events();
      (void)ask_for_missing();
    }
  }

  // All partitions at once.
  void feed() {
    while (next_partition_ < partitions_.size()) {
      const auto [offset, length] = partitions_[next_partition_++];
      a_.command(
          {.kind = board::CommandKind::kPartition, .flow = kTxSlot, .offset = offset, .length = length});
    }
  }
  // NEED, after so many steps without progress. Whether it was asked.
  bool ask_for_missing() {
    if (++quiet_steps_ <= 2000) return false;
    quiet_steps_ = 0;
    b_.command({.kind = board::CommandKind::kQueryMissing, .flow = kRxSlot, .length = sent_end_});
    return true;
  }

  void expect_identical(const std::vector<uint8_t>& data) {
    std::vector<uint8_t> arrived(data.size() + 1);
    EXPECT_EQ(::pread(destination_.get(), arrived.data(), arrived.size(), 0),
              static_cast<ssize_t>(data.size()));
    arrived.resize(data.size());
    EXPECT_TRUE(arrived == data);
    EXPECT_EQ(digest_written_, crc::compute(crc_, 0, data.data(), data.size()));
    EXPECT_EQ(digest_sent_, digest_written_);
  }

  void close_flows() {
    const uint32_t tag = a_.board().flows[kTxSlot].config.tag;
    a_.command({.kind = board::CommandKind::kCloseFlow, .flow = kTxSlot, .tag = tag});
    b_.command({.kind = board::CommandKind::kCloseFlow, .flow = kRxSlot, .tag = tag});
    for (int i = 0; i < 1000 && closed_ < 2; ++i) {
      now_ns_ += kStepNs;
      a_.step(now_ns_);
      b_.step(now_ns_);
      handle_events();
    }
    EXPECT_EQ(closed_, 2);
    EXPECT_EQ(a_.objects.find(0, 0)->extents_in_use.load(), 0U);
    EXPECT_EQ(b_.objects.find(0, 0)->extents_in_use.load(), 0U);
  }

  void expect_counters_add_up(Side& side) {
    uint64_t sum = side.counter(Counter::rx_control_frames) + side.counter(Counter::rx_statuses) +
                   side.counter(Counter::rx_probes) + side.counter(Counter::rx_chunks) +
                   side.counter(Counter::rx_parity) + side.counter(Counter::rx_echoes);
    for (auto c = static_cast<uint32_t>(Counter::rx_drop_not_ours);
         c <= static_cast<uint32_t>(Counter::rx_drop_echo); ++c) {
      sum += side.counter(static_cast<Counter>(c));
    }
    EXPECT_EQ(sum, side.counter(Counter::rx_frames));
  }

  // What is between the two does with a frame what it likes; false: it does not get through.
  std::function<bool(Frame&, bool from_a)> on_the_way;
  std::function<void(const board::Event&)> on_written;
  std::mt19937_64 random_{42};
  Side a_;
  Side b_;
  std::filesystem::path directory_;
  bool in_memory_ = false;
  UniqueFd destination_;
  wire::CrcKind crc_ = wire::CrcKind::kCrc64Ecma;
  wire::Protection protection_ = wire::Protection::kCrc;
  uint64_t now_ns_ = 1'000'000'000;
  uint64_t bytes_ = 0;
  uint64_t written_ = 0;
  uint64_t settle_ = 0;
  uint64_t sent_end_ = 0;
  uint64_t digest_sent_ = 0;
  uint64_t digest_written_ = 0;
  uint32_t quiet_steps_ = 0;
  size_t next_partition_ = 0;
  size_t partitions_ended_ = 0;
  int closed_ = 0;
  std::vector<std::pair<uint64_t, uint64_t>> partitions_;
};

}  // namespace sluice::lane::testing
