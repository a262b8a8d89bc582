// SPDX-License-Identifier: Apache-2.0
#include "dataplane/lane/worker.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "dataplane/base/check.h"
#include "dataplane/core/hot.h"

namespace sluice::lane {
namespace {

constexpr uint32_t kCommandsPerLoop = 16;
// Nothing that a worker does for nothing takes so long: somebody else had its core.
constexpr uint64_t kCoreTakenNs = 100'000;

// Several workers hand datagrams on to each other through short rings, which lose what has no room.
IdleSleep idle_sleep(const net::Port& port, uint32_t workers) {
  const net::ReceiveQueue queue = port.receive_queue();
  const board::PortInfo info = port.info();
  const uint64_t datagram_ns =
      uint64_t{info.frame_bytes_max} * 8'000'000'000 / std::max<uint64_t>(info.rate_bps_max, 1);
  if (workers == 1) return {queue.datagrams, queue.loses, datagram_ns};
  return {queue.datagrams == 0 ? kSteeringRingSlots : std::min(queue.datagrams, kSteeringRingSlots), true,
          datagram_ns, false};
}

}  // namespace

Worker::Worker(WorkerShared& shared, uint32_t index)
    : shared_(shared),
      index_(index),
      workers_(shared.board.port.workers),
      datagrams_(shared.port.datagrams(index, board::CounterWriter(shared.board.workers[index]))),
      disk_(*shared.disks[index]),
      scratch_(std::make_unique<seal::Scratch>()),
      coder_(std::make_unique<Coder>()),
      resources_{.datagrams = *datagrams_,
                 .board = shared.board,
                 .slot = shared.board.workers[index],
                 .objects = shared.objects,
                 .disk = disk_,
                 .port_info = shared.board.port,
                 .scratch = *scratch_,
                 .coder = *coder_,
                 .key_epoch_bits = shared.key_epoch_bits},
      tx_extents_(shared.board.port.tx_extents),
      tx_(resources_, tx_extents_, shared.port.pattern()),
      rx_(resources_, tx_extents_, shared.board.port.rx_extents),
      idle_sleep_(idle_sleep(shared.port, workers_)),
      clock_(shared.with_tsc) {}

Status Worker::open() {
  // io_uring lets only the thread that opened a ring use it.
  const auto extents = static_cast<uint32_t>(datagrams_->buffers().size());
  return disk_.open(extents, datagrams_->buffer_memory(), shared_.helper_cpus, shared_.warn);
}

void Worker::run() {
  auto& longest_ns = resources_.slot.counters[static_cast<uint32_t>(Counter::loop_ns_max)];
  uint64_t now_ns = clock_.now_ns();
  while (!shared_.stop.load(std::memory_order_relaxed)) {
    const uint64_t sent_before = counted(Counter::tx_bytes);
    const bool busy = step(now_ns);
    const uint64_t previous_ns = now_ns;
    now_ns = clock_.now_ns();
    if (clock_.partings() > counted(Counter::clock_partings)) [[unlikely]]
      resources_.count(Counter::clock_partings);
    if (datagrams_->another_core_reads())
      store_choice_.turn(counted(Counter::tx_bytes) - sent_before, now_ns - previous_ns, tx_.on_pace());
    if (now_ns - previous_ns > longest_ns.load(std::memory_order_relaxed))
      set(longest_ns, now_ns - previous_ns);
    if (busy || now_ns - previous_ns > kCoreTakenNs) resources_.count(Counter::busy_ns, now_ns - previous_ns);
    if (busy) {
      idle_loops_ = 0;
      idle_sleep_.worked();
    } else if (!shared_.poll_busy && ++idle_loops_ > idle_sleep_.turns_before()) {
      now_ns = idle(previous_ns, now_ns);
    }
  }
}

bool Worker::step(uint64_t now_ns) {
  const HotScope hot;
  resources_.turn_ns = now_ns;
  datagrams_->keep_time(now_ns);
  resources_.store = datagrams_->another_core_reads() && store_choice_.past_caches()
                         ? seal::Store::kPastCaches
                         : seal::Store::kThroughCaches;
  count_disk_time(now_ns);
  bool busy = poll_datagrams(now_ns);
  busy |= poll_steered(now_ns);
  busy |= poll_commands(now_ns);
  busy |= poll_disk();
  busy |= rx_.pump(now_ns);
  busy |= tx_.pump(now_ns);
  disk_.submit();
  datagrams_->flush();
  // This is a quiet point: the only pointers to objects that are held now are counted ones.
  shared_.epochs[index_]->fetch_add(1, std::memory_order_release);
  resources_.count(Counter::loops);
  return busy;
}

// Datagrams, one way or the other; and what else the device brings, which is little.
uint64_t Worker::moved() const { return counted(Counter::rx_frames) + counted(Counter::tx_frames); }

// Sleeps until shortly before something is due, at most a little longer each time. A frame that leaves late
// has to be made up for, so what waking up takes here is learnt.
uint64_t Worker::idle(uint64_t stepped_ns, uint64_t now_ns) {
  const bool flows = tx_.has_flows() || rx_.has_flows();
  // Something that was due at the last step and was not done waits for something else, like the device.
  const uint64_t due_ns = next_due_ns(stepped_ns);
  using For = IdleSleep::For;
  const For what = !flows ? For::kWork : disk_.in_flight() > 0 ? For::kDisk : For::kPeer;
  const uint64_t wanted_ns = idle_sleep_.next_ns(now_ns, moved(), what);
  const uint64_t sleep_ns = std::min(wanted_ns, due_ns - std::min(due_ns, now_ns + wake_delay_.ns()));
  if (sleep_ns < IdleSleep::kNsMin) {
    wake_delay_.stayed_awake(now_ns);
    return now_ns;
  }
  if (flows) {
    datagrams_->sleep(sleep_ns);
  } else {
    resources_.slot.commands.wait(sleep_ns);
  }
  const uint64_t woken_ns = clock_.now_ns();
  // A batch that leaves a little late is as good.
  const uint64_t late_ns = woken_ns - std::min(woken_ns, now_ns + sleep_ns + datagrams_->batch_ns());
  if (late_ns > kCoreTakenNs) resources_.count(Counter::busy_ns, late_ns);
  // A datagram that comes ends some sleeps: how late they would have ended, nobody knows.
  if (woken_ns >= now_ns + sleep_ns) wake_delay_.woke(late_ns, woken_ns);
  idle_sleep_.slept();
  resources_.count(Counter::idle_sleeps);
  return woken_ns;
}

// ---- commands --------------------------------------------------------------------------------

bool Worker::poll_commands(uint64_t now_ns) {
  board::Command command;
  uint32_t n = 0;
  while (n < kCommandsPerLoop && resources_.has_event_room() && resources_.slot.commands.pop(&command)) {
    obey(command, now_ns);
    ++n;
  }
  return n > 0;
}

void Worker::obey(const board::Command& command, uint64_t now_ns) {
  const ColdScope cold;
  if (command.flow >= board::kFlowsMax) return resources_.count(Counter::bad_commands);
  bool good = true;
  switch (command.kind) {
    case board::CommandKind::kOpenFlow: {
      const int error = open_flow(command, now_ns);
      resources_.emit({.kind = board::EventKind::kFlowOpened,
                       .flow = command.flow,
                       .tag = command.tag,
                       .value = static_cast<uint64_t>(error)});
      good = error == 0;
      idle_sleep_.begin();
      break;
    }
    case board::CommandKind::kCloseFlow:
      // A flow that never was, one that is closed and one that could not be opened have the same answer.
      if (!(rx_.close(command.flow, command.tag) | tx_.close(command.flow, command.tag)))
        resources_.emit({.kind = board::EventKind::kFlowClosed, .flow = command.flow, .tag = command.tag});
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
    case board::CommandKind::kGiveUp:
      rx_.give_up(command);
      break;
    case board::CommandKind::kPeerHas:
      good = tx_.peer_has(command);
      break;
    case board::CommandKind::kSendPadded:
      good = tx_.add_padded(command);
      break;
    case board::CommandKind::kQueryWork:
      tx_.query_work(command);
      break;
    default:
      good = false;
  }
  if (!good) resources_.count(Counter::bad_commands);
}

int Worker::open_flow(const board::Command& command, uint64_t now_ns) {
  const uint32_t flow_slot = command.flow;
  const board::FlowConfig c =
      resources_.board.flows[flow_slot].config;  // copied before it is checked: control can write there
  if (c.tag != command.tag) return ECANCELED;    // its control died, and another flow has the slot
  FlowSecret secret;
  if (!shared_.keys.take(flow_slot, c.tag, &secret)) return ENOKEY;
  const auto& port = resources_.port_info;
  const net::Address local = net::Address::of(c.local_ip);
  const net::Address peer = net::Address::of(c.peer_ip);
  const bool ip4 = local.is_ip4();
  const uint32_t chunk_max = ip4 ? port.chunk_bytes_max_ip4 : port.chunk_bytes_max_ip6;
  const bool power_of_two = (c.extent_bytes & (c.extent_bytes - 1)) == 0;
  if (c.session >= board::kSessionsMax || c.chunk_bytes < wire::kChunkBytesMin || c.chunk_bytes > chunk_max ||
      c.chunk_bytes % wire::kChunkBytesStep != 0 || !power_of_two || c.extent_bytes < 65536 ||
      c.extent_bytes > port.extent_bytes_max || c.crc_kind > static_cast<uint8_t>(wire::CrcKind::kRead) ||
      c.reach > board::Reach::kWeOpen || (c.codes & ~codes_built_in()) != 0 ||
      c.choice.compress > board::Compress::kAlways ||
      (c.choice.compress != board::Compress::kOff && !wire::checks(static_cast<wire::CrcKind>(c.crc_kind))) ||
      c.choice.parity > board::Parity::kWhereLost || c.echoes > wire::kEchoesMax ||
      (c.direction == board::Direction::kTx && c.echoes != 0 &&
       (c.echo_bytes == 0 || c.echo_bytes > c.chunk_bytes)) ||
      ip4 != peer.is_ip4() || local != net::Address::of(ip4 ? port.ip4 : port.ip6) || local.is_zero() ||
      peer.is_zero() || (c.local_port - port.udp_port_base) % workers_ != index_) {
    return EINVAL;
  }
  auto& slot = resources_.board.flows[flow_slot];
  std::memset(static_cast<void*>(&slot.state), 0, sizeof slot.state);
  slot.state.last_peer_ns.store(now_ns, std::memory_order_relaxed);
  return c.direction == board::Direction::kRx ? rx_.open(flow_slot, c, secret, now_ns)
                                              : tx_.open(flow_slot, c, secret, now_ns);
}

// ---- datagrams -------------------------------------------------------------------------------

bool Worker::poll_datagrams(uint64_t now_ns) {
  const uint32_t count = datagrams_->receive(burst_);
  for (uint32_t i = 0; i < count; ++i) {
    if (i + 1 < count) __builtin_prefetch(burst_[i + 1].payload.data() + wire::kHeaderBytes);
    if (workers_ > 1 && hand_over(&burst_[i])) continue;
    on_datagram(burst_[i], now_ns);
  }
  if (count > 0) datagrams_->release();
  return count > 0;
}

// True: its port belongs to another worker, which has it now.
bool Worker::hand_over(net::RxDatagram* datagram) {
  const uint32_t owner = (datagram->destination.port - resources_.port_info.udp_port_base) % workers_;
  if (owner == index_) return false;
  auto& ring = *shared_.steering[index_ * workers_ + owner];
  if (ring.room() == 0 || !datagrams_->keep(datagram)) return false;
  const bool pushed = ring.push(*datagram);
  CHECK(pushed, "this worker alone fills the ring, and it had room");
  resources_.count(Counter::rx_steered_frames);
  return true;
}

bool Worker::poll_steered(uint64_t now_ns) {
  bool busy = false;
  for (uint32_t from = 0; from < workers_; ++from) {
    if (from == index_) continue;
    net::RxDatagram datagram;
    auto& ring = *shared_.steering[from * workers_ + index_];
    for (uint32_t n = 0; n < net::kBurst && ring.pop(&datagram); ++n) {
      on_datagram(datagram, now_ns);
      datagrams_->release_kept(datagram);
      busy = true;
    }
  }
  return busy;
}

void Worker::on_datagram(const net::RxDatagram& datagram, uint64_t now_ns) {
  wire::Header header;
  switch (wire::decode(datagram.payload, &header)) {
    case wire::Reject::kNone:
      break;
    case wire::Reject::kTooShort:
      return resources_.count(Counter::rx_drop_too_short);
    case wire::Reject::kBadVersion:
      return resources_.count(Counter::rx_drop_bad_version);
    case wire::Reject::kBadType:
      return resources_.count(Counter::rx_drop_bad_type);
    case wire::Reject::kBadHeaderLength:
      return resources_.count(Counter::rx_drop_bad_header_length);
    case wire::Reject::kReservedNotZero:
      return resources_.count(Counter::rx_drop_reserved_not_zero);
    case wire::Reject::kBadLength:
      return resources_.count(Counter::rx_drop_bad_length);
  }
  switch (header.type) {
    case wire::Type::kData:
      return rx_.on_data(datagram, header, now_ns);
    case wire::Type::kParity:
      return rx_.on_parity(datagram, header, now_ns);
    case wire::Type::kProbe:
      return rx_.on_probe(datagram, header, now_ns);
    case wire::Type::kStatus:
      return tx_.on_status(datagram, header, now_ns);
    case wire::Type::kEcho:
      return header.flags == wire::kFlagReflected ? tx_.on_echo(datagram, header, now_ns)
                                                  : rx_.on_echo(datagram, header, now_ns);
  }
}

// ---- disk ------------------------------------------------------------------------------------

// Each operation in flight has taken so much longer since the last turn. So the sum is what all operations
// took, and none had to be timed.
void Worker::count_disk_time(uint64_t now_ns) {
  const uint64_t since_ns = now_ns - disk_counted_ns_;
  disk_counted_ns_ = now_ns;
  const uint32_t all = disk_.in_flight();
  if (all == 0) return;
  const uint32_t writes = std::min(rx_.writing(), all);
  resources_.count(Counter::disk_write_ns, since_ns * writes);
  resources_.count(Counter::disk_read_ns, since_ns * (all - writes));
  if (writes != 0) resources_.count(Counter::disk_writing_ns, since_ns);
  if (writes != all) resources_.count(Counter::disk_reading_ns, since_ns);
}

bool Worker::poll_disk() {
  if (!resources_.has_event_room()) {
    // Control does not drain the board. What is finished waits in the disk, so that no event is lost.
    resources_.count(Counter::event_ring_full);
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
  resources_.count(Counter::disk_short, disk_.short_operations() - short_before);
  return n > 0;
}

}  // namespace sluice::lane
