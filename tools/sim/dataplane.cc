// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/dataplane.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "dataplane/board/attach.h"
#include "dataplane/crc/crc.h"
#include "tools/sim/frame.h"

namespace sluice::sim {
namespace {

constexpr uint32_t kSessions = 4;  // that have a slot at a time, at most
constexpr uint64_t kLoopNs = 1'500;
constexpr uint64_t kIdleNsFirst = 20'000;
constexpr uint64_t kIdleNsMax = 1'000'000;  // with flows
constexpr uint64_t kIdleNsMaxNoFlow = 20'000'000;

// As if nobody looked at the CRC: any data frame gets the one that it should have.
void make_crc_right(const Plan& plan, std::vector<uint8_t>* frame) {
  uint8_t* const sluice = frame->data() + kSluiceAt;
  if (frame->size() < kSluiceAt + wire::kHeaderBytes || (*frame)[12] != 8 || sluice[1] != 0) return;
  const size_t payload = frame->size() - kSluiceAt - wire::kHeaderBytes;
  const uint64_t crc = crc::compute(plan.crc, 0, sluice + wire::kHeaderBytes, payload);
  wire::store_be64(sluice + wire::kHeaderCoveredBytes,
                   crc::compute(plan.crc, crc, sluice, wire::kHeaderCoveredBytes));
  (*frame)[kSluiceAt - 2] = (*frame)[kSluiceAt - 1] = 0;  // no UDP checksum
}

}  // namespace

board::Board* board_memory(uint32_t node) {
  static board::Board* boards[kNodesMax] = {};
  if (boards[node] == nullptr) {
    void* const at = mmap(nullptr, sizeof(board::Board), PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) throw std::bad_alloc();
    boards[node] = static_cast<board::Board*>(at);
    return boards[node];
  }
  board::Board& b = *boards[node];
  b.dataplane_alive_ns = b.control_alive_ns = 0;
  for (auto& worker : b.workers) {
    for (auto& counter : worker.counters) counter.store(0, std::memory_order_relaxed);
    worker.commands.reset();
    worker.events.reset();
  }
  for (auto& flow : b.flows) {
    flow.config = {};
    std::memset(static_cast<void*>(&flow.control), 0, sizeof flow.control);
    std::memset(static_cast<void*>(&flow.state), 0, sizeof flow.state);
    flow.gaps.reset();
  }
  return boards[node];
}

Dataplane::Dataplane(Setup setup)
    : setup_(std::move(setup)),
      board_(*board_memory(setup_.node)),
      port_(setup_.plan, setup_.node),
      objects_(std::make_unique<lane::ObjectTable>()),
      random_(setup_.plan.seed, 100 + setup_.generation) {
  const uint32_t count = setup_.plan.workers[side_of(setup_.node)];
  board_.magic = board::kMagic;
  board_.version = board::kVersion;
  board_.board_bytes = sizeof(board::Board);
  board_.generation = setup_.generation;
  board_.port = port_.info();
  shared_ =
      std::make_unique<lane::WorkerShared>(lane::WorkerShared{.port = port_,
                                                              .board = board_,
                                                              .objects = *objects_,
                                                              .keys = keys_,
                                                              .poll_busy = true,
                                                              .key_epoch_bits = setup_.plan.key_epoch_bits,
                                                              .stop = stop_,
                                                              .epochs = epochs_,
                                                              .warn = [](const std::string&) {}});
  workers_.resize(count);
  for (uint32_t i = 0; i < count; ++i) {
    const auto wake_me = [this, i](uint64_t at_ns) { wake(i, at_ns); };
    port_.add(std::make_unique<SimQueue>(setup_.plan, setup_.node,
                                         setup_.plan.tx_extents + setup_.plan.rx_extents, setup_.scheduler,
                                         setup_.oracle, setup_.send, wake_me));
    epochs_.push_back(std::make_unique<std::atomic<uint64_t>>(0));
    auto disk = std::make_unique<SimDisk>(setup_.disk, wake_me);
    workers_[i].disk = disk.get();
    shared_->disks.push_back(std::move(disk));
  }
  for (uint32_t i = 0; i < count * count; ++i) {
    shared_->steering.push_back(std::make_unique<lane::SteeringRing>());
  }
  for (uint32_t i = 0; i < count; ++i) {
    workers_[i].worker = std::make_unique<lane::Worker>(*shared_, i);
    if (!workers_[i].worker->open()) setup_.oracle.fail("a worker does not open");
    wake(i, setup_.scheduler.now_ns());
  }
}

Dataplane::~Dataplane() {
  *alive_ = false;
  for (const board::FlowSlot& flow : board_.flows) {  // those that had each slot last
    setup_.trace.reached.decoded_chunks += flow.state.decoded_chunks.load(std::memory_order_relaxed);
    if (flow.config.direction == board::Direction::kRx)
      setup_.trace.reached.restored_bytes += flow.state.compressed_bytes.load(std::memory_order_relaxed);
  }
}

void Dataplane::kill() {
  for (Run& run : workers_) run.disk->die();
}

void Dataplane::wake(uint32_t index, uint64_t at_ns) {
  Run& r = workers_[index];
  at_ns = std::max({at_ns, r.free_ns, setup_.scheduler.now_ns()});
  if (at_ns >= r.next_ns) return;
  r.next_ns = at_ns;
  setup_.scheduler.at(at_ns, [this, alive = alive_, index, at_ns] {
    if (*alive && workers_[index].next_ns == at_ns) run(index);
  });
}

void Dataplane::run(uint32_t index) {
  Run& r = workers_[index];
  const uint64_t now_ns = setup_.scheduler.now_ns();
  r.next_ns = UINT64_MAX;
  port_.queue(index).run_device();  // which does not wait for the worker
  if (setup_.disk.faults && setup_.plan.stall_per_million > 0 &&
      random_.chance(setup_.plan.stall_per_million)) {
    r.free_ns = now_ns + random_.below(setup_.plan.stall_ns);
    return wake(index, r.free_ns);
  }
  step(index);
}

void Dataplane::step(uint32_t index) {
  Run& r = workers_[index];
  const uint64_t now_ns = setup_.scheduler.now_ns();
  board_.dataplane_alive_ns.store(now_ns, std::memory_order_relaxed);
  const bool busy = r.worker->step(now_ns);
  if (is_source(setup_.node) && setup_.plan.forged_per_million == 0) check_credit();
  ++loops_;
  r.free_ns = now_ns + kLoopNs;
  for (uint32_t to = 0; to < workers_.size(); ++to) {
    if (!shared_->steering[index * workers_.size() + to]->empty()) wake(to, now_ns);
  }
  if (busy) {
    r.idle_ns = kIdleNsFirst;
    return wake(index, r.free_ns);
  }
  const uint64_t due_ns = r.worker->next_due_ns(now_ns);
  const uint64_t idle_until_ns = now_ns + r.idle_ns;
  wake(index, due_ns > now_ns ? std::min(due_ns, idle_until_ns) : idle_until_ns);
  r.idle_ns = std::min(std::max(r.idle_ns, kIdleNsFirst) * 2, has_flows_ ? kIdleNsMax : kIdleNsMaxNoFlow);
}

// A sender has a first credit by its configuration. Later the newest status counts, which may name less than
// was used: so it is looked at after each step. What the peer lists counts as opened even where its credit
// had been given back.
void Dataplane::check_credit() {
  for (uint32_t slot = 0; slot < setup_.plan.legs * setup_.plan.lanes; ++slot) {
    const board::FlowSlot& flow = board_.flows[slot];
    if (flow.config.flow_id == 0) continue;
    Credit& its = credit_[flow.config.flow_id];
    its.most = std::max<uint64_t>({its.most, flow.config.credit_extents, flow.state.credit_extents});
    const uint64_t opened = flow.state.opened_extents - std::exchange(its.opened, flow.state.opened_extents);
    const uint64_t listed = flow.state.extents_done - std::exchange(its.listed, flow.state.extents_done);
    if (its.opened > its.most && static_cast<int64_t>(opened - listed) > 0)
      setup_.oracle.fail("a flow has gone beyond its credit");
  }
}

void Dataplane::arrive(std::span<const uint8_t> frame) {
  uint32_t index = 0;
  if (workers_.size() > 1 && frame.size() > 40) {
    // A device's hash of the flow: now and then it is another worker's.
    const uint64_t ports = frame[34] + 256U * frame[35] + 65536U * frame[37];
    index = static_cast<uint32_t>(mix(ports + setup_.plan.seed) % workers_.size());
  }
  if (setup_.plan.broken == Break::kNoCrcCheck && setup_.node == kDestination) {
    std::vector<uint8_t> copy(frame.begin(), frame.end());
    make_crc_right(setup_.plan, &copy);
    return port_.queue(index).arrive(copy);
  }
  port_.queue(index).arrive(frame);
}

void Dataplane::take_keys(FlowSlotId slot, const lane::FlowSecret& secret) {
  if (!keys_.put(slot.value(), secret)) setup_.oracle.fail("a worker takes keys while they are given");
}

bool Dataplane::open_object(SessionSlotId session, ObjectId id, uint32_t flags, int fd, uint64_t size) {
  auto object = std::make_unique<lane::Object>();
  object->session = session.value();
  object->id = id.value();
  object->flags = flags;
  object->extent_bytes = setup_.plan.extent_bytes;
  object->size = size;
  object->fd = UniqueFd(fd);
  if ((flags & board::kObjectWrite) != 0) {
    object->written = std::make_unique<std::atomic<uint64_t>[]>(object->extent_count() / 64 + 1);
  }
  return objects_->publish(std::move(object));
}

bool Dataplane::close_object(SessionSlotId session, ObjectId id) {
  const uint32_t index = id.value() % board::kOpenObjectsMax;
  if (auto object = objects_->retract(session.value(), index)) closing_.push_back(std::move(object));
  std::erase_if(closing_, [](const auto& object) { return object->extents_in_use == 0; });
  return std::none_of(closing_.begin(), closing_.end(), [&](const auto& object) {
    return object->session == session.value() && object->id == id.value();
  });
}

bool Dataplane::close_session(SessionSlotId session) {
  for (uint32_t i = 0; i < setup_.plan.sizes.size(); ++i) (void)close_object(session, ObjectId(i));
  return std::none_of(closing_.begin(), closing_.end(),
                      [&](const auto& object) { return object->session == session.value(); });
}

std::string Dataplane::counters() const {
  std::string out;
  for (uint32_t i = 0; i < workers_.size(); ++i) {
    out += fmt::format("node {} worker {}:", setup_.node, i);
    for (uint32_t c = 0; c < board::kCounters; ++c) {
      const uint64_t value = board_.workers[i].counters[c].load(std::memory_order_relaxed);
      if (value != 0) out += fmt::format(" {} {}", board::counter_table()[c].name, value);
    }
    out += '\n';
  }
  for (const board::FlowSlot& flow : board_.flows) {
    if (flow.config.flow_id == 0) continue;
    const board::FlowState& s = flow.state;
    out += fmt::format(
        "flow {:x}: opened {} credit {} done {} retransmitted {} repaired {} no_buffer {} rate {}\n",
        flow.config.flow_id, s.opened_extents.load(), s.credit_extents.load(), s.extents_done.load(),
        s.retransmitted_chunks.load(), s.repaired_chunks.load(), s.no_buffer_drops.load(),
        flow.control.rate_bps.load());
  }
  return out;
}

void Dataplane::check() const {
  uint64_t in_use = 0;
  for (uint32_t id = 0; id < setup_.plan.sizes.size(); ++id) {
    for (uint32_t session = 0; session < kSessions; ++session) {
      const lane::Object* const object = objects_->find(session, id);
      if (object != nullptr) in_use += object->extents_in_use.load();
    }
  }
  for (const auto& object : closing_) in_use += object->extents_in_use.load();
  const uint32_t each = is_source(setup_.node) ? setup_.plan.tx_extents : setup_.plan.rx_extents;
  if (in_use > uint64_t{each} * workers_.size()) {
    setup_.oracle.fail(fmt::format("node {}: {} extents in use, {} were configured", setup_.node, in_use,
                                   each * workers_.size()));
  }
  uint64_t taken = 0;
  uint64_t received = 0;
  uint64_t outcomes = 0;
  for (uint32_t i = 0; i < workers_.size(); ++i) {
    const auto counter = [&](board::Counter c) {
      return board_.workers[i].counters[static_cast<uint32_t>(c)].load(std::memory_order_relaxed);
    };
    received += counter(board::Counter::rx_frames);
    taken += const_cast<SimPort&>(port_).queue(i).received();
    outcomes += counter(board::Counter::rx_control_frames) + counter(board::Counter::rx_statuses) +
                counter(board::Counter::rx_probes) + counter(board::Counter::rx_chunks) +
                counter(board::Counter::rx_parity) + counter(board::Counter::rx_echoes);
    for (auto c = static_cast<uint32_t>(board::Counter::rx_drop_not_ours);
         c <= static_cast<uint32_t>(board::Counter::rx_drop_echo); ++c) {
      outcomes += counter(static_cast<board::Counter>(c));
    }
    if (counter(board::Counter::event_ring_full) > 0) setup_.oracle.fail("the event ring was full");
  }
  if (received != outcomes || received > taken) {
    setup_.oracle.fail(fmt::format("node {}: {} frames received, outcomes of {}, {} came from the device",
                                   setup_.node, received, outcomes, taken));
  }
}

}  // namespace sluice::sim
