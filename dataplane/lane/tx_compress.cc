// Compression, where extents are read: a step a turn, on the thread that sends, and before the extent's first
// chunk.
//
// What was compressed takes the extent's buffer: from then on there is only what travels, and whatever sends
// it again, for a gap, a hole or a NEED, sends the same bytes. A whole extent that the peer asks for is read
// again and sent plain (is_sent_plain), so a peer that cannot restore one is never asked to try it again.
// Hot. See tx_side.h.
// SPDX-License-Identifier: Apache-2.0
#include <cerrno>

#include "dataplane/core/chunk_map.h"
#include "dataplane/core/compressed.h"
#include "dataplane/crc/crc.h"
#include "dataplane/lane/tx_flow.h"

namespace sluice::lane {

using coding::CompressChoice;
using coding::Step;

void TxSide::prepare_compression(const board::FlowConfig& config) {
  if (config.choice.compress == board::Compress::kOff || compressor_ != nullptr) return;
  compressor_ = std::make_unique<coding::Compressor>(resources_.port_info.extent_bytes_max);
}

// One step. True when there was one, or is one to do. How long it took, with all else that its turn did, is
// known when the next turn begins: as long as there is something to compress, no turn is followed by a sleep.
bool TxSide::compress_next(uint64_t now_ns) {
  if (compressor_ == nullptr) return false;
  if (timed_step_.bytes > 0) {
    compress_speed_.took(timed_step_.effort, timed_step_.bytes, now_ns - timed_step_.began_ns);
    timed_step_ = {};
  }
  if (compressing_.slot == ExtentTable::kNone && !begin_compressing()) return false;
  if (!resources_.coder.take_turn(resources_.turn_ns)) return true;
  const uint32_t slot = compressing_.slot;
  Extent& e = extents_[slot];
  const Step step = compressor_->step();
  const uint32_t bytes = compressor_->step_bytes();
  timed_step_ = {.bytes = bytes, .effort = compressing_.effort, .began_ns = now_ns};
  if (step == Step::kFailed) {
    e.flow->compression.did_not();
    stay_plain(e);
    forget_compressing(slot);
    return true;
  }
  compressing_.crc = crc::compute(e.flow->channel.seal().data_kind(), compressing_.crc,
                                  e.buffer->data + compressing_.taken, bytes);
  compressing_.taken += bytes;
  if (step == Step::kDone) compressed(slot);
  return true;
}

// Flows take turns.
bool TxSide::begin_compressing() {
  const auto count = static_cast<uint32_t>(flows_.size());
  for (uint32_t i = 0; i < count; ++i) {
    Flow& flow = *flows_[(first_flow_ + i) % count];
    if (!flow.closing && flow.config.choice.compress != board::Compress::kOff && begin_compressing_of(flow))
      return true;
  }
  return false;
}

// The first extent that is read, and on which nothing is decided.
bool TxSide::begin_compressing_of(Flow& flow) {
  const uint64_t rate_bps = flow.slot.control.rate_bps.load(std::memory_order_relaxed);
  const bool ramps = flow.slot.control.rate_ramps.load(std::memory_order_relaxed) != 0;
  for (uint32_t i = 0; i < flow.first_pass.unsent.size(); ++i) {
    const uint32_t slot = flow.first_pass.unsent.at(i);
    Extent& e = extents_[slot];
    if (e.form != TxForm::kUndecided) continue;
    if (e.state != State::kReady || e.length == 0) return false;
    switch (flow.compression.next(e.length, rate_bps, ramps, compress_speed_)) {
      case CompressChoice::Next::kNotNow:
        return false;
      case CompressChoice::Next::kPlain:
        e.form = TxForm::kPlain;
        continue;
      case CompressChoice::Next::kCompress:
        e.form = TxForm::kCompressing;
        compressing_ = {.slot = slot, .effort = CompressChoice::effort(rate_bps, compress_speed_)};
        compressor_->begin({e.buffer->data, e.length}, CompressChoice::frame_bytes_max(e.length),
                           compressing_.effort);
        return true;
    }
  }
  return false;
}

void TxSide::compressed(uint32_t slot) {
  Extent& e = extents_[slot];
  Flow& flow = *e.flow;
  const std::span<const uint8_t> frame = compressor_->frame();
  const uint64_t wire_bytes = wire::wire_bytes_of_frame(frame.size(), flow.config.chunk_bytes);
  const uint64_t digest = compressing_.crc;
  const bool mapped = e.buffer == &e.mapped;
  const net::Buffer& own = resources_.datagrams.buffers()[slot];
  forget_compressing(slot);
  if (wire_bytes >= e.length) {
    flow.compression.did_not();
    return stay_plain(e);
  }
  if (resources_.datagrams.device_holds(own)) return stay_plain(e);  // some of it left already, as a repair
  if (mapped && e.object->mapping->damaged()) return unreadable(slot, ENODATA);  // it was cut off meanwhile
  wire::put_chunks({.wire_bytes = static_cast<uint32_t>(wire_bytes),
                    .frame_crc = static_cast<uint32_t>(
                        crc::compute(wire::CrcKind::kCrc32c, 0, frame.data(), frame.size())),
                    .plain_digest = digest},
                   frame, flow.config.chunk_bytes, own.data);
  if (mapped) e.object->mapping->forget(e.offset, e.mapped.bytes);
  e.buffer = &own;
  e.form = TxForm::kCompressed;
  e.crc = digest;
  e.wire_bytes = static_cast<uint32_t>(wire_bytes);
  e.holes.reset(chunk_count(e.wire_bytes, flow.config.chunk_bytes));
  flow.compression.got_shorter(e.length, e.wire_bytes);
}

void TxSide::stay_plain(Extent& e) { e.form = TxForm::kPlain; }

void TxSide::forget_compressing(uint32_t slot) {
  if (compressing_.slot == slot) compressing_ = {};
}

// Whether its first chunk has to wait for a decision. Where compression is not demanded, the network never
// waits for the turn of an extent.
bool TxSide::holds_back(const Flow& flow, Extent& e) {
  if (e.form == TxForm::kUndecided && !flow.compression.always()) stay_plain(e);
  return e.form == TxForm::kUndecided || e.form == TxForm::kCompressing;
}

}  // namespace sluice::lane
