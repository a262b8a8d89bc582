// A port whose frames go no further than two lists, in the hands of the test.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "dataplane/net/frame_datagrams.h"
#include "dataplane/net/port.h"

namespace sluice::net::testing {

using Frame = std::vector<uint8_t>;

class MemoryQueue : public FrameQueue {
 public:
  // One buffer more than extents: the port's pattern.
  MemoryQueue(uint32_t extents, uint32_t extent_bytes)
      : bytes_(static_cast<size_t>(extents + 1) * extent_bytes) {
    void* at = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    data_ = static_cast<uint8_t*>(at);
    for (uint32_t i = 0; i < extents; ++i)
      buffers_.push_back({data_ + static_cast<size_t>(i) * extent_bytes, extent_bytes});
    pattern = {data_ + static_cast<size_t>(extents) * extent_bytes, extent_bytes};
  }
  ~MemoryQueue() override { munmap(data_, bytes_); }

  uint32_t rx(RxFrame* frames, uint32_t capacity, RxSegmented* segmented) override {
    *segmented = std::exchange(told_segmented, {});
    uint32_t n = 0;
    for (; n < capacity && !arrived.empty(); ++n) {
      held_.push_back(std::make_unique<Frame>(std::move(arrived.front())));
      arrived.pop_front();
      frames[n] = {held_.back()->data(), static_cast<uint32_t>(held_.back()->size()), false,
                   held_.back().get()};
    }
    return n;
  }
  bool keep(RxFrame* frame) override {
    if (!keep_copies_) return true;
    held_.push_back(std::make_unique<Frame>(frame->data, frame->data + frame->length));
    std::erase_if(held_, [&](const auto& held) { return held.get() == frame->handle; });
    frame->data = held_.back()->data();
    frame->handle = held_.back().get();
    return true;
  }
  void release(const RxFrame* frames, uint32_t count) override {
    for (uint32_t i = 0; i < count; ++i) {
      std::erase_if(held_, [&](const auto& frame) { return frame.get() == frames[i].handle; });
    }
  }
  uint8_t* tx_begin(uint32_t header_bytes, const uint8_t* payload, uint32_t payload_bytes,
                    const Buffer* owner, bool checksum_l4) override {
    if (building_.size() == kBurst) return nullptr;
    times.push_back(send_at_ns_);
    offloaded += checksum_l4 ? 1 : 0;
    Pending p{Frame(header_bytes), payload, payload_bytes, {}};
    if (owner == nullptr) p.copy.assign(payload, payload + payload_bytes);
    if (owner != nullptr && caller_copies_) p = {Frame(header_bytes + payload_bytes), nullptr, 0, {}};
    building_.push_back(std::move(p));
    return building_.back().header.data();
  }
  uint32_t tx_flush() override {
    for (auto& p : building_) {
      Frame frame = std::move(p.header);
      const uint8_t* const payload = p.copy.empty() ? p.payload : p.copy.data();
      frame.insert(frame.end(), payload, payload + p.payload_bytes);
      sent.push_back(std::move(frame));
      kept_.push_back(p.copy.empty() ? p.payload : nullptr);
      if (kept_.size() > keep_last_) kept_.pop_front();
    }
    building_.clear();
    return 0;
  }
  uint32_t tx_pending() const override { return static_cast<uint32_t>(building_.size()); }
  bool device_holds(const Buffer& buffer) override {
    const auto inside = [&](const uint8_t* at) {
      return at >= buffer.data && at < buffer.data + buffer.bytes;
    };
    for (const auto& p : building_) {
      if (p.copy.empty() && inside(p.payload)) return true;
    }
    return std::any_of(kept_.begin(), kept_.end(), inside);
  }
  std::span<const Buffer> buffers() const override { return buffers_; }
  std::span<uint8_t> buffer_memory() const override { return {data_, bytes_}; }

  // Frames that were received and not given back.
  size_t held() const { return held_.size(); }

  void let_keep_copy() { keep_copies_ = true; }
  void let_caller_copy() { caller_copies_ = true; }
  void let_device_time() { sends_at_times_ = true; }
  // As many drivers: so many frames that have left are given back when others leave.
  void let_device_keep(size_t frames) { keep_last_ = frames; }

  Buffer pattern;
  std::deque<Frame> sent;
  std::vector<uint64_t> times;  // of every frame that was begun: when to send it
  std::deque<Frame> arrived;
  RxSegmented told_segmented;  // of the next burst
  uint32_t offloaded = 0;      // frames whose checksum was left to the device

 private:
  struct Pending {
    Frame header;
    const uint8_t* payload;
    uint32_t payload_bytes;
    Frame copy;
  };
  bool keep_copies_ = false;
  size_t keep_last_ = 0;
  std::deque<const uint8_t*> kept_;
  size_t bytes_;
  uint8_t* data_ = nullptr;
  std::vector<Buffer> buffers_;
  std::deque<Pending> building_;
  std::vector<std::unique_ptr<Frame>> held_;
};

class MemoryPort : public Port {
 public:
  MemoryPort(uint8_t host, uint32_t extents, uint32_t extent_bytes, bool checksum_offload = false)
      : host_(host),
        extents_(extents),
        extent_bytes_(extent_bytes),
        checksum_offload_(checksum_offload),
        queue_(extents, extent_bytes),
        neighbours_(addresses()) {}
  board::PortInfo info() const override {
    board::PortInfo p{};
    std::strcpy(p.device, "memory");
    p.ip4[10] = p.ip4[11] = 0xFF;
    p.ip4[12] = 10;
    p.ip4[15] = host_;
    p.frame_bytes_max = 9014;
    p.chunk_bytes_max_ip4 = 8896;
    p.chunk_bytes_max_ip6 = 8872;
    p.workers = 1;
    p.extent_bytes_max = extent_bytes_;
    p.rx_extents = extents_ / 2;
    p.tx_extents = extents_ - extents_ / 2;
    p.udp_port_base = 47000;
    p.udp_checksum_offload = checksum_offload_ ? 1 : 0;
    return p;
  }
  std::unique_ptr<DatagramQueue> datagrams(uint32_t, board::CounterWriter counters) override {
    return std::make_unique<FrameDatagrams>(queue_, neighbours_, info(), counters);
  }
  MemoryQueue& frames() { return queue_; }
  Status launch(std::function<void(uint32_t)>) override { return {}; }
  const Buffer* pattern() const override { return &queue_.pattern; }
  bool sends_any_memory() const override { return true; }
  void join() override {}
  void maintain() override {}
  int core_of(uint32_t) const override { return 0; }

 private:
  HostAddresses addresses() const {
    HostAddresses host{.mac = {2, 0, 0, 0, 0, host_}, .prefix4 = 24};
    std::memcpy(host.ip4, info().ip4, sizeof host.ip4);
    return host;
  }

  uint8_t host_;
  uint32_t extents_;
  uint32_t extent_bytes_;
  bool checksum_offload_;
  MemoryQueue queue_;
  Neighbours neighbours_;
};

}  // namespace sluice::net::testing
