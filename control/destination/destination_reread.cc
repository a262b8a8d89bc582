// What a receiving end reads: the bytes that it had before an interruption, and files that are read back
// before they get their names. And files that had their names and are gone.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "control/destination/destination_end.h"

namespace sluice::transfer {
namespace {

// Read at once: an attempt that ends waits for no more.
constexpr uint64_t kReadBackBytes = 64U << 20;
// A hole takes no time, however long, unless digests of its zeros are computed.
constexpr uint64_t kDigestHoleBytes = 4ULL << 30;

// From here to the end of the hole in which it lies; 0: in none.
uint64_t hole_left(const std::vector<base::Range>& holes, uint64_t from) {
  const auto after = std::ranges::upper_bound(holes, from, {}, &base::Range::offset);
  return after == holes.begin() ? 0 : std::prev(after)->end() - std::min(std::prev(after)->end(), from);
}

}  // namespace

// ---- what was there before an interruption -----------------------------------------------------

void DestinationEnd::distrust(ObjectId object) {
  if (!settings_.trust_journal && !files_.discards()) receiver_->distrust(object);
}

Status DestinationEnd::on(const FileReopened& event, Effects& out) {
  if (event.found && *event.found) distrust(event.object);
  return files_.on(event, out);
}

// Beside the data that arrives, one piece after the other.
void DestinationEnd::read_unread(Effects& out) {
  if (legs_.begun() == 0 || files_.halted() || receiver_->unread_bytes() == 0) return;
  if (receiver_->reading_unread()) return;
  for (uint32_t i = 0; i < catalog().object_count(); ++i) {
    if (!files_.has_file(ObjectId(i)) || failing_.contains(ObjectId(i))) continue;
    const std::optional<recovery::Unread> unread = receiver_->take_unread(ObjectId(i));
    if (!unread) continue;
    return pending_.ask(ReadBackObject{.object = unread->object,
                                       .range = unread->range,
                                       .sums = files_.sums_of(unread->object),
                                       .shape = receiver_->sums(unread->object).shape()},
                        out);
  }
}

Status DestinationEnd::on(const ObjectReadBack& event, Effects& out) {
  pending_.answered();
  ++steps_;
  if (commits_[event.object].phase() == CommitPhase::kReadingBack) return read_back_for_name(event, out);
  return unread_was_read(event, out);
}

Status DestinationEnd::unread_was_read(const ObjectReadBack& event, Effects& out) {
  const recovery::Judgement judgement =
      receiver_->judge_unread(event.crc ? std::optional(*event.crc) : std::nullopt, event.sums);
  if (judgement == recovery::Judgement::kGood) {
    // The source sees that something moves here, however much there is to read.
    say_durable(event.object, {event.range}, out);
  } else if (judgement == recovery::Judgement::kForgotten) {
    const std::string why = event.crc ? "are not those that were written before the interruption"
                                      : "cannot be read any more (" + event.crc.error().message + ")";
    out.log(
        LogLevel::kWarn,
        fmt::format("{}: {} bytes at byte {} {}: asking for them again; check the disk and its file system",
                    catalog().shown(event.object), event.range.length, event.range.offset, why));
    journal_suspect(event.object, Entry::kNoted, out);
  }
  if (const Status status = follow_receiver(out); !status) return status;
  read_unread(out);
  return {};
}

// ---- before the final name ---------------------------------------------------------------------

void DestinationEnd::read_back(ObjectId object, uint64_t from, Effects& out) {
  const uint64_t left = catalog().object(object).size_bytes - from;
  const uint64_t hole = hole_left(catalog().files_of(object).front().holes, from);
  const catalog::File& file = catalog().files_of(object).front();
  const digests::Mask digests = to_digest(object);
  const uint64_t most = kReadBackBytes + (digests == 0 ? hole : std::min(hole, kDigestHoleBytes));
  pending_.ask(ReadBackObject{.object = object,
                              .range = {.offset = from, .length = std::min(left, most)},
                              .data_bytes_most = kReadBackBytes,
                              .digests = digests,
                              .cached = !file.suspect && !file.verify},
               out);
}

Status DestinationEnd::read_back_for_name(const ObjectReadBack& event, Effects& out) {
  const ObjectId object = event.object;
  const std::string& shown = catalog().shown(object);
  catalog::Failure failure = catalog::Failure::kNone;
  Status status;
  if (event.crc) note_digest_progress(event, out);
  if (!event.crc) {
    status = Error{event.crc.error().code, shown + ": " + event.crc.error().message};
  } else {
    uint64_t& crc = read_crcs_[object];
    crc = crc::shift(agreement_.crc_kind, crc, event.range.length) ^ *event.crc;
    if (event.range.end() != catalog().object(object).size_bytes) {
      if (!files_.halted()) {
        read_back(object, event.range.end(), out);
        return {};
      }
      status = Error{ErrorCode::kCancelled, shown + ": was not read back to its end"};
    } else if (crc != receiver_->digest(object)) {
      status = Error{ErrorCode::kIntegrity,
                     fmt::format("{}: its disk gives back other bytes than were written: nothing was stored; "
                                 "check the disk and its file system, then send it again",
                                 shown)};
    } else if (status = take_digests(object, event.digests); !status) {
      failure = catalog::Failure::kNotAsListed;
    }
  }
  read_crcs_.erase(object);
  if (failure == catalog::Failure::kNotAsListed && settle_sources(object, out)) {
    (void)commits_[object].step(CommitEvent::kBad);
    digesting_.bytes.erase(object);
    return follow_receiver(out);
  }
  digesting_.bytes.erase(object);
  if (!status && !files_.halted() && catalog().may_fail_in_part()) {
    (void)commit(object, CommitEvent::kBad, status, out);
    if (Status failed = fail(object, status.error(), out, failure); !failed) return failed;
    return follow_receiver(out);
  }
  return commit(object, status ? CommitEvent::kGood : CommitEvent::kBad, status, out);
}

// ---- files that are gone -----------------------------------------------------------------------

// The transfer ends with this as soon as the peer can be told: a source waits for what it was never told of.
void DestinationEnd::note_lost(ObjectId object, Effects& out) {
  lost_objects_.insert(object);
  const Error error{
      ErrorCode::kIntegrity,
      fmt::format("{}: was stored in full before the interruption, and is not there "
                  "any more: it was moved or removed, or its volume went back in time; look for "
                  "it, or send it again",
                  catalog().shown(object))};
  out.log(LogLevel::kError, error.message);
  if (!lost_) lost_ = error;
}

}  // namespace sluice::transfer
