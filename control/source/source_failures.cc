// Files that a source cannot send: it withdraws them, the destination gives them up, and all others go on.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <utility>

#include "control/source/source_end.h"
#include "control/words/failures.h"

namespace sluice::transfer {

// An error where the transfer has no other name to go on with, or it is not the object's. A pack fails with
// all its names when it is not what was sent of it; `names`: its first.
Status SourceEnd::fail(ObjectId object, const Error& error, const std::vector<catalog::FailedName>& names,
                       Effects& out) {
  const bool its_own =
      catalog().packed(object) ? error.code == ErrorCode::kIntegrity : concerns_one_file(error.code);
  if (!catalog().may_fail_in_part() || !its_own) return error;
  if (sender_.done(object) || sender_.withdrawn(object)) return {};
  out.log(LogLevel::kWarn, error.message + "; all else goes on");
  for (catalog::File& file : files_.catalog().files_of(object))
    file.note_failed(names, failure_at_source(error.code));
  sender_.withdraw(object);
  if (!recheck_.reading() || recheck_.object() != object) recheck_.drop(object);
  if (states_known_) say_failed(object, out);
  return follow_sender(out);
}

// The bytes differ from those that were sent. Of a pack it is asked first which of its names those were.
Status SourceEnd::found_changed(ObjectId object, Effects& out) {
  if (!catalog().packed(object)) return fail(object, changed(object), {}, out);
  check_source(object, changed(object), out);
  return {};
}

void SourceEnd::say_failed(ObjectId object, Effects& out) const {
  if (object.value() >= sender_.known()) return;  // it is said when the peer has heard of the object
  say(ObjectFailed{.object = object, .names = catalog().files_of(object).front().missing.names}, out);
}

// An object that the destination has named did not fail, whatever this node thought. But it must be what was
// sent.
Status SourceEnd::check_withdrawn(ObjectId object) const {
  if (!sender_.withdrawn(object) || sender_.done(object) || sender_.digest_known(object)) return {};
  return Error{ErrorCode::kIntegrity,
               catalog().shown(object) +
                   ": stands under its name at the destination, and its source has changed or cannot be read "
                   "any more, so that nobody can tell whether they are the same: send it again"};
}

Error SourceEnd::undone(ObjectId object) const {
  return {ErrorCode::kIntegrity,
          fmt::format("{}: the peer had reported it as stored, and does not have it any more: it was "
                      "removed there, or its volume went back in time; send it again",
                      catalog().shown(object))};
}

Status SourceEnd::hear_failed(LegId leg, const ObjectFailed& failed, Effects& out) {
  legs_.at(leg).list(failed.object);
  const bool known = catalog().files_of(failed.object).front().failed();
  if (known && sender_.done(failed.object)) return {};
  if (sender_.done(failed.object) || sender_.peer_digest(failed.object)) return undone(failed.object);
  const auto failure = failed.names.empty() ? catalog::Failure::kOther : failed.names.front().failure;
  for (catalog::File& file : files_.catalog().files_of(failed.object)) {
    if (!sender_.withdrawn(failed.object)) file.note_failed(failed.names, failure);
    file.state = catalog::FileState::kFailed;
    out.log(LogLevel::kWarn, fmt::format("{}: {}", file.shown, catalog::failure_text(failure)));
    // Which names those are the destination could not tell.
    if (file.packed() && file.missing.names.empty()) check_source(failed.object, changed(failed.object), out);
  }
  sender_.failed(failed.object);
  return follow_sender(out);
}

Status SourceEnd::on(const SourcesReopened& event, Effects& out) {
  Status status;
  for (const auto& [object, error] : event.failed) {
    if (status) status = fail(object, error, {}, out);
  }
  if (status) {
    files_.on(event, out);
  } else {
    files_.not_reopened();
  }
  return status;
}

}  // namespace sluice::transfer
