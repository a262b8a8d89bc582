// A sending end checks that what it sent is what its files hold.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "control/source/source_end.h"

namespace sluice::transfer {

Error SourceEnd::differs(ObjectId object) const {
  return {ErrorCode::kIntegrity,
          fmt::format("{}: digest {} here, {} at the peer: do not trust the copy, {}",
                      catalog().shown(object), board::digest_hex(crc_kind_, sender_.digest(object)),
                      board::digest_hex(crc_kind_, *sender_.peer_digest(object)),
                      sender_.obeys_wants() ? "compare it with what other sources have" : "send it again")};
}

Error SourceEnd::changed(ObjectId object) const {
  return {ErrorCode::kIntegrity,
          catalog().shown(object) + ": changed while it was sent: nothing of it is stored, send it again"};
}

// Without `otherwise` all of it was read: the peer is told its digest, if it is still the same file.
void SourceEnd::check_source(ObjectId object, std::optional<Error> otherwise, Effects& out) {
  pending_.ask(CheckSource{.object = object, .otherwise = std::move(otherwise)}, out);
}

Status SourceEnd::on(const SourceChecked& event, Effects& out) {
  pending_.answered();
  if (catalog().files_of(event.object).front().failed()) {
    for (catalog::File& each : files_.catalog().files_of(event.object)) each.name_failed(event.names);
    return {};
  }
  const std::optional<Error> wrong = event.status ? event.otherwise : event.status.error();
  // If the peer calls it done, bytes that the file does not hold have its name there.
  if (wrong)
    return sender_.peer_digest(event.object) ? Status(*wrong) : fail(event.object, *wrong, event.names, out);
  if (sender_.withdrawn(event.object)) return {};
  const catalog::File& file = catalog().files_of(event.object).front();
  const bool touched = file.ctime_ns != 0 && file.ctime_ns != event.ctime_ns;
  if (file.size_bytes == 0 || (!touched && !in_doubt(event.object))) {
    say_digest(event.object, out);
    return {};
  }
  if (recheck_.add(event.object, sender_.ledger(event.object), event.ctime_ns)) {
    out.log(LogLevel::kInfo, fmt::format("{}: {} while it was sent; reading it again", file.shown,
                                         touched ? "something happened to it (its ctime changed)"
                                                 : "its bytes may have changed"));
  }
  reread(out);
  return {};
}

// Soon the peer calls it done. The journal hears of its CRCs with the next tick: should this control end
// before that, it would read all of the object again, and find another digest if the files have changed
// since.
void SourceEnd::say_digest(ObjectId object, Effects& out) {
  if (sender_.obeys_wants()) return say_extents(object, out);
  journal_due_ns_ = 0;
  say(FileDigest{.object = object,
                 .size_bytes = catalog().object(object).size_bytes,
                 .digest = sender_.digest(object)},
      out);
}

// One block after the other: extents whose CRC is not known here, or is asked for, and what may have changed,
// in turns. So neither waits until all of the other was read.
void SourceEnd::reread(Effects& out) {
  if (rereading_ || files_.halted()) return;
  std::optional<ReadExtents> next = recheck_next_ ? recheck_.next() : read_unknown();
  if (!next) next = recheck_next_ ? read_unknown() : recheck_.next();
  if (!next) return;
  rereading_ = true;
  recheck_next_ = !recheck_.reading();
  pending_.ask(std::move(*next), out);
}

std::optional<ReadExtents> SourceEnd::read_unknown() {
  const auto next = sender_.take_unknown();
  if (!next) return std::nullopt;
  ReadExtents read{.object = next->object, .first = next->first, .ranges = {}};
  for (ExtentId each = next->first; each < next->end; ++each)
    read.ranges.push_back(sender_.ledger(next->object).map().range_of(each));
  return read;
}

Status SourceEnd::on(const ExtentsRead& event, Effects& out) {
  pending_.answered();
  rereading_ = false;
  if (sender_.withdrawn(event.object)) {
    recheck_.failed();
    recheck_.drop(event.object);
    reread(out);
    return {};
  }
  if (!event.crcs) {
    recheck_.failed();
    check_source(
        event.object,
        Error{event.crcs.error().code, catalog().shown(event.object) + ": " + event.crcs.error().message},
        out);
    return {};
  }
  Status status;
  if (recheck_.reading()) {
    status = rechecked(event.object, event.crcs->front(), out);
  } else {
    sender_.reread(event.object, event.first, *event.crcs);
    status = follow_sender(out);
  }
  if (status) reread(out);
  return status;
}

Status SourceEnd::rechecked(ObjectId object, uint64_t crc, Effects& out) {
  switch (recheck_.read(crc)) {
    case SourceRecheck::Found::kSameSoFar:
      return {};
    case SourceRecheck::Found::kChanged:
      return found_changed(object, out);
    case SourceRecheck::Found::kSame:
      break;
  }
  for (catalog::File& file : files_.catalog().files_of(object)) {
    file.ctime_ns = recheck_.take();
    file.suspect = file.suspect && sender_.obeys_wants();  // more of it may be sent
    out.log(LogLevel::kInfo, fmt::format("{}: holds what was sent", file.shown));
  }
  say_digest(object, out);
  return {};
}

}  // namespace sluice::transfer
