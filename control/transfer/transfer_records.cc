// What the journal keeps of a transfer, and how a transfer comes back from there.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "control/board/flow_table.h"
#include "control/leg/negotiation.h"
#include "control/transfer/transfer.h"
#include "control/words/bounds.h"

namespace sluice::transfer {
namespace {

// Whether a record makes sense: it may come from a damaged or edited file.
bool makes_sense(const Saved& saved) {
  const std::vector<LegRecord>& legs = saved.record.legs;
  if (legs.empty() || legs.size() > kLegsMax || saved.files.size() > catalog::kFilesMax) return false;
  if (std::ranges::any_of(legs, [](const LegRecord& leg) { return leg.flows.size() > board::kLanesMax; }))
    return false;
  if (saved.files.empty()) return true;
  if (agreement_of(saved.record) == nullptr || saved.record.role == Role::kUnknown) return false;
  const Agreement& agreement = *agreement_of(saved.record);
  const uint32_t extent_bytes = agreement.extent_bytes;
  if (extent_bytes < kExtentBytesMin || extent_bytes > wire::kExtentBytesMax ||
      (extent_bytes & (extent_bytes - 1)) != 0 || !good_partition(agreement.partition_bytes, extent_bytes) ||
      agreement.crc_kind > wire::CrcKind::kCrc64Ecma || agreement.lanes > board::kLanesMax) {
    return false;
  }
  uint64_t extents = 0;
  for (const catalog::File& file : saved.files) {
    if (file.size_bytes > catalog::kFileBytesMax) return false;
    if (!selection::offered_part_problem(file.part, file.size_bytes).empty()) return false;
    if (!catalog::good_holes(file.holes, file.size_bytes, extent_bytes)) return false;
    extents += file.size_bytes / extent_bytes;
  }
  return extents <= kExtentsMax;
}

}  // namespace

Transfer::Transfer(const ThisNode& settings, const Saved& saved, std::optional<Error> trouble,
                   uint64_t now_ns, int64_t unix_now_ns)
    : Transfer(settings, saved.record.id, saved.record.legs.front().peer, saved.record.started_unix_ns,
               now_ns) {
  const Record& record = saved.record;
  for (size_t i = 1; i < std::min<size_t>(record.legs.size(), kLegsMax); ++i) add_leg(record.legs[i].peer);
  job_.initiator = record.initiator;
  job_.role = record.role;
  job_.request = record.request;
  job_.granted = record.granted;
  job_.lease = record.lease;
  job_.moved = record.moved;
  job_.mapped = record.mapped;
  job_.limit_bps = record.limit_bps;
  job_.priority = record.priority;
  if (job_.request)
    going_.pace.set_deadline(job_.request->options.deadline_unix_ns, job_.request->options.deadline_policy);
  going_.pace.restore(record.deadline_admission);
  take_over(record, unix_now_ns);
  peer_.contacted = true;
  paused_ = record.state == RecordState::kPaused;
  if (has_ended(record.state)) {
    outcome_ = record.state;
    files_.left = record.files_left;
    for (const LegRecord& leg : record.legs)
      if (leg.peer_unaware) peer_.unaware.insert(leg.peer);
    error_ = record.error;
  } else if (paused_) {
    held_ = record.error;
  }
  if (!makes_sense(saved)) {
    trouble = Error{ErrorCode::kStorage, "the journal's record of this session is damaged: begin another"};
  }
  if (trouble) {
    if (!outcome_) error_ = std::move(trouble);
    files_.left = false;
    return;
  }
  if (saved.files.empty() || job_.role == Role::kSource) files_.left = false;  // whatever the record says
  if (saved.files.empty()) return;
  job_.began = true;
  job_.terms = *agreement_of(record);
  Status status;
  if (job_.role == Role::kSource) {
    Result<SourceEnd> end = SourceEnd::restore(settings_, *job_.terms, saved);
    if (end) job_.made.emplace<SourceEnd>(std::move(*end));
    if (!end) status = end.error();
  } else {
    Result<DestinationEnd> end = DestinationEnd::restore(settings_, *job_.terms, saved);
    if (end) job_.made.emplace<DestinationEnd>(std::move(*end));
    if (end && job_.granted) job_.destination()->files().bind(*job_.granted);
    if (!end) status = end.error();
  }
  if (status) {
    // Flows of a transfer that is paused are not gone on with: they end as those of nobody.
    if (!outcome_) restore_legs(record);
  } else {
    if (!outcome_) error_ = status.error();
    files_.left = false;
  }
}

// Only one leg goes on with its flows: what their workers hold is asked for when no others write. Those of
// others end as flows of nobody, and these legs begin anew.
void Transfer::restore_legs(const Record& record) {
  bool claim = !paused_;
  for (size_t i = 0; i < legs_.size(); ++i) {
    const bool has_flows = !record.legs[i].flows.empty();
    legs_[LegId(static_cast<uint32_t>(i))]->restore(record.legs[i], claim, out_);
    if (has_flows) claim = false;
  }
}

// ---- the journal -------------------------------------------------------------------------------

RecordState Transfer::record_state() const {
  const bool ending = phase_ >= TransferPhase::kEnding && phase_ != TransferPhase::kLeaving;
  if (ending && !error_) return RecordState::kSucceeded;
  if (ending || cancelled_)
    return error_->code == ErrorCode::kCancelled ? RecordState::kCancelled : RecordState::kFailed;
  return paused_ ? RecordState::kPaused : RecordState::kActive;
}

Record Transfer::record(uint64_t now_ns, RecordState state) const {
  Record record;
  record.id = job_.id;
  record.initiator = job_.initiator;
  record.role = job_.role;
  record.state = state;
  record.error = has_ended(state) ? error_ : held_;
  record.started_unix_ns = times_.started_unix_ns;
  record.files_left = files_.left;
  record.limit_bps = job_.limit_bps;
  record.priority = job_.priority;
  record.deadline_admission = going_.pace.admission();
  record.granted = job_.granted;
  record.lease = job_.lease;
  record.moved = job_.moved;
  record.mapped = job_.mapped;
  for (const auto& leg : legs_) {
    record.legs.push_back(leg->record(!has_ended(state)));
    record.legs.back().peer_unaware = peer_.unaware.contains(leg->peer_name());
  }
  // Open flows are counted by their slots, which the next control reads when it goes on with them.
  board::FlowFigures figures;
  for (LegId leg; leg < legs_.end_id(); ++leg) {
    const LaneSet& lanes = legs_[leg]->lanes();
    figures.add(record.legs[leg.value()].flows.empty() ? lanes.all_figures() : lanes.former_figures());
  }
  record.summary = summary(figures, now_ns);
  return record;
}

void Transfer::write(Entry entry, Batch batch, Durability durability, LegId of_leg) {
  out_.add(
      WriteJournal{.entry = entry, .batch = std::move(batch), .durability = durability, .of_leg = of_leg});
}

void Transfer::write_record(Entry entry, Durability durability, uint64_t now_ns) {
  Batch batch;
  batch.record = record(now_ns, outcome_.value_or(record_state()));
  if (entry == Entry::kRequest) batch.record->request = job_.request;
  write(entry, std::move(batch), durability);
}

std::vector<FileRow> Transfer::file_rows() const {
  std::vector<FileRow> rows;
  if (!job_.began || !job_.has_end()) return rows;
  catalog::FileId id;
  for (const catalog::File& file : job_.catalog()->files()) rows.push_back({.file = id++, .record = file});
  return rows;
}

// The session goes on, and so do its figures. Its record was written when its flows were opened, or later:
// what these have moved since then their slots still know, if they are gone on with.
void Transfer::take_over(const Record& record, int64_t unix_now_ns) {
  before_ = record.summary;
  shown_.bytes_done = record.summary.bytes_done;
  device_ = record.summary.device;
  attempts_.count = record.summary.attempts;
  const bool clock_is_well = unix_now_ns > record.started_unix_ns;
  const uint64_t since_start_ns =
      clock_is_well ? static_cast<uint64_t>(unix_now_ns - record.started_unix_ns) : 0;
  times_.before_ns = std::max(record.summary.elapsed_ns, since_start_ns);
  const bool has_flows =
      std::ranges::any_of(record.legs, [](const LegRecord& leg) { return !leg.flows.empty(); });
  if (record.summary.data_elapsed_ns == 0 && !has_flows) return;
  const uint64_t until_data_ns =
      record.summary.elapsed_ns - std::min(record.summary.elapsed_ns, record.summary.data_elapsed_ns);
  times_.data_before_ns = times_.before_ns - until_data_ns;
  times_.data_started_ns = times_.started_ns;
}

}  // namespace sluice::transfer
