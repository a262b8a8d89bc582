// The files and the journal of a simulated transfer.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "control/board/figures.h"
#include "control/destination/digest_sums.h"
#include "dataplane/crc/crc.h"
#include "tools/sim/session.h"

namespace sluice::sim {
namespace {

constexpr uint64_t kFileNs = 50'000;  // opening, creating, asking what there is

Error bad_disk() { return {ErrorCode::kStorage, "the disk failed"}; }

std::string temporary_of(const std::string& path) { return "." + path + ".part"; }

}  // namespace

uint64_t Session::inode_of(ObjectId object) const {
  const catalog::Catalog& catalog = *transfer_->job().catalog();
  return catalog.files_of(object).front().identity.inode;
}

bool Session::holds(uint64_t inode) const {
  const transfer::DestinationEnd* const end = transfer_->job().destination();
  if (end == nullptr) return false;
  const auto& files = end->catalog().files();
  return std::any_of(files.begin(), files.end(),
                     [inode](const catalog::File& file) { return file.identity.inode == inode; });
}

// ---- a source ------------------------------------------------------------------------------------

void Session::perform(const transfer::ReadExtents& e) {
  if (broken(Break::kNoReread)) return;
  later(
      host_.disk.latency_ns(), Host::IfKilled::kFate, [] {},
      [this, e] {
        if (host_.disk.error_of(inode_of(e.object)) != 0) {
          return post(transfer::ExtentsRead{.object = e.object,
                                            .first = e.first,
                                            .crcs = Error{ErrorCode::kSourceUnreadable, "the disk failed"}});
        }
        const std::vector<uint8_t>& bytes = host_.files.inode(inode_of(e.object))->now;
        const wire::CrcKind kind = transfer_->job().terms->crc_kind;
        host_.trace.reached.rereads += e.ranges.size();
        std::vector<uint64_t> crcs;
        for (const recovery::Range& range : e.ranges)
          crcs.push_back(crc::compute(kind, 0, bytes.data() + range.offset, range.length));
        post(transfer::ExtentsRead{.object = e.object, .first = e.first, .crcs = std::move(crcs)});
      });
}

// ---- a destination -------------------------------------------------------------------------------

Result<catalog::FileIdentity> Session::create(const catalog::File& file) {
  const std::string temporary = temporary_of(file.path);
  const uint64_t there = host_.files.find(temporary);
  // A pack whose names were given before a crash is unpacked again, which changes nothing.
  if (host_.files.find(file.path) != 0 && !file.packed()) {
    if (there != 0 && !host_.locked(there, this)) {
      host_.files.remove(temporary);
      host_.files.sync_directory();
    }
    return Error{ErrorCode::kDestinationExists, file.path + ": exists"};
  }
  if (there != 0 && host_.locked(there, this)) {
    return Error{ErrorCode::kDestinationExists, "another transfer writes to " + temporary};
  }
  if (there != 0) host_.files.remove(temporary);  // nobody knows what it is
  const uint64_t inode = host_.files.create(temporary);
  host_.files.resize(inode, (file.size_bytes + 4095) / 4096 * 4096);
  directory_synced_ = !file.holes.empty();
  if (directory_synced_) {
    host_.files.end_sync(host_.files.begin_sync(inode), true);
    host_.files.sync_directory();
  }
  return catalog::FileIdentity{.inode = inode};
}

void Session::put_list(catalog::File& file, uint32_t object) const {
  const wire::CrcKind kind = host_.plan.crc;
  const digests::Mask own = transfer::own_kind(kind);
  const std::vector<uint8_t>& right = host_.oracle.content(object, 0);
  const std::string hex = board::digest_hex(kind, crc::compute(kind, 0, right.data(), right.size()));
  file.digests = {
      .wanted = own, .expected = {{.kind = digests::kinds_of(own).front(), .hex = hex}}, .found = {}};
}

void Session::perform(const transfer::CreateFiles& e) {
  judge_beginning();
  later(
      kFileNs, Host::IfKilled::kFate, [] {},
      [this, e] {
        std::vector<catalog::File> files = e.files;
        const auto* const known = transfer_->job().catalog();
        const auto first = known == nullptr ? 0U : static_cast<uint32_t>(known->object_count());
        for (uint32_t n = 0; n < files.size(); ++n) {
          catalog::File& file = files[n];
          const uint32_t i = first + n;
          file.shown = file.path = file.packed() ? Oracle::final_name(i) : file.name;
          if (host_.plan.several.listed && !file.packed()) put_list(file, i);
          const Result<catalog::FileIdentity> identity = create(file);
          if (identity) {
            file.identity = *identity;
            continue;
          }
          if (!e.in_part) return post(transfer::FilesCreated{identity.error()});
          if (const uint64_t number = host_.files.find(file.path); number != 0) host_.oracle.taken(i, number);
          file.note_failed({}, catalog::Failure::kExists);
          file.state = catalog::FileState::kFailed;
        }
        host_.point();
        post(transfer::FilesCreated{std::move(files)});
      });
}

void Session::perform(const transfer::RecoverFiles&) {
  // The rename may have come through before the former control could say so: then its directory is synced.
  const auto sync = [this] {
    for (const catalog::File& file : transfer_->job().catalog()->files())
      if (file.failed()) remove_unfinished(file);
    host_.files.sync_directory();
  };
  later(host_.sync_ns() / 4, Host::IfKilled::kFate, sync, [this] {
    transfer::FilesRecovered recovered;
    const catalog::Catalog& catalog = *transfer_->job().catalog();
    for (uint32_t i = 0; i < catalog.object_count(); ++i) {
      const catalog::File& file = catalog.files_of(ObjectId(i)).front();
      if (file.failed()) {
        recovered.objects.push_back(transfer::Recovered::kAway);
        continue;
      }
      const bool done = file.state == catalog::FileState::kDone;
      const bool may_be_named = file.packed() ? done : file.state != catalog::FileState::kOpen;
      const uint64_t named = host_.files.find(file.path);
      const uint64_t unfinished = host_.files.find(temporary_of(file.path));
      recovered.objects.push_back(may_be_named && named == file.identity.inode ? transfer::Recovered::kNamed
                                  : !done && !file.packed() && unfinished == file.identity.inode &&
                                          host_.random.flip()
                                      ? transfer::Recovered::kHeld
                                      : transfer::Recovered::kAway);
    }
    post(recovered);
  });
}

void Session::perform(const transfer::ReopenFile& e) {
  const catalog::File& file = transfer_->job().catalog()->files_of(e.object).front();
  // A pack is in memory: where the dataplane has it, or nowhere.
  const bool found = file.packed() ? fetched_.contains(e.object)
                                   : host_.files.find(temporary_of(file.path)) == file.identity.inode;
  answer(transfer::FileReopened{.object = e.object, .found = found}, kFileNs);
}

void Session::perform(const transfer::RecreateFile& e) {
  later(
      kFileNs, Host::IfKilled::kFate, [] {},
      [this, e] {
        const catalog::File& file = transfer_->job().catalog()->files_of(e.object).front();
        post(transfer::FileRecreated{.object = e.object, .identity = create(file)});
      });
}

void Session::perform(const transfer::SyncObject& e) {
  if (broken(Break::kCommitBeforeSync)) return answer(transfer::ObjectSynced{.object = e.object});
  const bool good = !host_.sync_fails() || broken(Break::kNoForget);
  const bool really = good && !(broken(Break::kNoForget) && host_.sync_fails());
  const uint64_t sync = host_.files.begin_sync(inode_of(e.object));
  if (!std::exchange(directory_synced_, true)) host_.files.sync_directory();
  host_.trace.add(host_.now_ns(), host_.node, "sync", e.object.value());
  ++host_.trace.reached.syncs;
  if (!good) ++host_.trace.reached.failed_syncs;
  host_.point();
  later(
      host_.sync_ns(), Host::IfKilled::kStillDone,
      [this, sync, really] { host_.files.end_sync(sync, really); },
      [this, e, good] {
        host_.point();
        post(transfer::ObjectSynced{.object = e.object, .status = good ? Status() : Status(bad_disk())});
      });
}

void Session::perform(const transfer::FinishObject& e) {
  const catalog::File& file = transfer_->job().catalog()->files_of(e.object).front();
  host_.files.resize(file.identity.inode, file.size_bytes);
  if (broken(Break::kRenameBeforeSync)) return answer(transfer::ObjectFinished{.object = e.object});
  const bool good = !host_.sync_fails();
  const uint64_t sync = host_.files.begin_sync(file.identity.inode);
  host_.trace.add(host_.now_ns(), host_.node, "finish", e.object.value());
  host_.point();
  later(
      host_.sync_ns(), Host::IfKilled::kStillDone, [this, sync, good] { host_.files.end_sync(sync, good); },
      [this, e, good] {
        host_.point();
        post(transfer::ObjectFinished{.object = e.object, .status = good ? Status() : Status(bad_disk())});
      });
}

void Session::perform(const transfer::ReadBackObject& e) {
  later(
      host_.disk.latency_ns(), Host::IfKilled::kFate, [] {},
      [this, e] {
        const std::vector<uint8_t>& bytes = host_.files.inode(inode_of(e.object))->now;
        ++host_.trace.reached.read_backs;
        transfer::ObjectReadBack read{
            .object = e.object, .range = e.range, .crc = Error{ErrorCode::kStorage, "it ends early"}};
        if (e.range.end() <= bytes.size()) {
          read.crc = crc::compute(transfer_->job().terms->crc_kind, 0, bytes.data() + e.range.offset,
                                  e.range.length);
        }
        post(std::move(read));
      });
}

void Session::perform(const transfer::NameObject& e) {
  const catalog::File& file = transfer_->job().catalog()->files_of(e.object).front();
  const uint64_t inode = file.identity.inode;
  // What a pack was unpacked to before a crash is taken for what it is unpacked to now.
  if (file.packed() && host_.files.find(file.path) != inode &&
      host_.files.find(temporary_of(file.path)) == inode)
    host_.files.remove(file.path);
  if (const uint64_t there = host_.files.find(file.path); host_.oracle.is_taken(e.object.value(), there)) {
    return answer(
        transfer::ObjectNamed{.object = e.object,
                              .status = Error{ErrorCode::kDestinationExists, "somebody has taken its name"},
                              .given = false,
                              .missing = {}},
        kFileNs);
  }
  if (host_.plan.removed_ns != 0 && host_.files.find(file.path) != inode &&
      host_.files.find(temporary_of(file.path)) != inode) {
    return answer(transfer::ObjectNamed{.object = e.object,
                                        .status = Error{ErrorCode::kStorage, "its file was removed"},
                                        .given = false,
                                        .away = true,
                                        .missing = {}},
                  kFileNs);
  }
  // It may have its name already, if only the directory could not be synced the last time.
  if (host_.files.find(file.path) != inode && !host_.files.rename(temporary_of(file.path), file.path)) {
    host_.oracle.fail("a file cannot be given its name");
  }
  host_.trace.add(host_.now_ns(), host_.node, "name", e.object.value());
  host_.point();
  const bool good = !host_.sync_fails();
  // Should its source fail as well, nobody can tell what stands there.
  if (!good) host_.oracle.allow(End::kIntegrity);
  const bool late_sync = broken(Break::kRenameBeforeSync);
  const auto effect = [this, good, inode, late_sync] {
    if (good && !broken(Break::kNoDirectorySync)) host_.files.sync_directory();
    if (late_sync) host_.files.end_sync(host_.files.begin_sync(inode), true);
  };
  later(host_.sync_ns() / 4, Host::IfKilled::kFate, effect, [this, e, good] {
    host_.point();
    post(transfer::ObjectNamed{
        .object = e.object, .status = good ? Status() : Status(bad_disk()), .given = true, .missing = {}});
  });
}

void Session::remove_unfinished(const catalog::File& file) {
  const std::string temporary = temporary_of(file.path);
  if (file.identity.inode != 0 && host_.files.find(temporary) == file.identity.inode)
    host_.files.remove(temporary);
}

void Session::perform(const transfer::DropFile& e) {
  host_.oracle.dropped(e.object.value());
  remove_unfinished(transfer_->job().catalog()->files_of(e.object).front());
  fetched_.erase(e.object);
  host_.trace.add(host_.now_ns(), host_.node, "drop", e.object.value());
  host_.point();
  later(
      host_.sync_ns() / 4, Host::IfKilled::kFate,
      [this] {
        if (!broken(Break::kNoDirectorySync)) host_.files.sync_directory();
      },
      [this, e] {
        host_.point();
        post(transfer::FileDropped{.object = e.object});
      });
}

void Session::perform(const transfer::ReleaseFiles& e) {
  sources_open_ = false;
  listed_.reset();
  fetched_.clear();
  const bool removes = host_.node == kDestination && !e.keep && transfer_->job().catalog() != nullptr;
  if (!removes) return answer(transfer::FilesReleased{}, kFileNs);
  for (const catalog::File& file : transfer_->job().catalog()->files()) remove_unfinished(file);
  later(
      kFileNs, Host::IfKilled::kFate, [this] { host_.files.sync_directory(); },
      [this] { post(transfer::FilesReleased{}); });
}

// ---- the journal ---------------------------------------------------------------------------------

void Session::perform(const transfer::WriteJournal& e) {
  const transfer::JournalWritten written{
      .entry = e.entry, .object = e.object, .status = {}, .of_leg = e.of_leg};
  // Unfinished files may go from here on.
  const bool gives_up = host_.node == kDestination && e.entry == transfer::Entry::kEnded &&
                        e.batch.record->state != transfer::RecordState::kSucceeded;
  if (e.entry == transfer::Entry::kHeld) ++holding_;
  if (e.entry == transfer::Entry::kAware) ++host_.trace.reached.partings;
  if (e.entry == transfer::Entry::kGrown) ++host_.trace.reached.growths;
  const auto then = [this, written, gives_up] {
    host_.point();
    // An operator is told once the journal has all that was asked of it.
    const bool held = written.entry == transfer::Entry::kHeld && --holding_ == 0;
    if (held && transfer_->pausing()) host_.oracle.paused(host_.node, transfer_->id(), true);
    if (written.entry == transfer::Entry::kCancelled) host_.oracle.cancelled(host_.node, transfer_->id());
    if (gives_up) host_.oracle.given_up();
    if (written.entry == transfer::Entry::kEnded && host_.node == kDestination)
      host_.oracle.owners().ended(transfer_->id());
    post(written);
  };
  if (broken(Break::kLostPause) && e.entry == transfer::Entry::kHeld) {
    return later(
        kFileNs, Host::IfKilled::kFate, [] {}, then);
  }
  if (broken(Break::kLostGrowth) && e.entry == transfer::Entry::kGrown && host_.node == kSource)
    return answer(written, kFileNs);
  Transaction transaction{.session = transfer_->id(), .batch = e.batch};
  const bool too_early = (broken(Break::kReportBeforeCommit) && e.entry == transfer::Entry::kExtents) ||
                         (broken(Break::kCallBeforeCommit) && e.entry == transfer::Entry::kRequest) ||
                         (broken(Break::kMoveBeforeCommit) && e.entry == transfer::Entry::kAgreed);
  if (too_early) {
    host_.commit(std::move(transaction), e.durability, [] {});
    return answer(written);
  }
  host_.commit(std::move(transaction), e.durability, [weak = weak_from_this(), then] {
    if (const auto self = weak.lock()) then();
  });
}

// ---- what the judge hears ------------------------------------------------------------------------

// A destination's control has started: this much it still knows to be durable.
void Session::tell_oracle_what_is_known() {
  const transfer::DestinationEnd* const end = transfer_->job().destination();
  if (end == nullptr) return;
  host_.oracle.begin_restored();
  for (uint32_t i = 0; i < end->catalog().object_count(); ++i) {
    const ObjectId object(i);
    const catalog::File& file = end->catalog().files_of(object).front();
    const bool named = host_.files.find(file.path) == file.identity.inode;
    if (named || end->done(object)) host_.oracle.restored(i, 0, file.size_bytes);
    for (const recovery::Range& range : end->held(object))
      host_.oracle.restored(i, range.offset, range.length);
  }
  host_.oracle.end_restored();
}

void Session::tell_oracle_what_is_said(const transfer::Message& message) {
  if (host_.node != kDestination) return;
  host_.point();
  if (std::holds_alternative<transfer::TransferReady>(message)) judge_moving();
  if (const auto* durable = std::get_if<transfer::PartitionDone>(&message)) {
    for (const recovery::Range& range : durable->ranges)
      host_.oracle.reported_durable(durable->object.value(), range.offset, range.length);
  } else if (const auto* done = std::get_if<transfer::FileDone>(&message)) {
    host_.oracle.reported_done(done->object.value());
    host_.oracle.reported_durable(done->object.value(), 0, host_.plan.sizes[done->object.value()]);
  } else if (const auto* failed = std::get_if<transfer::ObjectFailed>(&message)) {
    host_.oracle.reported_failed(failed->object.value());
    ++host_.trace.reached.objects_failed;
  }
}

}  // namespace sluice::sim
