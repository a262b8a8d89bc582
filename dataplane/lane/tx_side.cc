// Sending, but for the datagrams themselves: commands, reads, the life of extents. What the peer tells is in
// tx_status.cc, the hot part in tx_pump.cc and tx_again.cc.
// SPDX-License-Identifier: Apache-2.0
#include "dataplane/lane/tx_side.h"

#include <algorithm>
#include <cerrno>

#include "dataplane/base/check.h"
#include "dataplane/core/chunk_map.h"
#include "dataplane/core/hot.h"
#include "dataplane/lane/tx_flow.h"

namespace sluice::lane {

TxSide::TxSide(WorkerResources& resources, uint32_t extents, const net::Buffer* pattern)
    : resources_(resources),
      pattern_(pattern),
      pool_(0, extents, std::min(kRepairReserve, extents / 4)),
      extents_(extents),
      table_(extents),
      draining_(extents) {
  flows_.reserve(board::kFlowsMax);
}

TxSide::~TxSide() = default;

TxSide::Flow* TxSide::find(uint32_t flow_slot) {
  for (auto& flow : flows_) {
    if (flow->index == flow_slot) return flow.get();
  }
  return nullptr;
}

int TxSide::open(uint32_t flow_slot, const board::FlowConfig& config, const FlowSecret& secret,
                 uint64_t now_ns) {
  if (find(flow_slot) != nullptr) return EEXIST;
  if (!prepare_codes(config)) return EOPNOTSUPP;
  prepare_compression(config);
  FlowChannel channel;
  const int error = channel.open(resources_, config, secret);
  if (error != 0) return error;
  auto flow = std::make_unique<Flow>(resources_, flow_slot, config, resources_.board.flows[flow_slot],
                                     std::move(channel), static_cast<uint32_t>(extents_.size()), now_ns);
  flow->log.event({.value = config.rate_bps, .kind = board::LogKind::kOpened});
  flow->credit.limit = config.credit_extents;
  flow->pacing.pacer.set_queue(config.peer_queue_datagrams);
  flows_.push_back(std::move(flow));
  return 0;
}

bool TxSide::close(uint32_t flow_slot, uint32_t tag) {
  Flow* const flow = find(flow_slot);
  if (flow == nullptr) return false;
  const bool meant = flow->config.tag == tag;
  if (flow->closing) return meant;
  flow->closing = true;
  flow->repairs.clear();
  flow->retransmissions.lost.clear();
  flow->first_pass.clear();
  for (uint32_t i = 0; i < extents_.size(); ++i) {
    if (extents_[i].flow == flow && extents_[i].state != State::kReading &&
        extents_[i].state != State::kFree && extents_[i].state != State::kDraining) {
      retire(i);
    }
  }
  return meant;
}

// A closed flow goes when its reads have ended and the device reads no file of it.
void TxSide::settle_closed() {
  for (size_t i = 0; i < flows_.size();) {
    if (flows_[i]->closing && flows_[i]->extents_held == 0) {
      const ColdScope cold;
      flows_[i]->log.event({.kind = board::LogKind::kClosed});
      resources_.emit(
          {.kind = board::EventKind::kFlowClosed, .flow = flows_[i]->index, .tag = flows_[i]->config.tag});
      flows_.erase(flows_.begin() + static_cast<std::ptrdiff_t>(i));
    } else {
      ++i;
    }
  }
}

bool TxSide::add_partition(const board::Command& c) {
  Flow* flow = find(c.flow);
  if (flow == nullptr || flow->closing || c.length == 0 || c.offset + c.length < c.offset ||
      c.offset % flow->config.extent_bytes != 0) {
    return false;
  }
  return flow->first_pass.partitions.push({c.object, c.offset, c.length, 0});
}

bool TxSide::add_repair(const board::Command& c) {
  Flow* flow = find(c.flow);
  if (flow == nullptr || flow->closing || c.length == 0 || c.offset + c.length < c.offset) return false;
  if (!flow->repairs.asked.push({c.object, c.offset, c.length})) return false;
  flow->log.bytes(board::LogKind::kNeed, c.object, c.offset, c.length);
  return true;
}

bool TxSide::add_padded(const board::Command& c) {
  Flow* const flow = find(c.flow);
  if (flow == nullptr || flow->closing || c.length == 0) return false;
  const board::PortInfo& port = resources_.port_info;
  const bool ip4 = net::Address::of(flow->config.local_ip).is_ip4();
  const uint32_t most = std::min(ip4 ? port.chunk_bytes_max_ip4 : port.chunk_bytes_max_ip6, pattern_->bytes);
  if (c.length > std::min(most, wire::kChunkBytesMax)) return false;
  flow->probes.padded.begin(c.offset);
  return flow->probes.padded.add(static_cast<uint32_t>(c.length), c.tag);
}

// At most one event for each extent and each queued partition: has_event_room covers them.
void TxSide::query_work(const board::Command& c) {
  Flow* const flow = find(c.flow);
  board::Event run{.kind = board::EventKind::kQueued, .flow = c.flow, .tag = c.tag};
  const auto flush = [&] {
    if (run.length > 0) resources_.emit(run);
    run.length = 0;
  };
  const auto queued = [&](uint32_t object, uint64_t offset, uint64_t length) {
    if (run.length > 0 && (run.object != object || run.offset + run.length != offset)) flush();
    if (run.length == 0) {
      run.object = object;
      run.offset = offset;
    }
    run.length += length;
  };
  for (uint32_t i = 0; flow != nullptr && i < extents_.size(); ++i) {
    const Extent& e = extents_[i];
    if (e.flow != flow || e.state != State::kHeld) continue;
    resources_.emit({.kind = board::EventKind::kHeld,
                     .flow = c.flow,
                     .object = e.object->id,
                     .tag = c.tag,
                     .offset = e.offset,
                     .length = e.length});
  }
  // Runs end where their partition ends, since kPartitionSent will name its bytes.
  for (uint32_t i = 0; flow != nullptr && i < flow->first_pass.unsent.size(); ++i) {
    const Extent& e = extents_[flow->first_pass.unsent.at(i)];
    queued(e.object->id, e.offset, e.object->extent_length(e.key.number));
    if (e.ends_partition) flush();
  }
  for (uint32_t i = 0; flow != nullptr && i < flow->first_pass.partitions.size(); ++i) {
    const Partition& p = flow->first_pass.partitions.at(i);
    queued(p.object, p.offset + p.read, p.length - p.read);
    flush();
  }
  flush();
  resources_.emit({.kind = board::EventKind::kWorkEnd, .flow = c.flow, .tag = c.tag});
}

bool TxSide::start_read(Flow& flow, Object& object, uint64_t number, bool repair, uint32_t* slot) {
  const uint32_t index = pool_.take(repair);
  if (index == storage::ExtentPool::kNone) return false;
  *slot = index;
  Extent& e = extents_[index];
  CHECK(e.state == State::kFree, "the pool has free extents only");
  e = {};
  e.repair = repair;
  e.flow = &flow;
  e.object = &object;
  e.key = {object.session, object.id, number};
  e.offset = number * object.extent_bytes;
  e.length = e.wire_bytes = object.extent_length(number);
  if (!repair && flow.config.choice.compress != board::Compress::kOff) e.form = TxForm::kUndecided;
  e.holes.reset(chunk_count(e.length, flow.config.chunk_bytes));
  object.extents_in_use.fetch_add(1, std::memory_order_relaxed);
  ++flow.extents_held;
  if (!repair) table_.insert(e.key, index);
  if (object.is(board::kObjectGenerate)) {
    e.buffer = pattern_;
    change(&e.state, State::kReady);
    return true;
  }
  if (object.mapping != nullptr) {
    take_mapped(index);
    return true;
  }
  e.buffer = &resources_.datagrams.buffers()[index];
  change(&e.state, State::kReading);
  resources_.disk.start(index, {.fd = object.fd.get(),
                                .data = e.buffer->data,
                                .offset = object.base + e.offset,
                                .length = e.length,
                                .write = false,
                                .direct = object.is(board::kObjectDirect)});
  return true;
}

void TxSide::take_mapped(uint32_t slot) {
  Extent& e = extents_[slot];
  storage::Mapping& mapping = *e.object->mapping;
  e.mapped = {.data = mapping.data() + e.offset,
              .bytes = e.length,
              .share = resources_.datagrams.buffers()[slot].share};
  e.buffer = &e.mapped;
  read_ended(slot, mapping.populate(e.offset, e.length));
}

// Reads as far ahead as the flow soon sends, within its share of the pool.
void TxSide::read_ahead(Flow& flow, uint64_t now_ns) {
  const auto total = static_cast<uint32_t>(extents_.size());
  const uint32_t share = std::max(2U, total / static_cast<uint32_t>(flows_.size()));
  const uint32_t ahead = flow.first_pass.read_ahead.extents(now_ns);
  while (!flow.first_pass.partitions.empty() && flow.extents_held < share &&
         flow.first_pass.unsent.size() < ahead && !flow.first_pass.unsent.full() &&
         resources_.has_event_room()) {
    Partition& p = flow.first_pass.partitions.front();
    if (p.read >= p.length) {  // the peer was found to have the rest
      flow.first_pass.partitions.pop();
      continue;
    }
    Object* object = resources_.objects.find(flow.config.session, p.object);
    if (object == nullptr || object->is(board::kObjectWrite) ||
        object->extent_bytes != flow.config.extent_bytes || p.offset + p.length > object->size) {
      resources_.count(Counter::bad_commands);
      flow.first_pass.partitions.pop();
      continue;
    }
    const uint64_t number = (p.offset + p.read) / object->extent_bytes;
    if (table_.find({object->session, object->id, number}) != ExtentTable::kNone)
      return;  // its former life is still held
    uint32_t slot = 0;
    if (!start_read(flow, *object, number, false, &slot)) return;
    Extent& e = extents_[slot];
    flow.first_pass.unsent.must_push(slot);
    p.read += e.length;
    if (p.read >= p.length) {
      e.ends_partition = true;
      e.partition_offset = p.offset;
      e.partition_length = p.length;
      flow.first_pass.partitions.pop();
    }
  }
}

void TxSide::on_read(uint32_t slot, int error) {
  resources_.count(Counter::disk_reads);
  Extent& e = extents_[slot];
  CHECK(e.state == State::kReading, "a disk ends what was begun on it, once");
  if (e.retire_when_read || e.flow->closing) {
    change(&e.state, State::kReady);
    return retire(slot);
  }
  read_ended(slot, error);
}

void TxSide::read_ended(uint32_t slot, int error) {
  change(&extents_[slot].state, State::kReady);
  if (error != 0) unreadable(slot, error);
}

// Nothing of it is ever sent; control ends the session.
void TxSide::unreadable(uint32_t slot, int error) {
  Extent& e = extents_[slot];
  resources_.count(Counter::disk_errors);
  e.flow->log.event({.offset = e.offset,
                     .length = e.length,
                     .value = static_cast<uint64_t>(error),
                     .object = e.object->id,
                     .kind = board::LogKind::kFailure});
  resources_.emit({.kind = board::EventKind::kExtentFailed,
                   .flow = e.flow->index,
                   .object = e.object->id,
                   .offset = e.offset,
                   .length = e.length,
                   .value = static_cast<uint64_t>(error)});
  e.length = e.wire_bytes = 0;
}

void TxSide::retire(uint32_t slot) {
  Extent& e = extents_[slot];
  if (e.state == State::kReading) {  // on_read does it, since the disk still writes into the buffer
    e.retire_when_read = true;
    return;
  }
  if (!e.repair) table_.erase(e.key);
  if (e.state == State::kHeld) e.flow->repeats.held.erase(slot);
  if (e.parity.waiting) e.flow->parity.waiting.erase(slot);
  if (encoded_.slot == slot) encoded_ = {};
  forget_compressing(slot);
  change(&e.state, State::kDraining);
  draining_.must_push(slot);
  if (e.buffer != &e.mapped) let_go(e);
}

// Many drivers give back what they have sent only when more is sent: the end of a flow or a file must not
// wait for that. Memory of this worker's own can; a file that is mapped stays until the device has read it.
void TxSide::let_go(Extent& e) {
  e.object->extents_in_use.fetch_sub(1, std::memory_order_release);
  CHECK(e.flow->extents_held > 0, "a flow counts the extents it has");
  --e.flow->extents_held;
  e.object = nullptr;
  e.flow = nullptr;
}

void TxSide::drain() {
  for (uint32_t n = draining_.size(); n > 0; --n) {
    const uint32_t slot = draining_.front();
    draining_.pop();
    Extent& e = extents_[slot];
    if (e.buffer != pattern_ && resources_.datagrams.device_holds(*e.buffer)) {
      draining_.must_push(slot);
      continue;
    }
    if (e.buffer == &e.mapped) {
      e.object->mapping->forget(e.offset, e.mapped.bytes);
      let_go(e);
    }
    change(&e.state, State::kFree);
    e = {};
    pool_.give_back(slot);
  }
}

}  // namespace sluice::lane
