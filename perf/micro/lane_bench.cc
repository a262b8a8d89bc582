// A datagram's whole way through two workers, over a memif's rings in one thread and one cache: what the code
// of both sides costs, without a device, a second core, or the swings of a machine that is shared.
//
// With chunks of 512 bytes that nobody sums, it is what a datagram costs beside its bytes.
// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>
#include <sys/mman.h>

#include <cstring>
#include <memory>
#include <vector>

#include "dataplane/lane/attach_server.h"
#include "dataplane/lane/worker.h"
#include "dataplane/memif/queue.h"
#include "dataplane/memif/region_for_test.h"
#include "dataplane/net/frame_datagrams.h"

namespace sluice {
namespace {

constexpr uint32_t kExtentBytes = 1U << 20;
constexpr uint32_t kExtents = 32;  // a direction
constexpr uint32_t kBufferBytes = 9216;
constexpr uint32_t kTxSlot = 3;
constexpr uint32_t kRxSlot = 7;
constexpr uint16_t kUdpPort = 47000;
constexpr uint64_t kStepNs = 2'000;  // of virtual time: far above what the pacer lets through in it

// The rings are always used in place, so nothing is left to a driver.
class NoDriver final : public memif::DriverQueue {
 public:
  uint32_t rx(net::RxFrame*, uint32_t, net::RxSegmented*) override { return 0; }
  void release(const net::RxFrame*, uint32_t) override {}
  bool keep(net::RxFrame*) override { return false; }
  uint8_t* tx_begin(uint32_t, const uint8_t*, uint32_t, const net::Buffer*, bool) override { return nullptr; }
  uint32_t tx_flush() override { return 0; }
  uint32_t tx_pending() const override { return 0; }
  bool device_holds(const net::Buffer&) override { return false; }
  std::span<const net::Buffer> buffers() const override { return {}; }
  std::span<uint8_t> buffer_memory() const override { return {}; }
  void drop_pending() override {}
};

class RingPort final : public net::Port {
 public:
  RingPort(uint8_t host, bool client, const memif::Region& region)
      : host_(host),
        bytes_(kExtentBytes, 0x5A),
        pattern_{.data = bytes_.data(), .bytes = kExtentBytes},
        queue_({.client = client, .buffer_bytes = kBufferBytes, .frame_bytes_max = 9014}, driver_, gate_),
        neighbours_(addresses()) {
    queue_.attach(&region);
  }
  board::PortInfo info() const override {
    board::PortInfo p{.ip4 = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 10, 0, 0, host_}};
    p.frame_bytes_max = 9014;
    p.chunk_bytes_max_ip4 = 8896;
    p.workers = 1;
    p.extent_bytes_max = kExtentBytes;
    p.rx_extents = p.tx_extents = kExtents;
    p.udp_port_base = kUdpPort;
    return p;
  }
  std::unique_ptr<net::DatagramQueue> datagrams(uint32_t, board::CounterWriter counters) override {
    return std::make_unique<net::FrameDatagramsOf<memif::Queue>>(queue_, neighbours_, info(), counters);
  }
  const net::Buffer* pattern() const override { return &pattern_; }
  bool sends_any_memory() const override { return true; }
  Status launch(std::function<void(uint32_t)>) override { return {}; }
  void join() override {}
  void maintain() override {}
  int core_of(uint32_t) const override { return 0; }

 private:
  net::HostAddresses addresses() const {
    net::HostAddresses host{.mac = {2, 0, 0, 0, 0, host_}, .prefix4 = 24};
    std::memcpy(host.ip4, info().ip4, sizeof host.ip4);
    return host;
  }

  uint8_t host_;
  std::vector<uint8_t> bytes_;
  net::Buffer pattern_;
  NoDriver driver_;
  memif::Gate gate_;
  memif::Queue queue_;
  net::Neighbours neighbours_;
};

class NoDisk final : public storage::Disk {
 public:
  Status open(uint32_t, std::span<uint8_t>, std::span<const int>,
              const std::function<void(const std::string&)>&) override {
    return {};
  }
  void start(uint32_t, const storage::Operation&) override {}
  void submit() override {}
  uint32_t poll(std::span<storage::Completion>) override { return 0; }
  uint32_t in_flight() const override { return 0; }
  uint64_t short_operations() const override { return 0; }
};

struct Unmap {
  void operator()(board::Board* board) const { munmap(board, sizeof *board); }
};

struct End {
  End(uint8_t host, bool client, const memif::Region& region)
      : port(host, client, region),
        board(static_cast<board::Board*>(mmap(nullptr, sizeof(board::Board), PROT_READ | PROT_WRITE,
                                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))),
        shared{.port = port,
               .board = *board,
               .objects = *objects,
               .keys = *keys,
               .poll_busy = true,
               .stop = stop,
               .epochs = epochs,
               .warn = [](const std::string&) {}} {
    board->port = port.info();
    epochs.push_back(std::make_unique<std::atomic<uint64_t>>(0));
    shared.disks.push_back(std::make_unique<NoDisk>());
    shared.steering.push_back(std::make_unique<lane::SteeringRing>());
    worker = std::make_unique<lane::Worker>(shared, 0);
    (void)worker->open();
  }
  // An endless object that no disk is needed for.
  void open_object(uint32_t flags) {
    auto object = std::make_unique<lane::Object>();
    object->flags = flags;
    object->extent_bytes = kExtentBytes;
    object->size = uint64_t{1} << 44;
    if ((flags & board::kObjectWrite) != 0) {
      object->written = std::make_unique<std::atomic<uint64_t>[]>(object->extent_count() / 64 + 1);
    }
    objects->publish(std::move(object));
  }
  void open_flow(uint32_t slot, const board::FlowConfig& config, wire::Protection protection) {
    board->flows[slot].config = config;
    board->flows[slot].control.rate_bps = 900'000'000'000;
    keys->put(slot, {config.tag, protection, {}});
    board->workers[0].commands.push({.kind = board::CommandKind::kOpenFlow, .flow = slot});
  }
  void step(uint64_t now_ns) {
    board->control_alive_ns = now_ns;
    worker->step(now_ns);
    board::Event event;
    while (board->workers[0].events.pop(&event)) {
      written += event.kind == board::EventKind::kExtentWritten ? 1 : 0;
    }
  }

  RingPort port;
  std::unique_ptr<board::Board, Unmap> board;
  std::unique_ptr<lane::ObjectTable> objects = std::make_unique<lane::ObjectTable>();
  seal::SecretBox<lane::KeyTable> keys = seal::SecretBox<lane::KeyTable>::make();
  std::atomic<bool> stop{false};
  lane::WorkerEpochs epochs;
  lane::WorkerShared shared;
  std::unique_ptr<lane::Worker> worker;
  uint64_t written = 0;
};

void open_flows(End& from, End& to, uint32_t chunk_bytes, wire::CrcKind kind, wire::Protection protection) {
  board::FlowConfig c{.flow_id = 0xABCDEF0000000000ULL | kRxSlot,
                      .chunk_bytes = chunk_bytes,
                      .extent_bytes = kExtentBytes,
                      .credit_extents = kExtents / 2,
                      .status_interval_ns = 1'000'000,
                      .local_port = kUdpPort,
                      .peer_port = kUdpPort,
                      .direction = board::Direction::kRx,
                      .crc_kind = static_cast<uint8_t>(kind)};
  std::memcpy(c.local_ip, to.port.info().ip4, sizeof c.local_ip);
  std::memcpy(c.peer_ip, from.port.info().ip4, sizeof c.peer_ip);
  to.open_flow(kRxSlot, c, protection);
  std::swap(c.local_ip, c.peer_ip);
  c.direction = board::Direction::kTx;
  from.open_flow(kTxSlot, c, protection);
}

// What a control of both ends does at each tick.
void take_log(End& end, uint32_t slot) {
  board::LogEvent event;
  while (end.board->flows[slot].log.pop(&event)) benchmark::DoNotOptimize(event);
}

// An iteration is an extent, from a generated object to one that is discarded.
void move_extents(benchmark::State& state, board::LogLevel log_level) {
  const auto chunk_bytes = static_cast<uint32_t>(state.range(0));
  const auto kind = static_cast<wire::CrcKind>(state.range(1));
  memif::SharedRegionForTest shared(1, 8, kBufferBytes);
  End to(2, false, shared.region);
  End from(1, true, shared.region);
  from.open_object(board::kObjectGenerate);
  to.open_object(board::kObjectWrite | board::kObjectDiscard);
  open_flows(from, to, chunk_bytes, kind, static_cast<wire::Protection>(state.range(2)));
  from.board->flows[kTxSlot].control.log_level = static_cast<uint64_t>(log_level);
  to.board->flows[kRxSlot].control.log_level = static_cast<uint64_t>(log_level);
  uint64_t now_ns = 1'000'000'000;
  uint64_t asked = 0;
  for (auto _ : state) {
    const uint64_t goal = to.written + 1;
    for (uint32_t steps = 0; to.written < goal; ++steps) {
      if (steps == 1'000'000) return state.SkipWithError("the transfer stands");
      for (; asked < to.written + kExtents / 2; ++asked) {
        from.board->workers[0].commands.push({.kind = board::CommandKind::kPartition,
                                              .flow = kTxSlot,
                                              .offset = asked * kExtentBytes,
                                              .length = kExtentBytes});
      }
      now_ns += kStepNs;
      from.step(now_ns);
      to.step(now_ns);
    }
    if (log_level == board::LogLevel::kOff) continue;
    take_log(from, kTxSlot);
    take_log(to, kRxSlot);
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations()) * (kExtentBytes / chunk_bytes));
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations()) * kExtentBytes);
}

void lane_extent(benchmark::State& state) { move_extents(state, board::LogLevel::kOff); }
BENCHMARK(lane_extent)
    ->ArgNames({"chunk_bytes", "kind", "protection"})
    ->Args({512, static_cast<int64_t>(wire::CrcKind::kNone), 0})
    ->Args({8192, static_cast<int64_t>(wire::CrcKind::kCrc64Ecma), 0})
    ->Args({8192, static_cast<int64_t>(wire::CrcKind::kCrc64Ecma), 1})
    ->Args({8192, static_cast<int64_t>(wire::CrcKind::kCrc64Ecma), 2});

// The same, with the network log at each of its levels.
void lane_log(benchmark::State& state) { move_extents(state, static_cast<board::LogLevel>(state.range(3))); }
BENCHMARK(lane_log)
    ->ArgNames({"chunk_bytes", "kind", "protection", "log"})
    ->ArgsProduct({{512}, {static_cast<int64_t>(wire::CrcKind::kNone)}, {0}, {0, 1, 2}})
    ->ArgsProduct({{8192}, {static_cast<int64_t>(wire::CrcKind::kCrc64Ecma)}, {0}, {0, 1, 2}});

}  // namespace
}  // namespace sluice
