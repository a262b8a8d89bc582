// Files that do not arrive: the destination removes what is unfinished and tells the source. All others go
// on.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <utility>

#include "control/destination/destination_end.h"
#include "control/words/failures.h"

namespace sluice::transfer {

// Returns the error if the transfer has no other name to go on with, or the error is not the file's. A pack
// is in memory: once it is what was sent, only a defect of ours can be wrong with all of it.
Status DestinationEnd::fail(ObjectId object, const Error& error, Effects& out, catalog::Failure failure) {
  if (!catalog().may_fail_in_part() || catalog().packed(object) || !concerns_one_file(error.code))
    return error;
  begin_failing(object, error, out, failure);
  return {};
}

// If a pack is not what was sent, nobody here knows which of its names are wrong.
Status DestinationEnd::found_damaged(ObjectId object, Effects& out) {
  const Error error = differs(object);
  if (!catalog().may_fail_in_part()) return error;
  begin_failing(object, error, out);
  return {};
}

void DestinationEnd::begin_failing(ObjectId object, const Error& error, Effects& out,
                                   catalog::Failure failure) {
  if (receiver_->done(object)) return;
  out.log(LogLevel::kWarn, error.message + "; all else goes on");
  const std::string path = catalog().packed(object) ? "" : catalog().files_of(object).front().name;
  failing_.try_emplace(
      object, Failing{.names = {{.path = path, .failure = failure_at_destination(error.code, failure)}}});
}

// An object that has its name stays done: the source hears that.
Status DestinationEnd::on(const ObjectFailed& failed) {
  if (!catalog().contains(failed.object))
    return Error{ErrorCode::kIncompatible, "the peer cannot send a file that it did not offer"};
  if (!catalog().may_fail_in_part())
    return Error{ErrorCode::kIncompatible, "the peer calls the only name of a session failed"};
  if (receiver_->done(failed.object)) return {};
  std::vector<catalog::FailedName> names = failed.names;
  if (names.empty()) names.push_back({.path = "", .failure = catalog::Failure::kOther});
  failing_.try_emplace(failed.object, Failing{.names = std::move(names)});
  return {};
}

// Those of which nothing is under way. What is getting its name just now has it, or fails then.
Status DestinationEnd::give_up_failing(Effects& out) {
  if (files_.halted() || legs_.begun() == 0) return {};
  for (auto at = failing_.begin(); at != failing_.end();) {
    const ObjectId object = at->first;
    if (receiver_->done(object)) {
      at = failing_.erase(at);
      continue;
    }
    if (given_.contains(object) && commits_[object].idle()) {
      const char* const what = catalog().packed(object)
                                   ? ": some of its names may be there already, perhaps not for good"
                                   : ": has its name already, its disk could not say whether for good";
      return Error{ErrorCode::kIntegrity,
                   catalog().shown(object) + what +
                       ", and now it cannot be sent again: compare it, or remove it and send it again"};
    }
    // A file without a descriptor is opened again first, so that it is found.
    const bool at_hand = files_.has_file(object) || files_.discards() || catalog().packed(object);
    if (!at->second.dropping && at_hand && commits_[object].idle() && receiver_->may_fail(object)) {
      at->second.dropping = true;
      pending_.ask(DropFile{object}, out);
    }
    ++at;
  }
  return {};
}

// The journal hears of it only now, so that no loss of power brings back what it calls gone. Also after the
// end of the attempt: the file is away.
Status DestinationEnd::on(const FileDropped& event, Effects& out) {
  pending_.answered();
  const auto failing = failing_.extract(event.object);
  CHECK(!failing.empty(), "what was dropped is failing");
  if (!event.status) return event.status;
  give_up(event.object, failing.mapped().names, out);
  return follow_receiver(out);
}

void DestinationEnd::give_up(ObjectId object, const std::vector<catalog::FailedName>& names, Effects& out) {
  ++steps_;
  due_.finished.erase(object);
  receiver_->failed(object);
  if (several_) several_->remove(object);
  for (catalog::File& file : files_.catalog().files_of(object)) {
    file.note_failed(file.packed() && names.front().path.empty() ? std::vector<catalog::FailedName>() : names,
                     names.front().failure);
  }
  files_.failed(object, out);
  Batch batch = files_.rows_anew(object);
  ++failed_unsaid_;  // nothing that is found after a loss of power says the same
  pending_.ask(WriteJournal{.entry = Entry::kFailed,
                            .object = object,
                            .batch = std::move(batch),
                            .durability = Durability::kPower},
               out);
}

Message DestinationEnd::failed_word(ObjectId object) const {
  return ObjectFailed{.object = object, .names = catalog().files_of(object).front().missing.names};
}

}  // namespace sluice::transfer
