// SPDX-License-Identifier: Apache-2.0
#include "dataplane/lane/worker.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "dataplane/core/hot.h"

namespace sluice::lane {
namespace {

constexpr uint32_t kIdleLoopsBeforeSleep = 32;
// Below the first, waking up costs more than waiting. The second gathers a burst of what comes meanwhile; the
// longest with flows leaves half of a receive ring of 256 frames free at 100 Gbit/s.
constexpr uint64_t kSleepNsMin = 10'000;
constexpr uint64_t kSleepNsFirst = 20'000;
constexpr uint64_t kSleepNsMaxWithFlows = 100'000;
constexpr uint64_t kSleepNsMax = 1'000'000;
constexpr uint64_t kLateForgotten = 64;   // sleeps
constexpr uint64_t kLateNsMax = 200'000;  // more is the hypervisor's doing
constexpr uint32_t kCommandsPerLoop = 16;

}  // namespace

Worker::Worker(WorkerShared& shared, uint32_t index)
    : shared_(shared),
      index_(index),
      workers_(shared.board.port.workers),
      queue_(shared.port.queue(index)),
      disk_(*shared.disks[index]),
      context_{.queue = queue_,
               .neighbours = shared.neighbours,
               .board = shared.board,
               .slot = shared.board.workers[index],
               .objects = shared.objects,
               .ring = disk_,
               .port_info = shared.board.port},
      tx_extents_(shared.board.port.tx_extents),
      tx_(context_, tx_extents_, shared.port.pattern()),
      rx_(context_, tx_extents_, shared.board.port.rx_extents) {}

Status Worker::open() {
  // The ring belongs to the thread that opens it.
  const auto extents = static_cast<uint32_t>(queue_.buffers().size());
  return disk_.open(extents, queue_.buffer_memory(), shared_.helper_cpus, shared_.warn);
}

void Worker::run() {
  auto& longest_ns = context_.slot.counters[static_cast<uint32_t>(Counter::loop_ns_max)];
  uint64_t now_ns = shared_.clock.now_ns();
  while (!shared_.stop.load(std::memory_order_relaxed)) {
    const bool busy = step(now_ns);
    const uint64_t previous_ns = now_ns;
    now_ns = shared_.clock.now_ns();
    if (now_ns - previous_ns > longest_ns.load(std::memory_order_relaxed))
      set(longest_ns, now_ns - previous_ns);
    if (busy) {
      idle_loops_ = 0;
      idle_sleep_ns_ = kSleepNsFirst;
    } else if (!shared_.busy && ++idle_loops_ > kIdleLoopsBeforeSleep) {
      now_ns = idle(previous_ns, now_ns);
    }
  }
}

bool Worker::step(uint64_t now_ns) {
  const HotScope hot;
  queue_.keep_time(now_ns);
  bool busy = poll_frames(now_ns);
  busy |= poll_steered(now_ns);
  busy |= poll_commands(now_ns);
  busy |= poll_disk();
  busy |= rx_.pump(now_ns);
  busy |= tx_.pump(now_ns);
  disk_.submit();
  if (queue_.tx_pending() > 0 && queue_.tx_flush() > 0) context_.count(Counter::tx_partial_bursts);
  // A quiet point: no pointer to an object is held but those that are counted.
  shared_.epochs[index_]->fetch_add(1, std::memory_order_release);
  context_.count(Counter::loops);
  return busy;
}

// Sleeps until shortly before something is due, at most a little longer each time. A frame that leaves late
// is lost to the rate, so what waking up takes here is learnt: the most of late, forgotten slowly.
uint64_t Worker::idle(uint64_t stepped_ns, uint64_t now_ns) {
  const bool flows = tx_.has_flows() || rx_.has_flows();
  // What was due at the last step and was not done waits for something else (a next hop, the device).
  const uint64_t due_ns = next_due_ns(stepped_ns);
  const uint64_t sleep_ns = std::min(idle_sleep_ns_, due_ns - std::min(due_ns, now_ns + late_ns_));
  if (sleep_ns < kSleepNsMin) return now_ns;
  const timespec t{0, static_cast<long>(sleep_ns)};
  nanosleep(&t, nullptr);
  const uint64_t woken_ns = shared_.clock.now_ns();
  const uint64_t late_ns = woken_ns - std::min(woken_ns, now_ns + sleep_ns);
  late_ns_ = std::min(std::max(late_ns, late_ns_ - late_ns_ / kLateForgotten), kLateNsMax);
  idle_sleep_ns_ = std::min(idle_sleep_ns_ * 2, flows ? kSleepNsMaxWithFlows : kSleepNsMax);
  context_.count(Counter::idle_sleeps);
  return woken_ns;
}

// ---- commands --------------------------------------------------------------------------------

bool Worker::poll_commands(uint64_t now_ns) {
  board::Command command;
  uint32_t n = 0;
  while (n < kCommandsPerLoop && context_.has_event_room() && context_.slot.commands.pop(&command)) {
    obey(command, now_ns);
    ++n;
  }
  return n > 0;
}

void Worker::obey(const board::Command& command, uint64_t now_ns) {
  const ColdScope cold;
  if (command.flow >= board::kFlowsMax) return context_.count(Counter::bad_commands);
  bool good = true;
  switch (command.kind) {
    case board::CommandKind::kOpenFlow: {
      const int error = open_flow(command.flow, now_ns);
      context_.emit({.kind = board::EventKind::kFlowOpened,
                     .flow = command.flow,
                     .value = static_cast<uint64_t>(error)});
      good = error == 0;
      break;
    }
    case board::CommandKind::kCloseFlow:
      if (context_.board.flows[command.flow].config.direction == board::Direction::kRx) {
        rx_.close(command.flow);
      } else {
        tx_.close(command.flow);
      }
      break;
    case board::CommandKind::kPartition:
      good = tx_.add_partition(command);
      break;
    case board::CommandKind::kRepair:
      good = tx_.add_repair(command);
      break;
    case board::CommandKind::kQueryMissing:
    case board::CommandKind::kQueryUnwritten:
      rx_.query_missing(command);
      break;
    case board::CommandKind::kForgetExtents:
      rx_.forget(command);
      break;
    case board::CommandKind::kPeerHas:
      good = tx_.peer_has(command);
      break;
    case board::CommandKind::kQueryWork:
      tx_.query_work(command);
      break;
    default:
      good = false;
  }
  if (!good) context_.count(Counter::bad_commands);
}

int Worker::open_flow(uint32_t flow_slot, uint64_t now_ns) {
  const board::FlowConfig c = context_.board.flows[flow_slot].config;  // copied once, then checked
  const auto& port = context_.port_info;
  net::Address local;
  net::Address peer;
  std::memcpy(local.bytes, c.local_ip, 16);
  std::memcpy(peer.bytes, c.peer_ip, 16);
  const bool ip4 = local.is_ip4();
  const uint32_t chunk_max = ip4 ? port.chunk_bytes_max_ip4 : port.chunk_bytes_max_ip6;
  const bool power_of_two = (c.extent_bytes & (c.extent_bytes - 1)) == 0;
  if (c.session >= board::kSessionsMax || c.chunk_bytes < wire::kChunkBytesMin || c.chunk_bytes > chunk_max ||
      c.chunk_bytes % wire::kChunkBytesStep != 0 || !power_of_two || c.extent_bytes < 65536 ||
      c.extent_bytes > port.extent_bytes_max ||
      c.crc_kind > static_cast<uint8_t>(wire::CrcKind::kCrc64Ecma) || ip4 != peer.is_ip4() ||
      std::memcmp(local.bytes, ip4 ? port.ip4 : port.ip6, 16) != 0 || local.is_zero() || peer.is_zero() ||
      (c.local_port - port.udp_port_base) % workers_ != index_) {
    return EINVAL;
  }
  auto& slot = context_.board.flows[flow_slot];
  std::memset(static_cast<void*>(&slot.state), 0, sizeof slot.state);
  slot.state.last_peer_ns.store(now_ns, std::memory_order_relaxed);
  return c.direction == board::Direction::kRx ? rx_.open(flow_slot, c, now_ns)
                                              : tx_.open(flow_slot, c, now_ns);
}

// ---- frames ----------------------------------------------------------------------------------

bool Worker::poll_frames(uint64_t now_ns) {
  net::RxFrame frames[net::kBurst];
  uint32_t oversize = 0;
  const uint32_t n = queue_.rx(frames, net::kBurst, &oversize);
  if (oversize > 0) {
    context_.count(Counter::rx_frames, oversize);
    context_.count(Counter::rx_drop_malformed_ip, oversize);
  }
  uint32_t kept = 0;
  for (uint32_t i = 0; i < n; ++i) {
    if (i + 1 < n) __builtin_prefetch(frames[i + 1].data);
    net::UdpFrame udp;
    // Only the port is needed to find the owner; it stands at a fixed place in every UDP frame.
    if (workers_ > 1 && net::parse_udp({frames[i].data, frames[i].length}, &udp) == net::Parse::kUdp &&
        steer(&frames[i], udp.destination_port)) {
      continue;
    }
    on_frame(frames[i], now_ns);
    frames[kept++] = frames[i];
  }
  queue_.release(frames, kept);
  return n > 0;
}

bool Worker::steer(net::RxFrame* frame, uint16_t port) {
  const uint16_t base = context_.port_info.udp_port_base;
  if (port < base) return false;
  const uint32_t owner = (port - base) % workers_;
  if (owner == index_) return false;
  if (!queue_.keep(frame) || !shared_.steering[index_ * workers_ + owner]->push(*frame)) return false;
  context_.count(Counter::rx_steered_frames);
  return true;
}

bool Worker::poll_steered(uint64_t now_ns) {
  bool busy = false;
  for (uint32_t from = 0; from < workers_; ++from) {
    if (from == index_) continue;
    net::RxFrame frame;
    auto& ring = *shared_.steering[from * workers_ + index_];
    for (uint32_t n = 0; n < net::kBurst && ring.pop(&frame); ++n) {
      on_frame(frame, now_ns);
      queue_.release(&frame, 1);
      busy = true;
    }
  }
  return busy;
}

void Worker::on_frame(const net::RxFrame& frame, uint64_t now_ns) {
  context_.count(Counter::rx_frames);
  context_.count(Counter::rx_bytes, frame.length);
  net::UdpFrame udp;
  switch (net::parse_udp({frame.data, frame.length}, &udp)) {
    case net::Parse::kMalformed:
      return context_.count(Counter::rx_drop_malformed_ip);
    case net::Parse::kOther:
      return context_.count(on_neighbour_frame(frame) ? Counter::rx_control_frames
                                                      : Counter::rx_drop_not_ours);
    case net::Parse::kUdp:
      break;
  }
  const uint8_t* const ours = udp.destination.is_ip4() ? context_.port_info.ip4 : context_.port_info.ip6;
  if (std::memcmp(udp.destination.bytes, ours, 16) != 0 ||
      udp.destination_port < context_.port_info.udp_port_base) {
    return context_.count(Counter::rx_drop_not_ours);
  }
  if (udp.checksum != 0 && !frame.udp_checksum_good &&
      net::udp_sum(udp.source, udp.destination, udp.udp) != 0xFFFF) {
    return context_.count(Counter::rx_drop_udp_checksum);
  }
  on_datagram(udp, now_ns);
}

void Worker::on_datagram(const net::UdpFrame& udp, uint64_t now_ns) {
  wire::Header header;
  switch (wire::decode(udp.payload, &header)) {
    case wire::Reject::kNone:
      break;
    case wire::Reject::kTooShort:
      return context_.count(Counter::rx_drop_too_short);
    case wire::Reject::kBadVersion:
      return context_.count(Counter::rx_drop_bad_version);
    case wire::Reject::kBadType:
      return context_.count(Counter::rx_drop_bad_type);
    case wire::Reject::kBadHeaderLength:
      return context_.count(Counter::rx_drop_bad_header_length);
    case wire::Reject::kReservedNotZero:
      return context_.count(Counter::rx_drop_reserved_not_zero);
    case wire::Reject::kBadLength:
      return context_.count(Counter::rx_drop_bad_length);
  }
  switch (header.type) {
    case wire::Type::kData:
      return rx_.on_data(udp, header, now_ns);
    case wire::Type::kProbe:
      return rx_.on_probe(udp, header, now_ns);
    case wire::Type::kStatus:
      return tx_.on_status(udp, header, now_ns);
  }
}

bool Worker::on_neighbour_frame(const net::RxFrame& frame) {
  uint8_t reply[9216];
  uint32_t bytes = 0;
  if (!context_.neighbours.handle({frame.data, frame.length}, reply, &bytes)) return false;
  if (bytes == 0) return true;
  const uint32_t front = std::min(bytes, net::kHeaderRoomBytes);
  uint8_t* const out = queue_.tx_begin(front, reply + front, bytes - front, nullptr, false);
  if (out != nullptr) {
    std::memcpy(out, reply, front);
    context_.count(Counter::tx_frames);
    context_.count(Counter::tx_bytes, bytes);
  }
  return true;
}

// ---- disk ------------------------------------------------------------------------------------

bool Worker::poll_disk() {
  if (!context_.has_event_room()) {
    // Control does not drain the board: hold what is finished, so that no event is lost.
    context_.count(Counter::event_ring_full);
    return false;
  }
  storage::Completion done[net::kBurst];
  const uint64_t short_before = disk_.short_operations();
  const uint32_t n = disk_.poll(done);
  for (uint32_t i = 0; i < n; ++i) {
    if (done[i].slot < tx_extents_) {
      tx_.on_read(done[i].slot, done[i].error);
    } else {
      rx_.on_written(done[i].slot, done[i].error);
    }
  }
  context_.count(Counter::disk_short, disk_.short_operations() - short_before);
  return n > 0;
}

}  // namespace sluice::lane
