// SPDX-License-Identifier: Apache-2.0
#include "control/transfer/peer_call.h"

#include <fmt/format.h>

#include <algorithm>

#include "control/leg/negotiation.h"

namespace sluice::transfer {

Decision receive_call(const std::string& peer, const Hello& hello, const UnderId& known) {
  if (const Status status = check_hello(hello); !status)
    return {.kind = CallKind::kRefused, .error = status.error(), .reason = status.error().message};
  const Record* const record = known.record;
  bool its_own = true;  // the caller's: one leg at least goes to it
  bool fits = true;     // whoever began a session calls for it, and is asked for it
  const auto belongs = [&](bool initiator, bool to_caller) {
    its_own = its_own && to_caller;
    fits = fits && initiator == hello.inquires;
  };
  const auto legs_to_caller = std::ranges::count(known.peers, peer);
  if (!known.peers.empty()) belongs(known.initiator, legs_to_caller != 0);
  if (record != nullptr)
    belongs(record->initiator, std::ranges::count(record->legs, peer, &LegRecord::peer) != 0);
  if (!fits || !its_own) {
    // For the session of somebody else the peer gets the answer for one that nobody knows, if that answer
    // opens none.
    if (hello.ended) return {.kind = CallKind::kNothing};
    if (hello.inquires && !its_own) return {.kind = CallKind::kUnknown};
    // Whoever had it before has a copy of what its journal was then.
    if (record != nullptr && record->moved && record->moved->from == peer) {
      const Error error{
          ErrorCode::kMoved,
          fmt::format("the session has gone to node {}: only that one goes on with it", record->moved->to)};
      return {.kind = CallKind::kRefused, .error = error, .reason = error.message};
    }
    return {.kind = CallKind::kRefused,
            .error = Error{ErrorCode::kIncompatible,
                           "the id of this session cannot be used here: begin another session"},
            .reason = fmt::format("it calls for session {}, which is not its own", hello.session_id)};
  }
  const uint32_t legs = known.active ? static_cast<uint32_t>(legs_to_caller) : known.legs_of_new;
  if (hello.leg >= legs) {
    return {.kind = CallKind::kRefused,
            .error = Error{ErrorCode::kIncompatible,
                           fmt::format("the session has no leg {} here: run one version on both nodes",
                                       hello.leg)},
            .reason = fmt::format("it calls for leg {} of session {}, which has {}", hello.leg,
                                  hello.session_id, legs)};
  }
  const bool asks = hello.inquires && !hello.ended;  // else it tells how it has ended there
  if (known.active) return {.kind = asks ? CallKind::kKnows : CallKind::kKnown};
  if (record != nullptr && asks && moved_away(*record)) return {.kind = CallKind::kKnows};
  if (record != nullptr && has_ended(record->state)) return {.kind = CallKind::kEnded};
  if (asks) return {.kind = record != nullptr ? CallKind::kKnows : CallKind::kUnknown};
  // This node is about to take it up again: nobody may hear that it has ended.
  if (hello.inquires && record != nullptr) return {.kind = CallKind::kKnows};
  if (hello.ended) return {.kind = CallKind::kNothing};
  return {.kind = known.ending ? CallKind::kLater : CallKind::kNew};
}

std::vector<Message> nothing_answer(const Hello& hello) {
  Hello answer = make_hello(hello.session_id);
  answer.ended = true;
  return {std::move(answer)};
}

std::vector<Message> knows_answer(const Hello& hello, bool paused) {
  Hello answer = make_hello(hello.session_id);
  answer.known = true;
  answer.paused = paused;
  return {std::move(answer)};
}

std::vector<Message> unknown_answer(const Hello& hello) {
  std::vector<Message> answer = nothing_answer(hello);
  answer.emplace_back(failure_of(
      {ErrorCode::kPeerUnreachable,
       "knows nothing of this session any more (its journal was lost, or has forgotten it): begin another"}));
  return answer;
}

std::vector<Message> ended_answer(const Saved& saved) {
  const Record& record = saved.record;
  std::vector<Message> answer;
  Hello hello = make_hello(record.id);
  hello.ended = true;
  answer.emplace_back(std::move(hello));
  if (record.state != RecordState::kSucceeded) {
    answer.emplace_back(failure_of(record.error.value_or(Error{})));
    return answer;
  }
  if (record.role == Role::kDestination) {
    ObjectId object;
    for (const catalog::File& file : saved.files) {
      if (file.failed()) {
        answer.emplace_back(ObjectFailed{.object = object++, .names = file.missing.names});
        continue;
      }
      answer.emplace_back(ObjectState{.object = object, .done = true, .digest = file.digest});
      if (!file.missing.names.empty())
        answer.emplace_back(FileDone{.object = object, .digest = file.digest, .missing = file.missing});
      ++object;
    }
    answer.emplace_back(ObjectState{.end = true});
  }
  answer.emplace_back(SessionDone{.files = saved.files.size()});
  return answer;
}

}  // namespace sluice::transfer
