// Datagrams over a device that knows only frames: Ethernet, IP and UDP headers, the next hop's address, the
// UDP checksum, and what a host owes its neighbours.
//
// A frame is parsed once, where it is taken. ARP, neighbour discovery and echo requests are answered here and
// seen by nobody above. Hot, except open_path; one worker thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "dataplane/board/counters.h"
#include "dataplane/net/datagram_queue.h"
#include "dataplane/net/frame.h"
#include "dataplane/net/frame_queue.h"
#include "dataplane/net/neighbours.h"

namespace sluice::net {

class FrameDatagrams : public DatagramQueue {
 public:
  // `info` tells the addresses, the ports and what the device does of itself; `neighbours` is shared by all
  // workers.
  FrameDatagrams(FrameQueue& frames, Neighbours& neighbours, const board::PortInfo& info,
                 board::CounterWriter counters);

  int open_path(const PathConfig& config, std::unique_ptr<Path>* path) override;
  uint32_t receive(std::span<RxDatagram, kBurst> datagrams) override;
  bool keep(RxDatagram* datagram) override;
  void release() override;
  void release_kept(const RxDatagram& datagram) override;
  TxDatagram begin(Path& path, std::span<const uint8_t> payload, const Buffer* owner,
                   uint64_t send_at_ns) override {
    return begin_in(frames_, path, payload, owner, send_at_ns);
  }
  void flush() override;
  bool device_holds(const Buffer& buffer) override { return frames_.device_holds(buffer); }
  void keep_time(uint64_t now_ns) override;
  std::span<const Buffer> buffers() const override { return frames_.buffers(); }
  std::span<uint8_t> buffer_memory() const override { return frames_.buffer_memory(); }

 protected:
  // What begin does, with the queue's own type: a final class then costs no second virtual call a datagram.
  template <typename Frames>
  TxDatagram begin_in(Frames& frames, Path& path, std::span<const uint8_t> payload, const Buffer* owner,
                      uint64_t send_at_ns);

  bool resolve(Path& path, uint64_t now_ns) override;
  void moved(Path& path) override;
  void finish(Path& path, std::span<const uint8_t> payload, TxDatagram datagram) override;

  FrameQueue& frames_;

 private:
  // Headers that are the same in every frame of a flow, and the next hop once it is known.
  struct FramePath;

  void find_next_hop(Path& path);
  bool take(const RxFrame& frame, RxDatagram* datagram);
  bool answer_neighbour(const RxFrame& frame);
  void send_frame(std::span<const uint8_t> frame);
  static void store_pseudo_checksum(const FramePath& path, uint8_t* frame, uint32_t payload_bytes);

  Neighbours& neighbours_;
  const board::PortInfo info_;
  const board::CounterWriter counters_;
  uint64_t now_ns_ = 0;
  // The burst that was received last, until it is released.
  RxFrame burst_[kBurst];
  uint32_t received_ = 0;
  uint32_t kept_ = 0;  // a bit for each of them that another worker has now
  uint64_t received_bytes_ = 0;
  // Begun, and not counted yet.
  uint64_t tx_frames_ = 0;
  uint64_t tx_bytes_ = 0;
};

// The same over a queue whose type is known.
template <typename Frames>
class FrameDatagramsOf final : public FrameDatagrams {
 public:
  FrameDatagramsOf(Frames& frames, Neighbours& neighbours, const board::PortInfo& info,
                   board::CounterWriter counters)
      : FrameDatagrams(frames, neighbours, info, counters) {}
  TxDatagram begin(Path& path, std::span<const uint8_t> payload, const Buffer* owner,
                   uint64_t send_at_ns) override {
    return begin_in(static_cast<Frames&>(frames_), path, payload, owner, send_at_ns);
  }
};

struct FrameDatagrams::FramePath final : Path {
  explicit FramePath(const PathConfig& c)
      : Path(c),
        front(c.local.address, c.local.port, config().peer.address, config().peer.port),
        all_headers_bytes(static_cast<uint32_t>(front.bytes()) + c.header_bytes) {}

  FrameTemplate front;
  const uint32_t all_headers_bytes;
  bool offload = false;   // the device computes the UDP checksum
  bool resolved = false;  // the link address of its next hop is in `front`
};

template <typename Frames>
TxDatagram FrameDatagrams::begin_in(Frames& frames, Path& path, std::span<const uint8_t> payload,
                                    const Buffer* owner, uint64_t send_at_ns) {
  const auto& way = static_cast<const FramePath&>(path);
  const auto payload_bytes = static_cast<uint32_t>(payload.size());
  if (sends_at_times_) frames.send_at(send_at_ns);
  uint8_t* const frame =
      owner != nullptr
          ? frames.tx_begin(way.all_headers_bytes, payload.data(), payload_bytes, owner, way.offload)
          : frames.tx_begin(way.all_headers_bytes + payload_bytes, nullptr, 0, nullptr, way.offload);
  if (frame == nullptr) return {};
  way.front.write(frame, way.config().header_bytes + payload_bytes);
  if (way.offload) store_pseudo_checksum(way, frame, payload_bytes);
  ++tx_frames_;
  tx_bytes_ += way.all_headers_bytes + payload_bytes;
  const bool caller_copies = owner == nullptr || frames.caller_copies();
  return {.header = frame + way.front.bytes(),
          .payload = caller_copies ? frame + way.all_headers_bytes : nullptr};
}

}  // namespace sluice::net
