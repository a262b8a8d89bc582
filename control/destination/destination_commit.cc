// How a receiving end makes files durable and gives them their names: it asks for what Commit says next, and
// tells Commit what came of it.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "control/destination/destination_end.h"
#include "control/words/range_messages.h"

namespace sluice::transfer {

// Takes what was written until now. A file that is not open yet will be due again.
void DestinationEnd::begin_sync(ObjectId object, Effects& out) {
  if (failing_.contains(object) || !files_.has_file(object) || receiver_->begin_sync(object) == 0) return;
  if (files_.discards()) {  // as certain as it will ever be; the journal need not know
    (void)receiver_->sync_succeeded(object);
    report_durable(object, out);
    return;
  }
  (void)commit(object, CommitEvent::kSyncDue, {}, out);  // only an end can bring an error
}

// `status`: how what was under way has ended.
Status DestinationEnd::commit(ObjectId object, CommitEvent event, const Status& status, Effects& out) {
  if (event == CommitEvent::kFinishDue && files_.discards()) return named(object, out);
  switch (commits_[object].step(event)) {
    case CommitAction::kSync:
      pending_.ask(SyncObject{object}, out);
      return {};
    case CommitAction::kNoteSuspect:
      sync_errors_.insert_or_assign(object, status.error());
      out.log(LogLevel::kWarn,
              fmt::format("{}; asking for what is not certain again", status.error().message));
      journal_suspect(object, Entry::kSuspect, out);
      return {};
    case CommitAction::kForget: {
      const Error error = sync_errors_.extract(object).mapped();
      if (!receiver_->sync_failed(object)) {
        if (Status failed = fail(object, error, out); !failed) return failed;
      }
      return follow_receiver(out);
    }
    case CommitAction::kJournal:
      journal_extents(object, out);
      return {};
    case CommitAction::kTakeBack:
      receiver_->not_journalled(object);
      return status;
    case CommitAction::kReport:
      report_durable(object, out);
      return follow_receiver(out);
    case CommitAction::kFinish:
      pending_.ask(FinishObject{object}, out);
      return {};
    case CommitAction::kReadBack:
      out.log(LogLevel::kInfo,
              fmt::format("{}: reading it back before it gets its name", catalog().shown(object)));
      read_crcs_[object] = 0;
      if (to_digest(object) != 0) digesting_.bytes[object] = 0;
      read_back(object, 0, out);
      return {};
    case CommitAction::kRecord:
      journal_state(object, Entry::kFinishing, catalog::FileState::kFinishing, Durability::kPower, out);
      return {};
    case CommitAction::kName:
      pending_.ask(NameObject{object}, out);
      return {};
    case CommitAction::kNote:
      files_.let_go(object);
      // If the note is lost, a file under its final name says the same. Of a pack nothing does.
      journal_state(object, Entry::kNamed, catalog::FileState::kDone,
                    catalog().packed(object) ? Durability::kPower : Durability::kProcess, out);
      return {};
    case CommitAction::kTell:
      return named(object, out);
    case CommitAction::kFail:
      return status;
  }
  return {};
}

// A disk that failed once may have lost more than it said, even of what it had called certain: the file
// system's own blocks are written without anybody waiting for them.
void DestinationEnd::journal_suspect(ObjectId object, Entry entry, Effects& out) {
  Batch batch;
  std::vector<recovery::Block> forgotten = receiver_->take_changed(object);
  if (!forgotten.empty()) batch.blocks.push_back({.object = object, .blocks = std::move(forgotten)});
  const catalog::Object& its = catalog().object(object);
  for (uint32_t i = 0; i < its.file_count; ++i) {
    catalog::File& file = files_.catalog().file(its.first_file.plus(i));
    file.suspect = true;
    batch.files.push_back({.file = its.first_file.plus(i), .record = file});
  }
  pending_.ask(
      WriteJournal{
          .entry = entry, .object = object, .batch = std::move(batch), .durability = Durability::kPower},
      out);
}

void DestinationEnd::journal_extents(ObjectId object, Effects& out) {
  Batch batch;
  batch.blocks.push_back({.object = object, .blocks = receiver_->sync_succeeded(object)});
  pending_.ask(
      WriteJournal{.entry = Entry::kExtents,
                   .object = object,
                   .batch = std::move(batch),
                   .durability = catalog().packed(object) ? Durability::kProcess : Durability::kPower},
      out);
}

void DestinationEnd::journal_state(ObjectId object, Entry entry, catalog::FileState state,
                                   Durability durability, Effects& out) {
  Batch batch;
  const catalog::Object& its = catalog().object(object);
  for (uint32_t i = 0; i < its.file_count; ++i) {
    catalog::File& file = files_.catalog().file(its.first_file.plus(i));
    file.state = state;
    file.digest = receiver_->digest(object);
    batch.files.push_back({.file = its.first_file.plus(i), .record = file});
  }
  pending_.ask(
      WriteJournal{.entry = entry, .object = object, .batch = std::move(batch), .durability = durability},
      out);
}

void DestinationEnd::report_durable(ObjectId object, Effects& out) {
  say_durable(object, receiver_->journalled(object), out);
}

// A pack is in memory: nothing of it is durable before all of it is, which FileDone says.
void DestinationEnd::say_durable(ObjectId object, const std::vector<recovery::Range>& durable, Effects& out) {
  if (catalog().packed(object) && !files_.discards()) return;
  in_parts(durable, [&](std::vector<recovery::Range> ranges) {
    say(PartitionDone{.object = object, .ranges = std::move(ranges)}, out);
  });
}

FileDone DestinationEnd::file_done(ObjectId object) const {
  const catalog::File& file = catalog().files_of(object).front();
  return {.object = object,
          .digest = receiver_->digest(object),
          .missing = file.missing,
          .whole_digest = file.whole_digest};
}

Status DestinationEnd::named(ObjectId object, Effects& out) {
  ++steps_;
  receiver_->set_done(object, receiver_->digest(object));
  if (several_) several_->remove(object);
  for (catalog::File& file : files_.catalog().files_of(object)) file.digest = receiver_->digest(object);
  files_.done(object, out);
  legs_.each_begun([&](const DestinationLeg& leg) { say_digests(object, leg.id(), out); });
  say(file_done(object), out);
  return follow_receiver(out);
}

// Once more, of a pack that is done, or a file that was finished: who lost the connection may not have heard
// of it.
void DestinationEnd::say_missing(ObjectId object, LegId leg, Effects& out) const {
  const catalog::File& file = catalog().files_of(object).front();
  if (file.missing.names.empty() && !file.whole_digest) return;
  say_on(leg, file_done(object), out);
}

// Hard links and the times of directories need what they concern.
bool DestinationEnd::waits_for_others(ObjectId object) const {
  if (files_.discards() || catalog().files_of(object).front().kind != catalog::FileKind::kLastPack)
    return false;
  for (uint32_t i = 0; i < catalog().object_count(); ++i) {
    if (ObjectId(i) != object && !receiver_->done(ObjectId(i))) return true;
  }
  return false;
}

// ---- what came of it ---------------------------------------------------------------------------

Status DestinationEnd::on(const FilesCreated& event, Effects& out) {
  Status status = files_.on(event, out);
  if (!status) return status;
  const ObjectId first = receive_new();
  if (files_.growth() == GrowthPhase::kCreating) note_growth(first, out);
  return {};
}

// They are in the file that was just made, as they were at the source, and need not come.
void DestinationEnd::put_holes(ObjectId object) {
  const catalog::File& file = catalog().files_of(object).front();
  if (files_.discards() || file.failed()) return;
  receiver_->put_zeros(object, file.holes);
  // They are summed as what is left of a file after an interruption: read, beside the data that arrives.
  if (!file.holes.empty() && files_.sums_of(object) != 0) receiver_->distrust(object);
}

Status DestinationEnd::on(const FilesRecovered& event, Effects& out) {
  interrupted_ = true;
  for (uint32_t i = 0; i < event.objects.size(); ++i) {
    const ObjectId object(i);
    if (catalog().files_of(object).front().failed()) continue;
    const bool named = event.objects[object] == Recovered::kNamed;
    if (receiver_->done(object) && !named && !files_.discards()) note_lost(object, out);
    if (event.objects[object] == Recovered::kHeld) distrust(object);
    if (!named || receiver_->done(object)) continue;
    receiver_->set_done(object, catalog().files_of(object).front().digest);
    commits_[object].found_named();
  }
  return files_.on(event, out);
}

Status DestinationEnd::on(const FileRecreated& event, Effects& out) {
  if (event.identity) {
    receiver_->begin_anew(event.object);
    put_holes(event.object);
  }
  const Status status = files_.on(event, receiver_->take_changed(event.object), out);
  if (catalog().files_of(event.object).front().failed()) receiver_->failed(event.object);
  return status;
}

Status DestinationEnd::on(const ObjectSynced& event, Effects& out) {
  pending_.answered();
  ++steps_;
  return commit(event.object, event.status ? CommitEvent::kGood : CommitEvent::kBad, event.status, out);
}

Status DestinationEnd::on(const ObjectFinished& event, Effects& out) {
  pending_.answered();
  ++steps_;
  const catalog::File& file = catalog().files_of(event.object).front();
  // The files of a pack were read back, if at all, before they got their names.
  const bool read_back = (file.suspect || file.verify || to_digest(event.object) != 0) && !file.packed();
  const CommitEvent good = read_back ? CommitEvent::kGoodReadBack : CommitEvent::kGood;
  return commit(event.object, event.status ? good : CommitEvent::kBad, event.status, out);
}

Status DestinationEnd::on(const ObjectNamed& event, Effects& out) {
  pending_.answered();
  for (catalog::File& file : files_.catalog().files_of(event.object)) {
    file.missing = event.missing;
    file.whole_digest = event.whole_digest;
    if (file.packed()) file.digests.found = event.digests;
    if (event.identity && !file.packed()) file.identity = *event.identity;
  }
  if (!event.status && event.given) given_.insert(event.object);
  // Whoever removed a directory, or mounted something over it, took it from all files: an operator puts it
  // back, and what is gone then begins anew.
  const bool its_own = !event.given && !event.away;
  if (!event.status && its_own && !files_.halted() && catalog().may_fail_in_part() &&
      !catalog().packed(event.object)) {
    (void)commit(event.object, CommitEvent::kBad, event.status, out);
    if (Status failed = fail(event.object, event.status.error(), out, event.failure); !failed) return failed;
    return follow_receiver(out);
  }
  return commit(event.object, event.status ? CommitEvent::kGood : CommitEvent::kBad, event.status, out);
}

Status DestinationEnd::on(const JournalWritten& event, Effects& out) {
  if (event.entry == Entry::kAnew) return files_.on(event, out);
  pending_.answered();
  if (event.entry == Entry::kGrown) return growth_noted(event.status, out);
  if (event.entry == Entry::kNoted) return {};
  if (event.entry == Entry::kFailed) {
    --failed_unsaid_;
    if (event.status) say(failed_word(event.object), out);
    return event.status;
  }
  const bool needed = event.entry == Entry::kExtents || event.entry == Entry::kFinishing;
  if (!event.status && !needed) out.log(LogLevel::kWarn, event.status.error().message);
  return commit(event.object, event.status ? CommitEvent::kGood : CommitEvent::kBad, event.status, out);
}

}  // namespace sluice::transfer
