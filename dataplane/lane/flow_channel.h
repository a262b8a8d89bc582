// One flow's connection with its peer: the path of its datagrams, and the seal that they are under.
//
// One thread: the worker; hot, except open.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "dataplane/board/board.h"
#include "dataplane/core/wire.h"
#include "dataplane/net/datagram_queue.h"
#include "dataplane/seal/seal.h"

namespace sluice::lane {

class FlowChannel {
 public:
  // 0, or errno. `config` was checked; `datagrams` outlives the channel.
  int open(net::DatagramQueue& datagrams, const board::FlowConfig& config);

  // False while the way to the peer is being found out: send nothing.
  bool ready(uint64_t now_ns) { return datagrams_->ready(*path_, now_ns); }
  // The same, and tells the board since when it is false.
  bool ready(uint64_t now_ns, board::FlowState& state) {
    const bool is_ready = ready(now_ns);
    if (is_ready == unreachable_) tell_reachable(is_ready, now_ns, state);
    return is_ready;
  }
  // A datagram of the peer showed that it gets what is sent here.
  void confirm(uint64_t now_ns) { path_->confirm(now_ns); }

  // Sends one datagram, sealed; header.length is the payload's. `owner` and `send_at_ns` as for
  // net::DatagramQueue::begin. On success returns the payload's digest in *digest. False when there is no
  // room: flush, try later.
  bool send(const wire::Header& header, std::span<const uint8_t> payload, const net::Buffer* owner,
            uint64_t send_at_ns, uint64_t* digest);

  // The datagram came the way of this flow.
  bool is_way_of(const net::RxDatagram& datagram) const { return path_->is_way_of(datagram); }
  const seal::FlowSeal& seal() const { return seal_; }

  // Bytes of a datagram with this payload on the wire: preamble, gap and FCS included.
  uint32_t wire_bytes(uint32_t payload_bytes) const {
    return path_->wire_bytes(wire::kHeaderBytes + payload_bytes);
  }

 private:
  void tell_reachable(bool reachable, uint64_t now_ns, board::FlowState& state);

  net::DatagramQueue* datagrams_ = nullptr;
  std::unique_ptr<net::Path> path_;
  seal::FlowSeal seal_;
  bool unreachable_ = false;
};

// Inline, as a step of building one datagram.
inline bool FlowChannel::send(const wire::Header& header, std::span<const uint8_t> payload,
                              const net::Buffer* owner, uint64_t send_at_ns, uint64_t* digest) {
  const net::TxDatagram datagram = datagrams_->begin(*path_, payload, owner, send_at_ns);
  if (datagram.header == nullptr) return false;
  const std::span<uint8_t, wire::kHeaderBytes> header_out(datagram.header, wire::kHeaderBytes);
  *digest = seal_.seal(header, payload, header_out, datagram.payload);
  datagrams_->end(*path_, payload, datagram);
  return true;
}

}  // namespace sluice::lane
