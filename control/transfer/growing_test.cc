// A transfer whose list of files is read while data moves, at both ends.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "control/transfer/transfer_fixture.h"

namespace sluice::transfer::test {
namespace {

Scene growing(Scene scene) {
  scene.grows = 1;
  return scene;
}
Scene growing_source() { return growing({.role = Role::kSource}); }
Scene growing_destination() { return growing({.role = Role::kDestination}); }

void expect_success(World& world) {
  EXPECT_TRUE(world.over);
  EXPECT_EQ(world.error(), std::nullopt) << world.transfer().error()->message;
  EXPECT_EQ(world.state(), ViewState::kSucceeded);
}

// Where in the order of effects the first of these is.
template <typename Test>
size_t place_of(const World& world, Test test) {
  return static_cast<size_t>(std::find_if(world.effects.begin(), world.effects.end(), test) -
                             world.effects.begin());
}
template <typename M, typename Test>
size_t place_said(const World& world, Test test) {
  return place_of(world, [&](const Effect& effect) {
    const auto* const sent = std::get_if<Send>(&effect);
    const M* const word = sent == nullptr ? nullptr : std::get_if<M>(&sent->message);
    return word != nullptr && test(*word);
  });
}
size_t place_noted(const World& world, Entry entry) {
  return place_of(world, [entry](const Effect& effect) {
    const auto* const written = std::get_if<WriteJournal>(&effect);
    return written != nullptr && written->entry == entry;
  });
}

TEST(Growing, SucceedsInEitherRoleCallingOrCalled) {
  for (const Scene& each : every_scene()) {
    for (const bool bare_end : {false, true}) {
      for (const bool packs : {false, true}) {
        for (const bool discard : {false, true}) {
          SCOPED_TRACE(name_of(each) + (bare_end ? ", bare end" : "") + (packs ? ", packs" : "") +
                       (discard ? ", discarded" : ""));
          Scene scene = growing(each);
          scene.bare_end = bare_end;
          scene.packs = packs;
          scene.discard = discard;
          if (packs) scene.sizes.back() = 300;
          World world(scene);
          world.start();
          expect_success(world);
          EXPECT_EQ(world.journal.files.size(), scene.sizes.size());
          EXPECT_EQ(world.count(Entry::kGrown), bare_end ? 3U : 2U);
        }
      }
    }
  }
}

// The point of it all.
TEST(Growing, TheFirstBytesAreDoneWhileTheListIsRead) {
  World world(growing_source());
  world.hold<ReadList>();
  world.start();
  EXPECT_TRUE(world.transfer().job().source()->done(ObjectId(0)));
  EXPECT_EQ(world.leg_phase(), LegPhase::kMoving);
  world.pass(5 * world.scene.settings.stall_timeout_ns);
  EXPECT_EQ(world.leg_phase(), LegPhase::kMoving) << "that it reads on is no stall";
  world.release();
  expect_success(world);

  World receives(growing_destination());
  receives.peer.bare_end = true;
  receives.twist = [said = 0](Message& message) mutable {
    if (std::holds_alternative<TransferOffer>(message) && ++said == 2) message = Heartbeat{};
  };
  receives.start();
  EXPECT_TRUE(receives.transfer().job().destination()->done(ObjectId(0)));
  for (int i = 0; i < 100; ++i) {
    receives.hear(Heartbeat{});
    receives.pass(kSecondNs);
  }
  EXPECT_EQ(receives.leg_phase(), LegPhase::kMoving);
  EXPECT_EQ(receives.over, false);
}

TEST(Growing, TheJournalKnowsBeforeThePeer) {
  World world(growing_source());
  world.hold(Entry::kGrown);
  world.start();
  for (const TransferOffer& offer : world.said<TransferOffer>()) EXPECT_EQ(offer.files.front().number, 0U);
  world.release();
  expect_success(world);
  World receives(growing_destination());
  receives.hold(Entry::kGrown);
  receives.start();
  EXPECT_EQ(receives.said<TransferReady>().size(), 1U);
  receives.release();
  expect_success(receives);
  EXPECT_LT(place_noted(receives, Entry::kGrown),
            place_said<TransferReady>(receives, [](const TransferReady& r) { return r.flow_ids.empty(); }));
}

// One row for each file, and one for a bare end: nothing is written twice.
TEST(Growing, TheJournalGrowsByWhatIsNew) {
  for (const Scene& each : every_scene()) {
    SCOPED_TRACE(name_of(each));
    Scene scene = growing(each);
    scene.bare_end = true;
    World world(scene);
    std::vector<uint32_t> rows;
    world.on_effect = [&](const Effect& effect) {
      const auto* const written = std::get_if<WriteJournal>(&effect);
      if (written == nullptr || written->entry != Entry::kGrown) return;
      EXPECT_FALSE(written->batch.record);
      for (const FileRow& row : written->batch.files) rows.push_back(row.file.value());
    };
    world.start();
    EXPECT_EQ(rows, (std::vector<uint32_t>{1, 2, 2}));
    EXPECT_EQ(world.journal.files[1].list, catalog::ListState::kGrowing);
    EXPECT_EQ(world.journal.files[2].list, catalog::ListState::kEnded);
  }
}

TEST(Growing, NothingOfAFileIsSentOrSaidBeforeThePeerAnswersForIt) {
  World world(growing_source());
  size_t ready = 0;
  world.twist = [&](Message& message) {
    if (std::holds_alternative<TransferReady>(message) && ++ready == 2) message = Heartbeat{};
  };
  world.start();
  world.pass(kSecondNs);
  for (const Effect& effect : world.effects) {
    const auto* const open = std::get_if<OpenObject>(&effect);
    EXPECT_TRUE(open == nullptr || open->object == ObjectId(0));
  }
  EXPECT_EQ(world.said<FileDigest>().size(), 1U);
  EXPECT_FALSE(world.over);
  // It is offered again on the next stream.
  world.lose_stream();
  world.pass(kSecondNs);
  expect_success(world);
}

TEST(Growing, APeerThatDoesNotUnderstandItGetsTheWholeListAtOnce) {
  for (const bool initiator : {true, false}) {
    Scene scene = growing_source();
    scene.initiator = initiator;
    World world(scene);
    if (initiator) {
      world.twist = [](Message& message) {
        if (auto* set = std::get_if<SpecificationSet>(&message)) set->abilities = {};
      };
    } else {
      world.twist = [](Message& message) {
        if (auto* wishes = std::get_if<Specification>(&message)) wishes->abilities = {};
      };
    }
    world.start();
    expect_success(world);
    ASSERT_EQ(world.said<TransferOffer>().size(), 1U);
    EXPECT_FALSE(world.said<TransferOffer>().front().growing);
    EXPECT_EQ(world.said<TransferOffer>().front().files.size(), 3U);
    EXPECT_EQ(world.journal.files.back().list, catalog::ListState::kWhole);
    EXPECT_EQ(world.count(Entry::kGrown), 0U);
  }
}

TEST(Growing, ASessionWithADeadlineHasTheWholeListAtOnce) {
  Scene scene = growing_source();
  scene.deadline_s = 100'000;
  World world(scene);
  world.start();
  ASSERT_FALSE(world.said<Specification>().empty());
  EXPECT_FALSE(world.said<Specification>().front().abilities.has(Ability::kGrowingOffer));
}

TEST(Growing, AnOfferThatDoesNotContinueTheOneBeforeIsRefused) {
  const auto error_after = [](auto change) {
    World world(growing_destination());
    size_t offers = 0;
    world.twist = [&](Message& message) {
      auto* const offer = std::get_if<TransferOffer>(&message);
      if (offer != nullptr && ++offers == 2) change(*offer);
    };
    world.start();
    world.pass(kSecondNs);
    return world.error();
  };
  using O = TransferOffer;
  EXPECT_EQ(error_after([](O& o) { o.files.front().number = 2; }), ErrorCode::kIncompatible);
  EXPECT_EQ(error_after([](O& o) { o.files.front().name = "f0"; }), ErrorCode::kIncompatible);
  EXPECT_EQ(error_after([](O& o) { o.files.front().number = 0; }), ErrorCode::kIntegrity);
  EXPECT_EQ(error_after([](O& o) { o.files.clear(); }), ErrorCode::kIncompatible);
  EXPECT_EQ(error_after([](O& o) { o.files.front().name = "../x"; }), ErrorCode::kIncompatible);
}

TEST(Growing, MoreThanWhatWasCalledAllIsRefused) {
  World world(growing_destination());
  world.data = false;
  world.start();
  world.hear(TransferOffer{.files = {{.number = 3, .name = "late", .size_bytes = 5}},
                           .destination = "in/",
                           .into_directory = true});
  world.pass(kSecondNs);
  EXPECT_EQ(world.error(), ErrorCode::kIntegrity);
  World whole({.role = Role::kDestination});
  whole.data = false;
  whole.start();
  whole.hear(TransferOffer{.destination = "in/", .into_directory = true});
  whole.pass(kSecondNs);
  EXPECT_EQ(whole.error(), ErrorCode::kIncompatible);
}

TEST(Growing, ADestinationThatEndsBeforeTheListDoesIsRefused) {
  World world(growing_source());
  world.hold<ReadList>();
  world.start();
  world.hear(SessionDone{});
  EXPECT_EQ(world.error(), ErrorCode::kIncompatible);
}

TEST(Growing, WhatCannotBeListedEndsTheSession) {
  for (const Scene& each : every_scene()) {
    if (each.role != Role::kSource) continue;
    World world(growing(each));
    world.fail<ReadList>(ErrorCode::kSourceUnreadable, 1);
    world.start();
    world.pass(kLongNs);
    EXPECT_EQ(world.error(), ErrorCode::kSourceUnreadable);
    EXPECT_TRUE(world.over);
  }
}

TEST(Growing, ARestartedSourceReadsOnlyWhatItHasNotNoted) {
  for (const bool adopt : {true, false}) {
    for (const Entry entry : {Entry::kGrown, Entry::kEnded}) {
      World world(growing_source());
      if (entry == Entry::kGrown) world.hold(entry, 1);
      if (entry != Entry::kGrown) world.hold<ReadList>(1);
      world.start();
      EXPECT_EQ(world.journal.files.size(), entry == Entry::kGrown ? 3U : 2U);
      world.restart(adopt);
      world.start();
      world.pass(kSecondNs);
      expect_success(world);
      EXPECT_EQ(world.journal.files.size(), 3U);
    }
  }
}

TEST(Growing, APauseForgetsWhatWasReadAndNotNoted) {
  World world(growing_source());
  world.hold<ReadList>();
  world.start();
  world.post(PauseAsked{});
  world.pass(kSecondNs);
  EXPECT_EQ(world.phase(), TransferPhase::kPaused);
  world.release();  // the answer comes late
  world.post(ContinueAsked{});
  world.pass(kSecondNs);
  expect_success(world);
  EXPECT_EQ(world.journal.files.size(), 3U);
  EXPECT_EQ(world.journal.files[1].name, "f1");
}

// It was killed before it had noted what it offered at first: what it lists now begins otherwise.
TEST(Growing, ASourceThatForgotItsListBeginsAnew) {
  World world(growing_destination());
  world.data = false;
  world.start();
  ASSERT_TRUE(world.scene.initiator);
  world.peer = HonestPeer(Role::kSource, false, Content{world.scene.sizes});
  world.peer.grows = 2;
  world.peer.bare_end = true;
  world.lose_board();
  world.attach();
  world.data = true;
  world.pass(kLongNs);
  expect_success(world);
  EXPECT_EQ(world.count(Entry::kForgotten), 1U);
}

// Objects are taken modulo the places that a dataplane has: those that come later wait for the place of one
// before.
TEST(Growing, APlaceAtTheDataplaneIsUsedOnceAtATime) {
  for (const Scene& each : every_scene()) {
    SCOPED_TRACE(name_of(each));
    Scene scene = growing(each);
    scene.sizes = std::vector<uint64_t>(12, 2 * kExtent);
    scene.settings.open_objects_max = 3;
    World world(scene);
    std::map<uint32_t, uint32_t> open;
    world.on_effect = [&](const Effect& effect) {
      if (const auto* each_open = std::get_if<OpenObject>(&effect)) {
        const uint32_t place = each_open->object.value() % 3;
        EXPECT_FALSE(open.contains(place)) << each_open->object.value();
        open[place] = each_open->object.value();
      }
      if (const auto* shut = std::get_if<CloseObject>(&effect)) open.erase(shut->object.value() % 3);
      if (std::holds_alternative<ReleaseFlows>(effect)) open.clear();
    };
    world.start();
    expect_success(world);
  }
}

// Its journal was lost: it does not know what it called done.
TEST(Growing, ADestinationThatHasLostItsJournalIsOfferedAllAnew) {
  for (const bool grows : {false, true}) {
    SCOPED_TRACE(grows);
    Scene scene{.role = Role::kSource};
    if (grows) scene.grows = 1;
    World world(scene);
    world.mute = {"SessionDone"};
    world.data = false;
    world.start();
    ASSERT_EQ(world.leg_phase(), LegPhase::kMoving);
    world.hear(FileDone{.object = ObjectId(0), .digest = world.content.digest(ObjectId(0))});
    world.mute = {};
    world.peer.known = false;
    world.data = true;
    world.lose_board();  // and with it the flows
    world.attach();
    world.pass(kLongNs);
    EXPECT_EQ(world.count(Entry::kForgotten), 1U);
    expect_success(world);
  }
}

}  // namespace
}  // namespace sluice::transfer::test
