// A device in memory: frames wait until a worker takes them, and leave as a device lets them go.
//
// Pure. A sent frame's payload is read from its extent only when the device gets to it, so that an extent
// which is used again too early is found out.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "dataplane/net/frame_datagrams.h"
#include "dataplane/net/port.h"
#include "tools/sim/oracle.h"
#include "tools/sim/plan.h"
#include "tools/sim/scheduler.h"

namespace sluice::sim {

class SimQueue final : public net::FrameQueue {
 public:
  using Leave = std::function<void(std::span<const uint8_t>)>;

  SimQueue(const Plan& plan, uint32_t node, uint32_t extents, Scheduler& scheduler, Oracle& oracle,
           Leave leave, std::function<void(uint64_t)> wake);

  uint32_t rx(net::RxFrame* frames, uint32_t capacity, net::RxSegmented* segmented) override;
  bool keep(net::RxFrame*) override { return true; }
  void release(const net::RxFrame* frames, uint32_t count) override;
  uint8_t* tx_begin(uint32_t header_bytes, const uint8_t* payload, uint32_t payload_bytes,
                    const net::Buffer* owner, bool checksum_l4) override;
  uint32_t tx_flush() override;
  uint32_t tx_pending() const override { return static_cast<uint32_t>(building_.size()); }
  bool device_holds(const net::Buffer& buffer) override;
  std::span<const net::Buffer> buffers() const override { return buffers_; }
  std::span<uint8_t> buffer_memory() const override { return {memory_, memory_bytes_}; }

  void arrive(std::span<const uint8_t> frame);
  uint64_t received() const { return received_; }  // taken by the worker
  void run_device();                               // sends what is due

 private:
  struct Pending {
    uint8_t header[net::kHeaderRoomBytes];
    uint32_t header_bytes = 0;
    const uint8_t* payload = nullptr;  // nullptr: in copy
    uint32_t payload_bytes = 0;
    std::vector<uint8_t> copy;
    uint64_t leaves_ns = 0;
  };
  void send(const Pending& frame);
  void leave(const Pending& frame);

  const Plan& plan_;
  const uint32_t node_;
  Scheduler& scheduler_;
  Oracle& oracle_;
  Leave leave_;
  std::function<void(uint64_t)> wake_;
  std::unique_ptr<uint8_t[]> owned_;
  uint8_t* memory_ = nullptr;
  size_t memory_bytes_ = 0;
  std::vector<net::Buffer> buffers_;
  std::deque<Pending> building_;
  std::deque<Pending> device_;
  std::deque<const uint8_t*> kept_;  // payloads of what has left
  std::deque<std::vector<uint8_t>*> arrived_;
  std::vector<std::unique_ptr<std::vector<uint8_t>>> frames_;
  std::vector<std::vector<uint8_t>*> free_;
  std::vector<uint8_t> out_;
  uint64_t received_ = 0;
};

class SimPort final : public net::Port {
 public:
  SimPort(const Plan& plan, uint32_t node)
      : plan_(plan),
        node_(node),
        neighbours_(host_addresses(node)),
        pattern_memory_(plan.extent_bytes),
        pattern_{.data = pattern_memory_.data(), .bytes = plan.extent_bytes} {}
  void add(std::unique_ptr<SimQueue> queue) { queues_.push_back(std::move(queue)); }

  board::PortInfo info() const override;
  std::unique_ptr<net::DatagramQueue> datagrams(uint32_t worker, board::CounterWriter counters) override {
    return std::make_unique<net::FrameDatagramsOf<SimQueue>>(*queues_[worker], neighbours_, info(), counters);
  }
  SimQueue& queue(uint32_t worker) { return *queues_[worker]; }
  const net::Buffer* pattern() const override { return &pattern_; }
  bool sends_any_memory() const override { return true; }
  Status launch(std::function<void(uint32_t)>) override { return {}; }
  void join() override {}
  void maintain() override {}
  int core_of(uint32_t worker) const override { return static_cast<int>(worker); }

 private:
  static net::HostAddresses host_addresses(uint32_t node);

  const Plan& plan_;
  uint32_t node_;
  net::Neighbours neighbours_;
  std::vector<uint8_t> pattern_memory_;
  net::Buffer pattern_;
  std::vector<std::unique_ptr<SimQueue>> queues_;
};

inline constexpr uint16_t kPortBase = 47000;
void node_address(uint32_t node, uint8_t* ip4);  // ::ffff:10.0.0.x

}  // namespace sluice::sim
