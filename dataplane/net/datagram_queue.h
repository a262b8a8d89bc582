// One worker's datagrams: what the lanes send and receive through, whatever carries it.
//
// An adapter makes datagrams of a device's frames (frame_datagrams.h); dataplane/udp has them from sockets.
// So nothing of Ethernet, ARP or IP is seen here, and every call moves a burst or is one step of building
// one.
//
// Hot; one worker thread each: no allocation, lock or log, except open_path. What is dropped below is counted
// below (rx_frames and the rx_drop_* of frames, tx_frames, tx_unresolved, tx_partial_bursts).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "dataplane/net/address.h"
#include "dataplane/net/buffer.h"

namespace sluice::net {

struct RxDatagram {
  Endpoint source;
  Endpoint destination;              // its port tells which worker it belongs to
  std::span<const uint8_t> payload;  // all behind the UDP header, contiguous
  uint32_t frame_bytes = 0;          // what it was on the wire, without FCS
  uint32_t index = 0;                // the queue's own, as is handle
  void* handle = nullptr;
};

struct PathConfig {
  Endpoint local;
  Endpoint peer;              // of the same family
  uint32_t header_bytes = 0;  // with which every datagram begins that is sent on the path; an even number
  bool udp_checksum = false;
  bool no_udp_checksum = false;  // where the kernel would compute one all the same: it is not to
  bool learns_peer = false;      // `peer` is not known: DatagramQueue::move_path tells it, maybe often
};

// The way of one flow to its peer and back. Made by a DatagramQueue, used and destroyed by its thread, before
// the queue ends.
class Path {
 public:
  explicit Path(const PathConfig& config);
  virtual ~Path() = default;
  Path(const Path&) = delete;
  Path& operator=(const Path&) = delete;

  const PathConfig& config() const { return config_; }
  // The datagram came from this path's peer to its local end.
  bool is_way_of(const RxDatagram& datagram) const {
    return datagram.source.port == config_.peer.port && datagram.source.address == config_.peer.address &&
           came_here(datagram) && knows_peer_;
  }
  // It came to this path's local end, from whomever.
  bool came_here(const RxDatagram& datagram) const {
    return datagram.destination.port == config_.local.port &&
           datagram.destination.address == config_.local.address;
  }
  // False until somebody has told it to a path that learns it.
  bool knows_peer() const { return knows_peer_; }
  // A datagram of the peer showed that it gets what is sent here.
  void confirm(uint64_t now_ns) { confirmed_ns_ = now_ns; }
  // Who is asked for the way while it is not ready; zero: there is no way.
  const Address& next_hop() const { return next_hop_; }
  // What a datagram of so many bytes takes of an Ethernet: headers, preamble, gap and FCS included.
  uint32_t wire_bytes(uint32_t datagram_bytes) const { return wire_overhead_bytes_ + datagram_bytes; }

 private:
  friend class DatagramQueue;
  PathConfig config_;
  const uint32_t wire_overhead_bytes_;
  bool knows_peer_;
  uint64_t ready_until_ns_ = 0;
  uint64_t confirmed_ns_ = 0;
  Address next_hop_;
  bool needs_end_ = false;  // end() has something to do
};

struct TxDatagram {
  uint8_t* header = nullptr;   // PathConfig::header_bytes to be filled; nullptr: no room
  uint8_t* payload = nullptr;  // where the payload is to be copied; nullptr: it leaves from where it lies
};

class DatagramQueue {
 public:
  virtual ~DatagramQueue() = default;

  // Cold. 0, or errno: the local end cannot be had.
  virtual int open_path(const PathConfig& config, std::unique_ptr<Path>* path) = 0;
  // False: something must be found out first (the next hop, which this call sets going; or who the peer is).
  // Ask again with every turn, before anything is begun on the path.
  bool ready(Path& path, uint64_t now_ns) { return now_ns < path.ready_until_ns_ || resolve(path, now_ns); }

  // The peer of a path that learns it is there from now on: an address of another host, of the same family.
  void move_path(Path& path, const Endpoint& peer) {
    path.config_.peer = peer;
    path.knows_peer_ = true;
    path.ready_until_ns_ = path.confirmed_ns_ = 0;
    moved(path);
  }

  // Takes a burst: right in form, to an address and port of ours, with a right UDP checksum or none. Valid
  // until release, which must come before the next receive.
  virtual uint32_t receive(std::span<RxDatagram, kBurst> datagrams) = 0;
  // Another worker will handle this datagram, later, and give it back to its own queue. It may be moved to
  // other memory. False: no room to keep it.
  virtual bool keep(RxDatagram* datagram) = 0;
  // All of the last receive that were not kept.
  virtual void release() = 0;
  virtual void release_kept(const RxDatagram& datagram) = 0;

  // Begins a datagram on a path that is ready. The caller fills in the header, and the payload where it is
  // told to, then calls end; both before anything else is begun. No room: flush, try later.
  // `owner`: whose memory the payload lies in. It may be sent from there, and must not change until
  // device_holds says no. nullptr: the payload goes into the datagram. `send_at_ns`: see sends_at_times.
  // (All of it in registers: what is stored on the way waits behind what the peer's core has to let go of.)
  virtual TxDatagram begin(Path& path, std::span<const uint8_t> payload, const Buffer* owner,
                           uint64_t send_at_ns) = 0;
  void end(Path& path, std::span<const uint8_t> payload, TxDatagram datagram) {
    if (path.needs_end_) finish(path, payload, datagram);
  }
  // Hands over what was begun since the last time. What is not taken stays first in line, unless the link is
  // known to be down: then it is dropped.
  virtual void flush() = 0;
  // True while a datagram that points into this buffer has not left. May reclaim.
  virtual bool device_holds(const Buffer& buffer) = 0;

  // True: begin's `send_at_ns` is obeyed, in nanoseconds of the clock that keep_time is told; 0 is at once.
  // Datagrams of a queue leave in the order in which they were begun. May change with keep_time.
  bool sends_at_times() const { return sends_at_times_; }
  // True: what is written into a datagram lies where another core reads it, as behind a memif. May change
  // with keep_time.
  bool another_core_reads() const { return another_core_reads_; }
  // Not 0: datagrams that are due within so long may be sent at once, for the sake of fewer system calls.
  uint64_t batch_ns() const { return batch_ns_; }
  // `now_ns` was read just now. Once per turn.
  virtual void keep_time(uint64_t now_ns) = 0;
  // Cold: nothing is to do for so long. Ends sooner if the queue can tell that a datagram has arrived.
  virtual void sleep(uint64_t ns);

  virtual std::span<const Buffer> buffers() const = 0;  // this worker's extents
  // The memory that holds all of them, for io_uring registration.
  virtual std::span<uint8_t> buffer_memory() const = 0;

 protected:
  // Behind ready(): true sets how long the answer holds.
  virtual bool resolve(Path& path, uint64_t now_ns) = 0;
  // Behind move_path.
  virtual void moved(Path& path) = 0;
  // Behind end(), for paths that need it.
  virtual void finish(Path& path, std::span<const uint8_t> payload, TxDatagram datagram) = 0;

  static void ready_until(Path& path, uint64_t ns) { path.ready_until_ns_ = ns; }
  static void needs_end(Path& path, bool does) { path.needs_end_ = does; }
  static uint64_t confirmed_ns(const Path& path) { return path.confirmed_ns_; }
  static void set_next_hop(Path& path, const Address& next_hop) { path.next_hop_ = next_hop; }

  bool sends_at_times_ = false;
  bool another_core_reads_ = false;
  uint64_t batch_ns_ = 0;
};

}  // namespace sluice::net
