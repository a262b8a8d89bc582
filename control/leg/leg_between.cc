// What a leg says to the peer between attempts: that the transfer has ended here, or the question whether the
// peer still knows it.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "control/leg/leg.h"
#include "control/leg/negotiation.h"

namespace sluice::transfer {

// ---- after the end of the transfer ---------------------------------------------------------------

void Leg::part(std::vector<Message> words, uint64_t until_ns, uint64_t now_ns, Effects& out) {
  parting_.words = std::move(words);
  parting_.until_ns = until_ns;
  parting_waits().moved();
  if (parting_.awaited_until_ns == 0) stream_.reset(now_ns);
  enter(P::kParting, now_ns);
  keep_parting(now_ns, out);
}

// Until the peer says that it has ended there as well: what was said may be lost with a process that heard
// it.
void Leg::keep_parting(uint64_t now_ns, Effects& out) {
  if (now_ns >= parting_.until_ns) return parted(now_ns, out);
  if (parting_.awaited_until_ns != 0 && now_ns >= parting_.awaited_until_ns) {
    parting_.awaited_until_ns = 0;
    stream_.hang_up(now_ns, out);
  }
  if (stream_.phase() == StreamPhase::kGreeting) {
    stream_.greeted();
    for (const Message& word : parting_.words) stream_.send(word, out);
  }
  if (stream_.phase() != StreamPhase::kDown || now_ns < parting_waits().next_ns()) return;
  parting_waits().interrupted(now_ns, false);
  stream_.call(out);
}

void Leg::parted(uint64_t now_ns, Effects& out) {
  stream_.hang_up(now_ns, out);
  parting_ = {.over = true, .aware = parting_.aware};
  enter(P::kIdle, now_ns);
}

// Of a source of several: all has arrived, and others may not even have ended their attempt.
void Leg::hear_last_word(const Message& message, uint64_t now_ns, Effects& out) {
  const bool ends = std::holds_alternative<Failure>(message) || std::holds_alternative<Pause>(message);
  parting_.aware = std::holds_alternative<SessionDone>(message);
  if (!ends && !parting_.aware) return;
  parting_.awaited_until_ns = 0;
  stream_.hang_up(now_ns, out);
  if (phase_ == P::kParting && parting_.aware) parted(now_ns, out);
}

// ---- between attempts ------------------------------------------------------------------------------

// The node that began a transfer calls for it. If it has lost its journal it never will, and the node that
// was called would keep files for nothing.
void Leg::expect_call(uint64_t now_ns) {
  inquiries_.moved();
  inquiries_.interrupted(now_ns, false);
}

bool Leg::inquiring(bool wanted, uint64_t now_ns, Effects& out) {
  if (phase_ == P::kIdle) {
    if (!wanted || now_ns < inquiry_due_ns()) return false;
    stream_.reset(now_ns);
    enter(P::kInquiring, now_ns);
    stream_.call(out, {question()});
  }
  // A call of the peer says more than its answer would.
  if (!wanted || call_waits()) stream_.hang_up(now_ns, out);
  advance(now_ns, out);
  return phase_ == P::kInquiring;
}

Hello Leg::question() const {
  Hello question = make_hello(job_.id);
  question.known = job_.began;
  question.inquires = true;
  return question;
}

// Only a Hello answers. If anything else comes, or nothing, this node keeps the session and asks again later.
void Leg::hear_answer(const Message& message, uint64_t now_ns, Effects& out) {
  if (std::holds_alternative<Heartbeat>(message)) return;
  const auto* const answer = std::get_if<Hello>(&message);
  if (answer == nullptr || !check_hello(*answer) || answer->session_id != job_.id) {
    out.log(LogLevel::kDebug, fmt::format("{} does not say whether it knows the session", peer_name_));
    return stream_.hang_up(now_ns, out);
  }
  if (!answer->ended) {
    peer_pauses_ = answer->paused;
    out.log(LogLevel::kInfo, fmt::format("{} knows the session, and {}", peer_name_,
                                         answer->paused ? "has paused it" : "is to call"));
    return stream_.hang_up(now_ns, out);
  }
  waiting_call_ = WaitingCall{.hello = *answer, .ours = true};
  asked(now_ns);
}

void Leg::asked(uint64_t now_ns) {
  inquiries_.interrupted(now_ns, false);
  enter(P::kIdle, now_ns);
}

}  // namespace sluice::transfer
