// SPDX-License-Identifier: Apache-2.0
#include "control/leg/control_stream.h"

#include <gtest/gtest.h>

namespace sluice::transfer {
namespace {

constexpr uint64_t kNow = 1'000 * 1'000'000'000ULL;

// A stream that this node called, and what it asked for since.
struct Called {
  ControlStream stream{LegId(0)};
  Effects out;

  explicit Called(bool greeted = true) {
    stream.reset(kNow);
    stream.call(out);
    stream.call_ended(true, kNow);
    if (greeted) stream.greeted();
    (void)out.drain();
  }
  template <typename E>
  size_t count() {
    size_t found = 0;
    for (const Effect& effect : out.drain()) found += std::holds_alternative<E>(effect) ? 1 : 0;
    return found;
  }
};

TEST(StreamPhases, AStreamIsGreetedBeforeItIsUpAndCalledOnlyWhenThereIsNone) {
  for (const StreamPhase from :
       {StreamPhase::kDown, StreamPhase::kCalling, StreamPhase::kGreeting, StreamPhase::kUp}) {
    EXPECT_TRUE(allowed(from, StreamPhase::kDown));
    EXPECT_TRUE(allowed(from, StreamPhase::kGreeting)) << "a peer may call at any time";
    EXPECT_EQ(allowed(from, StreamPhase::kCalling), from == StreamPhase::kDown);
    EXPECT_EQ(allowed(from, StreamPhase::kUp), from == StreamPhase::kGreeting);
  }
}

TEST(ControlStream, IsCalledAtOnceInANewAttemptAndThenAfterAWhile) {
  ControlStream stream(LegId(0));
  Effects out;
  stream.reset(kNow);
  EXPECT_TRUE(stream.may_call(kNow));
  stream.call(out);
  EXPECT_TRUE(stream.call_pending());
  EXPECT_FALSE(stream.may_call(kNow)) << "one call at a time";
  stream.call_ended(false, kNow + 5);
  EXPECT_FALSE(stream.call_pending());
  EXPECT_FALSE(stream.may_call(kNow + 5));
  EXPECT_EQ(stream.due_ns(), kNow + 5 + ControlStream::kCallAgainNs);
  EXPECT_TRUE(stream.may_call(stream.due_ns()));
}

TEST(ControlStream, ACallInVainDoesNotChangeSinceWhenThereIsNone) {
  Called called;
  called.stream.ended(kNow + 100);
  EXPECT_EQ(called.stream.down_since_ns(), kNow + 100);
  called.stream.call(called.out);
  called.stream.call_ended(false, kNow + 900);
  EXPECT_EQ(called.stream.down_since_ns(), kNow + 100);
  called.stream.call(called.out);
  called.stream.call_ended(true, kNow + 1'000);
  called.stream.ended(kNow + 2'000);  // before anybody greeted
  EXPECT_EQ(called.stream.down_since_ns(), kNow + 100);
}

TEST(ControlStream, ACallThatIsTakenAfterItWasHungUpIsNobodys) {
  ControlStream stream(LegId(0));
  Effects out;
  stream.call(out);
  stream.hang_up(kNow, out);
  EXPECT_EQ(stream.phase(), StreamPhase::kDown);
  EXPECT_TRUE(stream.call_pending()) << "its answer is still to come";
  stream.call_ended(true, kNow + 1);
  EXPECT_EQ(stream.phase(), StreamPhase::kDown);
  EXPECT_FALSE(stream.call_pending());
}

TEST(ControlStream, BeforeTheHellosTheDataEndSaysNothing) {
  Called called(false);
  called.stream.say(SessionDone{}, called.out);
  EXPECT_EQ(called.count<Send>(), 0U);
  called.stream.send(Hello{}, called.out);
  EXPECT_EQ(called.count<Send>(), 1U);
  called.stream.greeted();
  called.stream.say(SessionDone{}, called.out);
  EXPECT_EQ(called.count<Send>(), 1U);
}

TEST(ControlStream, WithoutOneNothingIsSentAndNothingHungUp) {
  ControlStream stream(LegId(0));
  Effects out;
  stream.send(Heartbeat{}, out);
  stream.say(Heartbeat{}, out);
  stream.hang_up(kNow, out);
  EXPECT_TRUE(stream.keep_alive(kNow, out));
  EXPECT_TRUE(out.empty());
}

TEST(ControlStream, SendsAHeartbeatEachSecondAlsoBeforeItIsGreeted) {
  for (const bool greeted : {false, true}) {
    Called called(greeted);
    for (uint64_t i = 1; i <= 5; ++i) {
      EXPECT_EQ(called.stream.due_ns(), kNow + i * ControlStream::kHeartbeatNs);
      EXPECT_TRUE(called.stream.keep_alive(called.stream.due_ns() - 1, called.out));
      EXPECT_EQ(called.count<Send>(), 0U);
      EXPECT_TRUE(called.stream.keep_alive(called.stream.due_ns(), called.out));
      EXPECT_EQ(called.count<Send>(), 1U);
    }
  }
}

TEST(ControlStream, ASilentPeerIsNotWaitedForForEver) {
  Called called;
  EXPECT_TRUE(called.stream.keep_alive(kNow + ControlStream::kSilenceNs, called.out));
  EXPECT_FALSE(called.stream.keep_alive(kNow + ControlStream::kSilenceNs + 1, called.out));
  called.stream.heard(kNow + ControlStream::kSilenceNs);
  EXPECT_TRUE(called.stream.keep_alive(kNow + ControlStream::kSilenceNs + 1, called.out));
}

TEST(ControlStream, APeerThatDoesNotGreetIsNotWaitedForThoughItBeats) {
  Called called(false);
  for (uint64_t at = 0; at <= ControlStream::kGreetingNs; at += 1'000'000'000) {
    called.stream.heard(kNow + at);
    EXPECT_TRUE(called.stream.keep_alive(kNow + at, called.out));
  }
  EXPECT_FALSE(called.stream.keep_alive(kNow + ControlStream::kGreetingNs + 1, called.out));
}

TEST(ControlStream, ThePeersCallTakesThePlaceOfWhateverWas) {
  Called called;
  called.stream.take(kNow + 50, called.out);
  EXPECT_EQ(called.count<TakeCall>(), 1U);
  EXPECT_EQ(called.stream.phase(), StreamPhase::kGreeting);
  EXPECT_TRUE(called.stream.open());
  EXPECT_FALSE(called.stream.up());
}

}  // namespace
}  // namespace sluice::transfer
