// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/port.h"

#include <algorithm>
#include <cstring>

#include "dataplane/lane/coder.h"

namespace sluice::sim {

SimQueue::SimQueue(const Plan& plan, uint32_t node, uint32_t extents, Scheduler& scheduler, Oracle& oracle,
                   Leave leave, std::function<void(uint64_t)> wake)
    : plan_(plan),
      node_(node),
      scheduler_(scheduler),
      oracle_(oracle),
      leave_(std::move(leave)),
      wake_(std::move(wake)) {
  caller_copies_ = plan.caller_copies;
  memory_bytes_ = size_t{extents} * plan.extent_bytes;
  owned_ = std::make_unique_for_overwrite<uint8_t[]>(memory_bytes_ + 4096);
  memory_ = owned_.get() + (4096 - reinterpret_cast<uintptr_t>(owned_.get()) % 4096);
  for (uint32_t i = 0; i < extents; ++i) {
    buffers_.push_back({memory_ + size_t{i} * plan.extent_bytes, plan.extent_bytes, nullptr});
  }
}

uint32_t SimQueue::rx(net::RxFrame* frames, uint32_t capacity, net::RxSegmented* segmented) {
  *segmented = {};
  uint32_t n = 0;
  for (; n < capacity && !arrived_.empty(); ++n) {
    std::vector<uint8_t>* const frame = arrived_.front();
    arrived_.pop_front();
    frames[n] = {frame->data(), static_cast<uint32_t>(frame->size()), false, frame};
  }
  received_ += n;
  return n;
}

void SimQueue::release(const net::RxFrame* frames, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) free_.push_back(static_cast<std::vector<uint8_t>*>(frames[i].handle));
}

void SimQueue::arrive(std::span<const uint8_t> frame) {
  if (arrived_.size() >= plan_.device_ring) return;  // the device drops what nobody takes
  if (free_.empty()) {
    frames_.push_back(std::make_unique<std::vector<uint8_t>>());
    free_.push_back(frames_.back().get());
  }
  std::vector<uint8_t>* const kept = free_.back();
  free_.pop_back();
  kept->assign(frame.begin(), frame.end());
  arrived_.push_back(kept);
  wake_(scheduler_.now_ns());
}

uint8_t* SimQueue::tx_begin(uint32_t header_bytes, const uint8_t* payload, uint32_t payload_bytes,
                            const net::Buffer* owner, bool) {
  if (building_.size() >= net::kBurst) return nullptr;
  Pending& p = building_.emplace_back();
  if (owner != nullptr && is_source(node_)) {
    oracle_.frame_built(node_, scheduler_.now_ns(), header_bytes + payload_bytes);
  }
  if (owner == nullptr || caller_copies_) {  // all of the frame in one piece
    p.payload_bytes = header_bytes + payload_bytes;
    p.copy.resize(p.payload_bytes);
    if (owner == nullptr && payload_bytes > 0) std::memcpy(&p.copy[header_bytes], payload, payload_bytes);
    return p.copy.data();
  }
  p.header_bytes = header_bytes;
  p.payload = payload;
  p.payload_bytes = payload_bytes;
  return p.header;
}

void SimQueue::send(const Pending& p) {
  out_.assign(p.header, p.header + p.header_bytes);
  const uint8_t* const payload = p.payload != nullptr ? p.payload : p.copy.data();
  out_.insert(out_.end(), payload, payload + p.payload_bytes);
  if (is_source(node_)) oracle_.frame_leaves(node_, out_);
  leave_(out_);
}

uint32_t SimQueue::tx_flush() {
  uint32_t room = plan_.device_burst == 0 ? net::kBurst : plan_.device_burst;
  const uint64_t leaves_ns = scheduler_.now_ns() + plan_.device_hold_ns;
  while (!building_.empty() && room-- > 0) {
    if (plan_.device_hold_ns == 0) {
      leave(building_.front());
    } else {
      device_.push_back(std::move(building_.front()));
      device_.back().leaves_ns = leaves_ns;
    }
    building_.pop_front();
  }
  if (!device_.empty() && device_.back().leaves_ns == leaves_ns) wake_(leaves_ns);
  return static_cast<uint32_t>(building_.size());
}

void SimQueue::run_device() {
  while (!device_.empty() && device_.front().leaves_ns <= scheduler_.now_ns()) {
    leave(device_.front());
    device_.pop_front();
  }
}

// A driver that needs copies would be given them if it could keep more than this.
void SimQueue::leave(const Pending& p) {
  send(p);
  kept_.push_back(p.payload);
  const uint32_t keeps = std::min(plan_.device_keeps, plan_.tx_extents / 2);
  while (kept_.size() > keeps) kept_.pop_front();
}

bool SimQueue::device_holds(const net::Buffer& buffer) {
  run_device();
  const auto inside = [&](const uint8_t* payload) {
    return payload >= buffer.data && payload < buffer.data + buffer.bytes;
  };
  return std::ranges::any_of(building_, inside, &Pending::payload) ||
         std::ranges::any_of(device_, inside, &Pending::payload) || std::ranges::any_of(kept_, inside);
}

board::PortInfo SimPort::info() const {
  board::PortInfo p{};
  std::strcpy(p.device, "simulated");
  node_address(node_, p.ip4);
  p.frame_bytes_max = 9014;
  p.chunk_bytes_max_ip4 = 8896;
  p.chunk_bytes_max_ip6 = 8872;
  p.workers = plan_.workers[side_of(node_)];
  p.extent_bytes_max = plan_.extent_bytes;
  p.rx_extents = plan_.rx_extents;
  p.tx_extents = plan_.tx_extents;
  p.udp_port_base = kPortBase;
  p.rate_bps_max = plan_.rate_bps;
  p.queue_datagrams = plan_.queue_datagrams;
  p.codes = lane::codes_built_in();
  return p;
}

net::HostAddresses SimPort::host_addresses(uint32_t node) {
  net::HostAddresses host{.mac = {2, 0, 0, 0, 0, static_cast<uint8_t>(node + 1)}, .prefix4 = 24};
  node_address(node, host.ip4);
  return host;
}

void node_address(uint32_t node, uint8_t* ip4) {
  std::memset(ip4, 0, 16);
  ip4[10] = ip4[11] = 0xFF;
  ip4[12] = 10;
  ip4[15] = static_cast<uint8_t>(node + 1);
}

}  // namespace sluice::sim
