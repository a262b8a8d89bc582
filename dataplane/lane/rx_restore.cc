// Compressed extents, where they arrive: put together chunk by chunk as any extent, then restored, a step a
// turn, and written once they are found to be what their chunks said.
//
// All chunks of one compression say the same head. So two compressions of an extent, or one and its plain
// bytes, are never put together: what is sent later begins the extent anew, and what was overtaken by it
// counts as a duplicate. A frame comes from a stranger where data are under `crc`: what it holds goes nowhere
// before its length and digest are found right. Otherwise the extent is forgotten, and control asks for it
// again. Hot. See rx_side.h.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cstring>

#include "dataplane/crc/crc.h"
#include "dataplane/lane/rx_flow.h"

namespace sluice::lane {

using coding::Step;

void RxSide::prepare_restoring(const board::FlowConfig& config) {
  if (config.choice.compress == board::Compress::kOff || restorer_ != nullptr) return;
  restorer_ = std::make_unique<coding::Restorer>(std::bit_ceil(resources_.port_info.extent_bytes_max));
}

// False: the payload says of what it is a part, and does not say it right.
bool RxSide::takes_form(const wire::Header& h, const seal::Opened& opened,
                        std::optional<wire::CompressedHead>* compressed) {
  if ((h.flags & wire::kFlagCompressed) == 0) return true;
  return wire::take_head(opened.payload(), &compressed->emplace());
}

// False: it is a chunk of something else than what is put together, or nothing is any more.
bool RxSide::has_form(Flow& flow, Extent& e, const wire::Header& h,
                      const std::optional<wire::CompressedHead>& compressed) {
  if (e.state != RxExtentState::kFilling) return false;
  if (e.compressed != compressed) {
    if (e.flow == &flow && e.map.received() > 0 && h.tx_seq < e.form_seq) return false;
    begin_form(e, compressed);
  }
  e.form_seq = std::max(e.form_seq, h.tx_seq);
  return true;
}

void RxSide::begin_form(Extent& e, const std::optional<wire::CompressedHead>& compressed) {
  e.compressed = compressed;
  e.wire_bytes = compressed ? compressed->wire_bytes : e.length;
  e.form_seq = 0;
  e.map.reset(chunk_count(e.wire_bytes, e.flow->config.chunk_bytes));
  parity_.drop(slot_of(e) - first_);
  choose_place(e);
}

void RxSide::begin_restoring(uint32_t extent) {
  change(&extents_[extent].state, RxExtentState::kRestoring);
  restorable_.insert(extent);
}

void RxSide::end_restoring(uint32_t extent) {
  restorable_.erase(extent);
  if (restoring_.extent == extent) restoring_ = {};
}

// One step. True when there was one, or is one to do. An extent that it ends may have to be told to control
// at once.
bool RxSide::restore_next() {
  if (restorable_.empty() || !resources_.has_event_room()) return false;
  if (!resources_.coder.take_turn(resources_.turn_ns)) return true;
  if (restoring_.extent == ExtentTable::kNone) {
    restoring_.extent = restorable_.at(restorable_turn_++ % restorable_.size());
    restorer_->begin(extents_[restoring_.extent].length);
  }
  Extent& e = extents_[restoring_.extent];
  const uint32_t chunk_bytes = e.flow->config.chunk_bytes;
  const uint32_t step_end = restoring_.taken + coding::kRestoreStepBytes;
  Step step = Step::kMore;
  while (step == Step::kMore && restoring_.taken < std::min(step_end, e.wire_bytes)) {
    const uint32_t bytes = chunk_length(e.wire_bytes, chunk_bytes, restoring_.taken / chunk_bytes);
    step = restorer_->step(
        {e.data + restoring_.taken + wire::kCompressedHeadBytes, bytes - wire::kCompressedHeadBytes});
    restoring_.taken += bytes;
  }
  const bool all_taken = restoring_.taken == e.wire_bytes;
  if (step == Step::kMore && !all_taken) return true;
  if (step == Step::kDone && all_taken) {
    restored(e);
  } else {
    not_restored(e);
  }
  return true;
}

void RxSide::restored(Extent& e) {
  Flow& flow = *e.flow;
  const std::span<const uint8_t> plain = restorer_->plain();
  e.crc = crc::compute(flow.channel.seal().data_kind(), 0, plain.data(), plain.size());
  if (e.crc != e.compressed->plain_digest) return not_restored(e);
  if (e.object->has_written(e.key.number)) return release(e);  // another worker has, as a repair
  add(flow.slot.state.compressed_bytes, e.length);
  add(flow.slot.state.compressed_wire_bytes, e.wire_bytes);
  e.compressed.reset();
  choose_place(e);
  if (e.data != nullptr) std::memcpy(e.data, plain.data(), plain.size());
  there(e);
}

void RxSide::not_restored(Extent& e) {
  resources_.count(Counter::rx_false_compressed);
  release(e);
}

}  // namespace sluice::lane
