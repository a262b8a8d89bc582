// What the parts of one worker share: its queue, its board, its ring, and how frames are sent.
//
// One thread: the worker. Nothing here allocates, locks or blocks.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "dataplane/board/board.h"
#include "dataplane/core/wire.h"
#include "dataplane/lane/object_table.h"
#include "dataplane/net/frame.h"
#include "dataplane/net/neighbours.h"
#include "dataplane/net/port.h"
#include "dataplane/seal/seal.h"
#include "storage/disk.h"

namespace sluice::lane {

using board::Counter;

// Extents of a pool that only repairs may take: one for each of a few flows at a time.
inline constexpr uint32_t kRepairReserve = 2;

struct Context {
  net::FrameQueue& queue;
  net::Neighbours& neighbours;
  board::Board& board;
  board::WorkerSlot& slot;
  ObjectTable& objects;
  storage::Disk& ring;
  board::PortInfo port_info;

  void count(Counter counter, uint64_t n = 1) {
    auto& c = slot.counters[static_cast<uint32_t>(counter)];
    c.store(c.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
  void emit(const board::Event& event) {
    // Room was checked before the work began (has_event_room); what still fails is counted.
    if (!slot.events.push(event)) count(Counter::event_ring_full);
  }
  // More than every extent of this worker could need at once.
  bool has_event_room() const { return slot.events.room() >= kEventReserve; }
  static constexpr uint32_t kEventReserve = 2048;
};

inline void add(std::atomic<uint64_t>& field, uint64_t n) {
  field.store(field.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
}
inline void set(std::atomic<uint64_t>& field, uint64_t v) { field.store(v, std::memory_order_relaxed); }

// The address side of a flow: prebuilt headers, and the next hop.
class FlowPath {
 public:
  FlowPath() = default;
  FlowPath(const board::FlowConfig& config, const uint8_t* mac);

  // Resolves the next hop, asks for it at most every 100 ms. False while unknown.
  bool ready(Context& context, uint64_t now_ns);
  // Sends one datagram; the payload is copied unless it lies in `owner`. On success returns the digest of
  // the payload in *digest. False when the queue has no room: flush, try later.
  bool send(Context& context, const wire::Header& header, std::span<const uint8_t> payload,
            const net::Buffer* owner, const seal::FlowSeal& seal, uint64_t* digest);
  bool is_peer(const net::UdpFrame& frame) const {
    return frame.source_port == peer_port_ && frame.destination_port == local_port_ &&
           frame.source == peer_ && frame.destination == local_;
  }
  // Bytes of a datagram with this payload on the wire: preamble, gap and FCS included.
  uint32_t wire_bytes(uint32_t payload_bytes) const {
    return static_cast<uint32_t>(template_.bytes()) + wire::kHeaderBytes + payload_bytes +
           net::kWireOverheadBytes;
  }

 private:
  net::Address local_;
  net::Address peer_;
  uint16_t local_port_ = 0;
  uint16_t peer_port_ = 0;
  bool checksum_ = false;
  bool offload_ = false;
  bool resolved_ = false;
  uint64_t next_resolve_ns_ = 0;
  uint64_t next_solicit_ns_ = 0;
  uint8_t mac_[6] = {};
  net::FrameTemplate template_;
};

}  // namespace sluice::lane
