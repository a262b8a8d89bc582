// SPDX-License-Identifier: Apache-2.0
#include "control/leg/control_stream.h"

namespace sluice::transfer {

bool allowed(StreamPhase from, StreamPhase to) {
  using P = StreamPhase;
  switch (to) {
    case P::kDown:
      return true;
    case P::kCalling:
      return from == P::kDown;
    case P::kGreeting:
      return true;  // by a call of ours, or by one of the peer at any time
    case P::kUp:
      return from == P::kGreeting;
  }
  return false;
}

void ControlStream::call(Effects& out, std::vector<Message> words) {
  phase_.change(StreamPhase::kCalling);
  ++calls_;
  out.add(Call{leg_, std::move(words)});
}

void ControlStream::call_ended(bool open, uint64_t now_ns) {
  CHECK(calls_ != 0, "what is answered was asked for");
  --calls_;
  if (phase_ != StreamPhase::kCalling) return;  // hung up meanwhile
  if (!open) return ended(now_ns);
  phase_.change(StreamPhase::kGreeting);
  opened_ns_ = heard_ns_ = now_ns;
  next_heartbeat_ns_ = now_ns + kHeartbeatNs;
}

void ControlStream::take(uint64_t now_ns, Effects& out) {
  out.add(TakeCall{leg_});
  phase_.change(StreamPhase::kGreeting);
  opened_ns_ = heard_ns_ = now_ns;
  next_heartbeat_ns_ = now_ns + kHeartbeatNs;
}

void ControlStream::ended(uint64_t now_ns) {
  if (phase_ == StreamPhase::kUp) down_since_ns_ = now_ns;  // a call in vain changes nothing
  next_call_ns_ = now_ns + kCallAgainNs;
  phase_.change(StreamPhase::kDown);
}

void ControlStream::hang_up(uint64_t now_ns, Effects& out) {
  if (phase_ == StreamPhase::kDown) return;
  out.add(HangUp{leg_});
  ended(now_ns);
}

void ControlStream::send(Message message, Effects& out) {
  if (open()) out.add(Send{leg_, std::move(message)});
}

bool ControlStream::keep_alive(Heartbeat word, uint64_t now_ns, Effects& out) {
  if (!open()) return true;
  if (heartbeat_due(now_ns)) {
    next_heartbeat_ns_ = now_ns + kHeartbeatNs;
    // Also while a Hello is awaited: a machine that was away meanwhile then says that it knows of no stream.
    send(std::move(word), out);
  }
  if (!up() && now_ns - opened_ns_ > kGreetingNs) return false;
  return now_ns - heard_ns_ <= kSilenceNs;
}

uint64_t ControlStream::due_ns() const {
  if (open()) return next_heartbeat_ns_;
  return phase_ == StreamPhase::kDown ? next_call_ns_ : UINT64_MAX;
}

}  // namespace sluice::transfer
