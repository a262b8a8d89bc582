// What a peer says in a handshake: offers in parts, and each word that it may get wrong.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "control/leg/handshake.h"
#include "control/transfer/scenes_for_test.h"

namespace sluice::transfer::test {
namespace {

// ---- offers in parts -------------------------------------------------------------------------------------

Scene many_files(Scene scene, size_t files) {
  scene.sizes.assign(files, 1);
  return scene;
}

TEST(Handshake, AnOfferOfManyFilesComesInParts) {
  World sends(many_files(source(), 2 * kFilesPerOffer + 1));
  sends.looks = false;  // the time of a look grows with the files
  sends.start();
  const std::vector<TransferOffer> parts = sends.said<TransferOffer>();
  ASSERT_EQ(parts.size(), 3U);
  EXPECT_TRUE(parts[0].more && parts[1].more && !parts[2].more);
  EXPECT_EQ(parts[1].files.front().number, kFilesPerOffer);
  EXPECT_EQ(parts[2].files.size(), 1U);
}

// The peer's offer of `files` files, cut into parts of `part`.
std::unique_ptr<World> offered(size_t files, size_t part) {
  auto world = std::make_unique<World>(many_files(called(destination()), 3));
  world->mute = {"TransferOffer"};
  world->looks = world->data = false;
  world->start();
  EXPECT_EQ(world->handshake_phase(), HandshakePhase::kOffer);
  for (size_t at = 0; at < files && !world->over; at += part) {
    TransferOffer offer{.destination = "in/", .into_directory = true, .more = at + part < files};
    for (size_t i = at; i < std::min(files, at + part); ++i) {
      offer.files.push_back({.number = static_cast<uint32_t>(i), .name = "f" + std::to_string(i)});
    }
    world->hear(offer);
  }
  return world;
}

TEST(Handshake, PartsOfAnOfferAreOneOffer) {
  const auto world = offered(kFilesPerOffer + 5, 100);
  EXPECT_EQ(world->count<CreateFiles>(), 1U);
  EXPECT_EQ(world->journal.files.size(), kFilesPerOffer + 5);
}

TEST(Handshake, AnOfferOfTooManyFilesIsRefused) {
  const auto world = offered(catalog::kFilesMax + 1, 1000);
  EXPECT_EQ(world->error(), ErrorCode::kIncompatible);
  EXPECT_EQ(world->count<CreateFiles>(), 0U);
}

TEST(Handshake, AnEndlessOfferOfNothingIsRefused) {
  World world(called(destination()));
  world.mute = {"TransferOffer"};
  world.start();
  world.hear(TransferOffer{.more = true});
  EXPECT_EQ(world.error(), ErrorCode::kIncompatible);
}

// ---- what a peer may get wrong ---------------------------------------------------------------------------

// The peer's first word of kind M, changed.
template <typename M>
std::optional<ErrorCode> with(const Scene& scene, std::function<void(M&)> change) {
  World world(scene);
  world.twist = [&](Message& word) {
    if (auto* const it = std::get_if<M>(&word)) change(*it);
  };
  world.start();
  EXPECT_EQ(world.count<OpenFlow>(), 0U);
  return world.error();
}

TEST(Handshake, AWrongAnswerOfThePeerIsRefused) {
  EXPECT_EQ(with<Hello>(source(), [](Hello& h) { h.session_id = std::string(32, 'b'); }),
            ErrorCode::kIncompatible);
  EXPECT_EQ(with<Hello>(source(), [](Hello& h) { h.version_min = 99; }), ErrorCode::kIncompatible);
  EXPECT_EQ(with<SpecificationSet>(source(), [](SpecificationSet& s) { s.lanes = 2; }),
            ErrorCode::kIncompatible);
  EXPECT_EQ(with<SpecificationSet>(destination(), [](SpecificationSet& s) { s.extent_bytes = 1; }),
            ErrorCode::kIncompatible);
  EXPECT_EQ(with<TransferReady>(source(), [](TransferReady& r) { r.flow_ids.push_back(9); }),
            ErrorCode::kIncompatible);
  EXPECT_EQ(with<TransferReady>(source(), [](TransferReady& r) { r.credit_extents.clear(); }),
            ErrorCode::kIncompatible);
  EXPECT_EQ(with<TransferReady>(source(), [](TransferReady& r) { r.flow_ids = {0}; }),
            ErrorCode::kIncompatible);
  EXPECT_EQ(with<TransferReady>(source(), [](TransferReady& r) { r.credit_extents = {(1U << 20) + 1}; }),
            ErrorCode::kIncompatible);
  EXPECT_EQ(with<Specification>(called(source()), [](Specification& s) { s.rate_bps_max = 0; }),
            ErrorCode::kIncompatible);
  EXPECT_EQ(with<Specification>(called(source()), [](Specification& s) { s.role = OfferedRole(7); }),
            ErrorCode::kIncompatible);
}

TEST(Handshake, AWrongOfferIsRefusedBeforeAnyFileIsMade) {
  const std::vector<std::function<void(TransferOffer&)>> changes = {
      [](TransferOffer& o) { o.files.clear(); },
      [](TransferOffer& o) { o.files[1].number = 5; },
      [](TransferOffer& o) { o.files[0].name = ""; },
      [](TransferOffer& o) { o.files[0].name = "."; },
      [](TransferOffer& o) { o.files[0].name = ".."; },
      [](TransferOffer& o) { o.files[0].name = "a//b"; },
      [](TransferOffer& o) { o.files[0].name = "a/../b"; },
      [](TransferOffer& o) { o.files[0].name = "/a"; },
      [](TransferOffer& o) { o.files[0].name = std::string("a\0b", 3); },
      [](TransferOffer& o) { o.files[0].size_bytes = UINT64_MAX; },
      [](TransferOffer& o) { o.files[0].size_bytes = catalog::kFileBytesMax + 1; },
      [](TransferOffer& o) {
        for (OfferedFile& file : o.files) file.size_bytes = catalog::kFileBytesMax;  // too many extents
      },
  };
  for (size_t i = 0; i < changes.size(); ++i) {
    for (const Scene& scene : {destination(), called(destination())}) {
      World world(scene);
      world.twist = [&](Message& word) {
        if (auto* const offer = std::get_if<TransferOffer>(&word)) changes[i](*offer);
      };
      world.start();
      EXPECT_EQ(world.error(), i + 1 < changes.size() ? ErrorCode::kIncompatible : ErrorCode::kResources)
          << i;
      EXPECT_EQ(world.count<CreateFiles>(), 0U);
    }
  }
}

TEST(Handshake, WhereAnOperatorHereSaidWhereToThePeersWordDoesNotCount) {
  World world(destination());
  world.twist = [](Message& word) {
    if (auto* const offer = std::get_if<TransferOffer>(&word)) {
      offer->destination = "/etc/";
      offer->overwrite = offer->mkdir = true;
    }
  };
  world.start();
  for (const Effect& effect : world.effects) {
    const auto* const create = std::get_if<CreateFiles>(&effect);
    if (create == nullptr) continue;
    EXPECT_EQ(create->destination, "in/");
    EXPECT_FALSE(create->mkdir || create->files.front().overwrite);
  }
}

TEST(Handshake, APeerThatSaysTheWrongThingIsNamedWithIt) {
  World world(source());
  world.mute = {"SpecificationSet"};
  world.start();
  ASSERT_EQ(world.handshake_phase(), HandshakePhase::kAnswer);
  world.hear(TransferReady{});
  EXPECT_EQ(world.error(), ErrorCode::kIncompatible);
  EXPECT_NE(world.transfer().error()->message.find("TransferReady where SpecificationSet"),
            std::string::npos);
}

TEST(Handshake, APeerThatAnswersForAnotherSessionIsRefused) {
  for (Scene scene : {source(), destination()}) {
    World world(scene);
    world.twist = [](Message& word) {
      if (auto* const hello = std::get_if<Hello>(&word)) hello->session_id = std::string(32, 'b');
    };
    world.start();
    EXPECT_EQ(world.error(), ErrorCode::kIncompatible);
    EXPECT_NE(world.transfer().error()->message.find("answers for another session"), std::string::npos);
    EXPECT_TRUE(world.said<TransferOffer>().empty());
  }
}

TEST(Handshake, MoreThanWasAskedForIsRefused) {
  World world(source());
  world.hold<OpenSources>();
  world.start();
  const std::vector<recovery::Range> ranges(kRangesPerMessage, {.offset = 0, .length = 1});
  const Message word = ObjectState{.held = ranges};
  for (size_t n = 0; n < Handshake::kInboxBytesMax / memory_bytes(word); ++n) world.hear(word);
  EXPECT_EQ(world.leg_phase(), LegPhase::kHandshake);
  world.hear(word);
  world.release();
  EXPECT_EQ(world.error(), ErrorCode::kIncompatible);
}

}  // namespace
}  // namespace sluice::transfer::test
