// SPDX-License-Identifier: Apache-2.0
#include "control/transfer/reception.h"

#include <fmt/format.h>

#include "control/transfer/negotiation.h"

namespace sluice::transfer {

Decision receive_call(const std::string& peer, const Hello& hello, const UnderId& known) {
  if (const Status status = check_hello(hello); !status) return {Reception::kRefused, status.error()};
  const Error not_yours{ErrorCode::kIncompatible,
                        fmt::format("session {} is not yours to open", hello.session_id)};
  // Whoever began a session calls for it, and is asked for it.
  if (known.active) {
    if (known.initiator != hello.inquires || known.peer != peer) return {Reception::kRefused, not_yours};
    return {hello.inquires ? Reception::kKnows : Reception::kKnown, std::nullopt};
  }
  if (known.record == nullptr) {
    if (hello.inquires) return {Reception::kUnknown, std::nullopt};
    return {hello.ended ? Reception::kNothing : Reception::kNew, std::nullopt};
  }
  if (known.record->initiator != hello.inquires || known.record->legs.front().peer != peer)
    return {Reception::kRefused, not_yours};
  if (has_ended(known.record->state)) return {Reception::kEnded, std::nullopt};
  if (hello.inquires) return {Reception::kKnows, std::nullopt};
  return {hello.ended ? Reception::kNothing : Reception::kNew, std::nullopt};
}

std::vector<Message> nothing_answer(const Hello& hello) {
  Hello answer = make_hello(hello.session_id);
  answer.ended = true;
  return {std::move(answer)};
}

std::vector<Message> knows_answer(const Hello& hello) {
  Hello answer = make_hello(hello.session_id);
  answer.known = true;
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
    uint32_t object = 0;
    for (const catalog::File& file : saved.files) {
      answer.emplace_back(ObjectState{.object = ObjectId(object++), .done = true, .digest = file.digest});
    }
    answer.emplace_back(ObjectState{.end = true});
  }
  answer.emplace_back(SessionDone{.files = saved.files.size()});
  return answer;
}

}  // namespace sluice::transfer
