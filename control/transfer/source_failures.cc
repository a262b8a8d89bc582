// Files that a source cannot send: they are withdrawn, the destination gives them up, and all others go on.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <utility>

#include "control/transfer/failures.h"
#include "control/transfer/source_end.h"

namespace sluice::transfer {

// An error where the transfer has no other name to go on with, or it is not the file's. Of a pack nobody
// could say which of its names have failed.
Status SourceEnd::fail(ObjectId object, const Error& error, Effects& out) {
  if (!catalog().may_fail_in_part() || catalog().packed(object) || !concerns_one_file(error.code))
    return error;
  if (sender_.done(object) || sender_.withdrawn(object)) return {};
  out.log(LogLevel::kWarn, error.message + "; all else goes on");
  for (catalog::File& file : files_.catalog().files_of(object))
    file.note_failed({}, failure_at_source(error.code));
  sender_.withdraw(object);
  if (!recheck_.reading() || recheck_.object() != object) recheck_.drop(object);
  if (states_known_) say_failed(object, out);
  return follow_sender(out);
}

void SourceEnd::say_failed(ObjectId object, Effects& out) const {
  say(ObjectFailed{.object = object, .names = catalog().files_of(object).front().missing.names}, out);
}

// What a destination has named is no failure, whatever this node thought; but it must be what was sent.
Status SourceEnd::check_withdrawn(ObjectId object) const {
  if (!sender_.withdrawn(object) || sender_.done(object) || sender_.digest_known(object)) return {};
  return changed(object);
}

Error SourceEnd::lost(ObjectId object) const {
  return {ErrorCode::kIntegrity,
          fmt::format("{}: the peer had reported it as stored, and does not have it any more: it was "
                      "removed there, or its volume went back in time; send it again",
                      catalog().shown(object))};
}

Status SourceEnd::on(const ObjectFailed& failed, Effects& out) {
  listed_done_.insert(failed.object);
  const bool known = catalog().files_of(failed.object).front().failed();
  if (known && sender_.done(failed.object)) return {};
  if (sender_.done(failed.object) || sender_.peer_digest(failed.object)) return lost(failed.object);
  const auto failure = failed.names.empty() ? catalog::Failure::kOther : failed.names.front().failure;
  for (catalog::File& file : files_.catalog().files_of(failed.object)) {
    if (!sender_.withdrawn(failed.object)) file.note_failed(failed.names, failure);
    file.state = catalog::FileState::kFailed;
    out.log(LogLevel::kWarn, fmt::format("{}: {}", file.shown, catalog::failure_text(failure)));
  }
  sender_.failed(failed.object);
  return follow_sender(out);
}

Status SourceEnd::on(const SourcesReopened& event, Effects& out) {
  Status status;
  for (const auto& [object, error] : event.failed) {
    if (status) status = fail(object, error, out);
  }
  if (status) {
    files_.on(event, out);
  } else {
    files_.not_reopened();
  }
  return status;
}

}  // namespace sluice::transfer
