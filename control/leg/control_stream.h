// A leg's control stream: called, greeted, kept alive, found dead, called again.
//
// Pure. A stream may be lost while data moves, since flows need it only at their end. It is then opened anew.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "control/words/effects.h"
#include "control/words/peer_stream.h"
#include "control/words/phase.h"

namespace sluice::transfer {

enum class StreamPhase : uint8_t {
  kDown,
  kCalling,   // Call was asked for
  kGreeting,  // open; the Hellos are not exchanged yet
  kUp,
};
bool allowed(StreamPhase from, StreamPhase to);

class ControlStream final : public PeerStream {
 public:
  static constexpr uint64_t kHeartbeatNs = 1'000'000'000;
  static constexpr uint64_t kSilenceNs = 15'000'000'000;   // then the peer is hung up on
  static constexpr uint64_t kGreetingNs = 10'000'000'000;  // within which it answers a Hello
  static constexpr uint64_t kCallAgainNs = 300'000'000;    // while data moves

  explicit ControlStream(LegId leg) : leg_(leg) {}

  // A new attempt begins: a call may be made at once.
  void reset(uint64_t now_ns) {
    down_since_ns_ = now_ns;
    next_call_ns_ = 0;
  }
  void call(Effects& out, std::vector<Message> words = {});  // which the peer hears first
  void call_ended(bool open, uint64_t now_ns);               // answers call()
  void take(uint64_t now_ns, Effects& out);                  // the peer's call, in the place of whatever was
  void greeted() { phase_.change(StreamPhase::kUp); }
  void heard(uint64_t now_ns) { heard_ns_ = now_ns; }
  void ended(uint64_t now_ns);  // by the peer, or the network
  void hang_up(uint64_t now_ns, Effects& out);
  // Dropped while there is no stream: what matters is said again on the next.
  void send(Message message, Effects& out);
  // As send(), for the data end. Drops the message until the Hellos are exchanged: before that the peer does
  // not know what it would be about.
  void say(Message message, Effects& out) override {
    if (up()) send(std::move(message), out);
  }
  // Heartbeats; false when the peer has been silent for too long: hang up.
  bool keep_alive(uint64_t now_ns, Effects& out) { return keep_alive({}, now_ns, out); }
  bool keep_alive(Heartbeat word, uint64_t now_ns, Effects& out);
  bool heartbeat_due(uint64_t now_ns) const { return open() && now_ns >= next_heartbeat_ns_; }
  bool may_call(uint64_t now_ns) const { return phase_ == StreamPhase::kDown && now_ns >= next_call_ns_; }

  uint64_t heard_ns() const override { return heard_ns_; }
  StreamPhase phase() const { return phase_; }
  bool open() const { return phase_ >= StreamPhase::kGreeting; }
  LegId leg() const override { return leg_; }
  bool up() const override { return phase_ == StreamPhase::kUp; }
  uint64_t down_since_ns() const { return down_since_ns_; }
  uint64_t due_ns() const;  // of the next heartbeat, or call
  // An answer to call() is still to come, though nobody wants it any more.
  bool call_pending() const { return calls_ != 0; }

 private:
  const LegId leg_;
  Phase<StreamPhase> phase_{StreamPhase::kDown};
  uint32_t calls_ = 0;  // asked for and not answered
  uint64_t heard_ns_ = 0;
  uint64_t opened_ns_ = 0;
  uint64_t next_heartbeat_ns_ = 0;
  uint64_t down_since_ns_ = 0;
  uint64_t next_call_ns_ = 0;
};

}  // namespace sluice::transfer
