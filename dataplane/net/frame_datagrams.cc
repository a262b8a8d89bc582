// SPDX-License-Identifier: Apache-2.0
#include "dataplane/net/frame_datagrams.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "dataplane/base/check.h"
#include "dataplane/core/wire.h"

namespace sluice::net {
namespace {

using board::Counter;

constexpr uint32_t kReplyBytesMax = 9216;

}  // namespace

FrameDatagrams::FrameDatagrams(FrameQueue& frames, Neighbours& neighbours, const board::PortInfo& info,
                               board::CounterWriter counters)
    : frames_(frames), neighbours_(neighbours), info_(info), counters_(counters) {}

int FrameDatagrams::open_path(const PathConfig& config, std::unique_ptr<Path>* path) {
  *path = std::make_unique<FramePath>(config);
  if ((*path)->knows_peer()) find_next_hop(**path);
  return 0;
}

void FrameDatagrams::find_next_hop(Path& path) {
  const uint8_t* const hop = neighbours_.next_hop(path.config().peer.address.bytes);
  set_next_hop(path, hop == nullptr ? Address() : Address::of(hop));
}

void FrameDatagrams::moved(Path& path) {
  auto& way = static_cast<FramePath&>(path);
  const PathConfig& c = path.config();
  way.front = FrameTemplate(c.local.address, c.local.port, c.peer.address, c.peer.port);
  way.resolved = false;
  find_next_hop(path);
}

bool FrameDatagrams::resolve(Path& path, uint64_t now_ns) {
  auto& way = static_cast<FramePath&>(path);
  if (path.next_hop().is_zero()) return false;
  uint8_t question[kHeaderRoomBytes];
  const Neighbours::Found found =
      neighbours_.resolve(path.next_hop().bytes, confirmed_ns(path), now_ns, question);
  if (found.taken) return way.resolved;
  if (found.frame_bytes > 0) send_frame({question, found.frame_bytes});
  if (found.way.lost) counters_.add(Counter::neighbour_lost);
  way.resolved = found.way.known;
  if (!way.resolved) {
    if (found.frame_bytes > 0) counters_.add(Counter::tx_unresolved);
    return false;
  }
  way.front.set_macs(neighbours_.host().mac, found.way.link.bytes);
  way.offload = path.config().udp_checksum && info_.udp_checksum_offload != 0;
  needs_end(path, path.config().udp_checksum && !way.offload);
  ready_until(path, found.way.again_ns);
  return true;
}

// ---- receiving ---------------------------------------------------------------------------------

uint32_t FrameDatagrams::receive(std::span<RxDatagram, kBurst> datagrams) {
  DCHECK(received_ == 0, "a burst is released before the next one is taken");
  RxSegmented segmented;
  received_ = frames_.rx(burst_, kBurst, &segmented);
  if (segmented.joined > 0) counters_.add(Counter::rx_joined_frames, segmented.joined);
  if (segmented.dropped > 0) {
    counters_.add(Counter::rx_frames, segmented.dropped);
    counters_.add(Counter::rx_drop_segmented, segmented.dropped);
  }
  uint32_t count = 0;
  for (uint32_t i = 0; i < received_; ++i) {
    received_bytes_ += burst_[i].length;
    if (!take(burst_[i], &datagrams[count])) continue;
    datagrams[count].index = i;
    ++count;
  }
  if (count == 0) release();
  return count;
}

// True: it is a datagram for us.
bool FrameDatagrams::take(const RxFrame& frame, RxDatagram* datagram) {
  UdpFrame udp;
  switch (parse_udp({frame.data, frame.length}, &udp)) {
    case Parse::kMalformed:
      counters_.add(Counter::rx_drop_malformed_ip);
      return false;
    case Parse::kFragment:
      counters_.add(Counter::rx_drop_fragment);
      return false;
    case Parse::kOther:
      counters_.add(answer_neighbour(frame) ? Counter::rx_control_frames : Counter::rx_drop_not_ours);
      return false;
    case Parse::kUdp:
      break;
  }
  const uint8_t* const ours = udp.destination.is_ip4() ? info_.ip4 : info_.ip6;
  if (std::memcmp(udp.destination.bytes, ours, sizeof udp.destination.bytes) != 0 ||
      udp.destination_port < info_.udp_port_base) {
    counters_.add(Counter::rx_drop_not_ours);
    return false;
  }
  if (udp.checksum != 0 && !frame.udp_checksum_good &&
      udp_sum(udp.source, udp.destination, udp.udp) != 0xFFFF) {
    counters_.add(Counter::rx_drop_udp_checksum);
    return false;
  }
  datagram->source = {udp.source, udp.source_port};
  datagram->destination = {udp.destination, udp.destination_port};
  datagram->payload = udp.payload;
  datagram->frame_bytes = frame.length;
  return true;
}

bool FrameDatagrams::answer_neighbour(const RxFrame& frame) {
  uint8_t reply[kReplyBytesMax];
  const Neighbours::Handled handled = neighbours_.handle({frame.data, frame.length}, now_ns_, reply);
  if (handled.contested) counters_.add(Counter::neighbour_contested);
  if (handled.own_link) counters_.add(Counter::neighbour_own_link);
  if (handled.reply_bytes > 0) send_frame({reply, handled.reply_bytes});
  return handled.ours;
}

bool FrameDatagrams::keep(RxDatagram* datagram) {
  static_assert(kBurst <= 32, "kept_ has a bit for each");
  DCHECK(datagram->index < received_, "it is of the last burst");
  RxFrame& frame = burst_[datagram->index];
  const auto offset = datagram->payload.data() - frame.data;
  if (!frames_.keep(&frame)) return false;
  datagram->payload = {frame.data + offset, datagram->payload.size()};
  datagram->handle = frame.handle;
  kept_ |= 1U << datagram->index;
  received_bytes_ -= frame.length;
  return true;
}

void FrameDatagrams::release() {
  uint32_t count = received_;
  if (kept_ != 0) {
    count = 0;
    for (uint32_t i = 0; i < received_; ++i) {
      if (((kept_ >> i) & 1) == 0) burst_[count++] = burst_[i];
    }
  }
  frames_.release(burst_, count);
  if (count > 0) {
    counters_.add(Counter::rx_frames, count);
    counters_.add(Counter::rx_bytes, received_bytes_);
  }
  received_ = kept_ = 0;
  received_bytes_ = 0;
}

void FrameDatagrams::release_kept(const RxDatagram& datagram) {
  DCHECK(received_ == 0, "the burst that was received goes back first");
  const RxFrame frame{.handle = datagram.handle};
  frames_.release(&frame, 1);
  counters_.add(Counter::rx_frames);
  counters_.add(Counter::rx_bytes, datagram.frame_bytes);
}

// ---- sending -----------------------------------------------------------------------------------

void FrameDatagrams::store_pseudo_checksum(const FramePath& path, uint8_t* frame, uint32_t payload_bytes) {
  wire::store_be16(frame + path.front.udp_checksum_at(),
                   path.front.pseudo_checksum(path.config().header_bytes + payload_bytes));
}

void FrameDatagrams::finish(Path& path, std::span<const uint8_t> payload, TxDatagram datagram) {
  const auto& way = static_cast<const FramePath&>(path);
  if (datagram.payload != nullptr) payload = {datagram.payload, payload.size()};  // as it will leave
  uint8_t* const field = datagram.header - way.front.bytes() + way.front.udp_checksum_at();
  wire::store_be16(field, way.front.udp_checksum({datagram.header, path.config().header_bytes}, payload));
}

void FrameDatagrams::send_frame(std::span<const uint8_t> frame) {
  frames_.send_at(0);
  uint8_t* const out = frames_.tx_begin(static_cast<uint32_t>(frame.size()), nullptr, 0, nullptr, false);
  if (out == nullptr) return;  // as if the wire had lost it
  std::memcpy(out, frame.data(), frame.size());
  ++tx_frames_;
  tx_bytes_ += frame.size();
}

void FrameDatagrams::flush() {
  if (tx_frames_ > 0) {
    counters_.add(Counter::tx_frames, tx_frames_);
    counters_.add(Counter::tx_bytes, tx_bytes_);
    tx_frames_ = tx_bytes_ = 0;
  }
  if (frames_.tx_pending() > 0 && frames_.tx_flush() > 0) counters_.add(Counter::tx_partial_bursts);
}

void FrameDatagrams::keep_time(uint64_t now_ns) {
  now_ns_ = now_ns;
  frames_.keep_time(now_ns);
  sends_at_times_ = frames_.sends_at_times();
  another_core_reads_ = frames_.caller_copies();
}

}  // namespace sluice::net
