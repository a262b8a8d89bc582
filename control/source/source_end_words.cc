// What the destination tells a sending end. It takes only what refers to something that exists, and no more
// than workers take.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "control/source/source_end.h"

namespace sluice::transfer {
namespace {

constexpr size_t kRepairBacklogMax = 65536;  // commands that wait for workers
constexpr size_t kBacklogMax = 1U << 20;     // more, and the peer tells of more than any worker takes

}  // namespace

Status SourceEnd::check_object(const Message& message, ObjectId object) const {
  if (catalog().contains(object)) return {};
  return Error{ErrorCode::kIncompatible,
               fmt::format("the peer sent {} of object {}, which it was not offered", message_name(message),
                           object.value())};
}

// Only what speaks of something that there is.
Status SourceEnd::check(LegId leg, const Message& message) const {
  if (const auto* need = std::get_if<Need>(&message)) {
    const SourceLeg* const its = legs_.find(leg);
    if (need->lane && (its == nullptr || !its->has_lane(*need->lane))) {
      return Error{ErrorCode::kIncompatible,
                   fmt::format("the peer sent Need for lane {}, which there is not", need->lane->value())};
    }
    return check_object(message, need->object);
  }
  if (const auto* want = std::get_if<Want>(&message)) return check_wanted(message, want->object);
  if (const auto* wanted = std::get_if<DigestsWanted>(&message)) return check_wanted(message, wanted->object);
  if (const auto* state = std::get_if<ObjectState>(&message)) {
    const Status known = state->end ? Status() : check_object(message, state->object);
    return known && state->done ? check_digested(state->object) : known;
  }
  if (const auto* durable = std::get_if<PartitionDone>(&message))
    return check_object(message, durable->object);
  if (const auto* done = std::get_if<FileDone>(&message)) {
    const Status known = check_object(message, done->object);
    return known ? check_digested(done->object) : known;
  }
  if (const auto* digests = std::get_if<NameDigests>(&message)) return check_object(message, digests->object);
  if (const auto* progress = std::get_if<DigestProgress>(&message))
    return check_object(message, progress->object);
  if (const auto* failed = std::get_if<ObjectFailed>(&message)) {
    if (catalog().may_fail_in_part()) return check_object(message, failed->object);
    return Error{ErrorCode::kIncompatible, "the peer calls the only name of a session failed"};
  }
  if (std::holds_alternative<RateLimit>(message)) return {};
  if (std::holds_alternative<TransferReady>(message) && catalog().grew()) return {};
  if (!std::holds_alternative<SessionDone>(message)) {
    return Error{ErrorCode::kIncompatible,
                 fmt::format("the peer sent {} to a source", message_name(message))};
  }
  bool done = !catalog().growing();
  for (uint32_t i = 0; done && i < catalog().object_count(); ++i)
    done = sender_.peer_digest(ObjectId(i)) || sender_.done(ObjectId(i));
  if (!done)
    return Error{ErrorCode::kIncompatible, "the destination ended the session before its files were done"};
  return {};
}

Status SourceEnd::on_message(LegId leg, const Message& message, Effects& out) {
  if (const Status status = check(leg, message); !status) return status;
  SourceLeg& its = legs_.at(leg);
  if (its.command_backlog() > kBacklogMax) {
    return Error{ErrorCode::kStalled, "the peer tells of more than the dataplane takes: opening new flows"};
  }
  if (const auto* need = std::get_if<Need>(&message)) {
    if (its.command_backlog() > kRepairBacklogMax) return {};  // it will be asked for again
    const auto flow = need->lane ? std::optional(FlowRef{leg, *need->lane}) : std::nullopt;
    sender_.peer_needs(need->object, flow, need->ranges);
  } else if (const auto* want = std::get_if<Want>(&message)) {
    return hear_want(*want, out);
  } else if (const auto* wanted = std::get_if<DigestsWanted>(&message)) {
    return hear_digests_wanted(*wanted, out);
  } else if (const auto* state = std::get_if<ObjectState>(&message)) {
    return object_state(leg, *state, out);
  } else if (const auto* durable = std::get_if<PartitionDone>(&message)) {
    sender_.peer_has(durable->object, durable->ranges);
  } else if (const auto* done = std::get_if<FileDone>(&message)) {
    note_failures(*done);
    (void)sender_.file_done(done->object, done->digest);
    if (Status status = check_withdrawn(done->object); !status) return status;
  } else if (const auto* digests = std::get_if<NameDigests>(&message)) {
    if (Status status = hear(leg, *digests); !status) return status;
  } else if (const auto* progress = std::get_if<DigestProgress>(&message)) {
    if (Status status = hear(*progress); !status) return status;
  } else if (const auto* failed = std::get_if<ObjectFailed>(&message)) {
    return hear_failed(leg, *failed, out);
  } else if (const auto* ready = std::get_if<TransferReady>(&message)) {
    return more_ready(*ready, out);
  } else if (const auto* limit = std::get_if<RateLimit>(&message)) {
    its.peer_allows(limit->rate_bps);
  } else {
    its.hear_end();                         // SessionDone
    list_.phase.change(ListPhase::kEnded);  // or it would not have
  }
  return follow_sender(out);
}

bool SourceEnd::told_of_done() const {
  for (ObjectId object; catalog().contains(object); ++object) {
    if (sender_.done(object) && !catalog().files_of(object).front().failed()) return true;
  }
  return false;
}

// The names of a pack that the destination says it lacks. A file that is done has not failed.
void SourceEnd::note_failures(const FileDone& done) {
  for (catalog::File& file : files_.catalog().files_of(done.object)) {
    if (file.failed()) continue;
    file.missing = done.missing;
    if (file.part.what == selection::FilePart::What::kFinish) file.whole_digest = done.whole_digest;
    if (!file.packed()) file.missing.forget_failures();
  }
}

Status SourceEnd::object_state(LegId leg, const ObjectState& state, Effects& out) {
  if (state.end) {
    if (const Status status = states_end(leg, out); !status) return status;
    // These flows count what they brought themselves, also if a former control opened them.
    const uint64_t held = sender_.bytes_held();
    if (!states_known_) held_at_start_ = held - std::min(held, legs_.at(leg).flows_done());
    states_known_ = true;
    sender_.report_again(leg);
    sender_.peer_said_all(leg);
  } else if (state.done) {
    legs_.at(leg).list(state.object);
    if (sender_.withdrawn(state.object)) note_failures({.object = state.object});  // too late
    (void)sender_.file_done(state.object, state.digest);
    if (Status status = check_withdrawn(state.object); !status) return status;
  } else {
    sender_.peer_lists(leg, state.object, state.held);
  }
  return follow_sender(out);
}

// The peer lists all that it has stored on each stream. A volume that went back in time makes it forget some.
// Of several legs only one that joins tells: on others what was done since the list was made may have been
// heard before.
Status SourceEnd::states_end(LegId leg, Effects& out) {
  const std::set<ObjectId> listed = legs_.at(leg).take_listed();
  const std::optional<std::set<ObjectId>> before = legs_.at(leg).take_done();
  for (uint32_t i = 0; i < catalog().object_count(); ++i) {
    const ObjectId object(i);
    if (listed.contains(object)) continue;
    const bool to_be_listed = before ? before->contains(object) : !joined_;
    if (to_be_listed && sender_.done(object) && !catalog().files_of(object).front().failed())
      return undone(object);
    // It was not told yet, or has forgotten it with the last rows of its journal.
    if (sender_.withdrawn(object)) say_failed(object, out);
  }
  return {};
}

}  // namespace sluice::transfer
