// One flow's connection with its peer: the path of its datagrams, the seal that they are under, and its keys.
//
// One thread: the worker; hot, except open.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "dataplane/board/board.h"
#include "dataplane/core/wire.h"
#include "dataplane/lane/key_table.h"
#include "dataplane/lane/worker_resources.h"
#include "dataplane/net/datagram_queue.h"
#include "dataplane/seal/seal.h"
#include "dataplane/seal/secret_box.h"

namespace sluice::lane {

class FlowChannel {
 public:
  // 0, or errno. `config` was checked; `resources` outlive the channel.
  int open(const WorkerResources& resources, const board::FlowConfig& config, const FlowSecret& secret);

  // False while the way to the peer is being found out: send nothing.
  bool ready(uint64_t now_ns) { return datagrams_->ready(*path_, now_ns); }
  // The same, and tells the board since when it is false.
  bool ready(uint64_t now_ns, board::FlowState& state) {
    const bool is_ready = ready(now_ns);
    if (is_ready == unreachable_ && knows_peer()) tell_reachable(is_ready, now_ns, state);
    return is_ready;
  }
  // False: the peer's address is learnt from its datagrams, and none has come.
  bool knows_peer() const { return path_->knows_peer(); }
  // A datagram of the peer showed that it gets what is sent here.
  void confirm(uint64_t now_ns) { path_->confirm(now_ns); }

  // Sends one datagram, sealed; header.length is the payload's. `owner` and `send_at_ns` as for
  // net::DatagramQueue::begin. On success returns the payload's digest in *digest. False when there is no
  // room: flush, try later.
  bool send(const wire::Header& header, std::span<const uint8_t> payload, const net::Buffer* owner,
            uint64_t send_at_ns, uint64_t* digest);

  // The datagram came the way of this flow.
  bool is_way_of(const net::RxDatagram& datagram) const { return path_->is_way_of(datagram); }
  // The datagram came another way. It may still be the peer's, and then has to prove that
  // (dataplane/core/moved_peer.h): this flow learns its peer's address, and the known one has been silent.
  bool may_be_moved(const net::RxDatagram& datagram, uint64_t now_ns) const;
  // The datagram has proved that: the peer is where it came from.
  void move_to(const net::RxDatagram& datagram, uint64_t now_ns) {
    datagrams_->move_path(*path_, datagram.source);
    heard_ns_ = now_ns;
  }
  // A right datagram came the way of this flow.
  void heard(uint64_t now_ns) { heard_ns_ = now_ns; }
  seal::FlowSeal& seal() { return seal_; }
  const seal::FlowSeal& seal() const { return seal_; }

  // Bytes of a datagram with this payload on the wire: preamble, gap and FCS included.
  uint32_t wire_bytes(uint32_t payload_bytes) const {
    return path_->wire_bytes(wire::kHeaderBytes + payload_bytes);
  }

 private:
  void tell_reachable(bool reachable, uint64_t now_ns, board::FlowState& state);

  net::DatagramQueue* datagrams_ = nullptr;
  const seal::Store* store_ = nullptr;  // of the worker's turn
  std::unique_ptr<net::Path> path_;
  seal::SecretBox<seal::FlowKeys> keys_;
  seal::FlowSeal seal_;
  uint64_t heard_ns_ = 0;
  bool unreachable_ = false;
};

// Inline, as a step of building one datagram.
inline bool FlowChannel::send(const wire::Header& header, std::span<const uint8_t> payload,
                              const net::Buffer* owner, uint64_t send_at_ns, uint64_t* digest) {
  // The cipher is the copy: what it writes leaves from the datagram itself.
  const net::Buffer* const in_place = seal_.enciphers(header.type) ? nullptr : owner;
  const net::TxDatagram datagram = datagrams_->begin(*path_, payload, in_place, send_at_ns);
  if (datagram.header == nullptr) return false;
  const std::span<uint8_t, wire::kHeaderBytes> header_out(datagram.header, wire::kHeaderBytes);
  *digest = seal_.seal(header, payload, header_out, datagram.payload, *store_);
  datagrams_->end(*path_, payload, datagram);
  return true;
}

}  // namespace sluice::lane
