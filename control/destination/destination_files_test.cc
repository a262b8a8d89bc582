// SPDX-License-Identifier: Apache-2.0
#include "control/destination/destination_files.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "dataplane/board/attach.h"

namespace sluice::transfer {
namespace {

constexpr uint32_t kExtent = 65536;

std::vector<catalog::File> known_files(size_t count) {
  std::vector<catalog::File> files;
  for (size_t i = 0; i < count; ++i) {
    files.push_back({.name = "f" + std::to_string(i), .shown = "in/f" + std::to_string(i), .size_bytes = 1});
  }
  return files;
}

TransferOffer offer_of(size_t count) {
  TransferOffer offer{.destination = "in/", .into_directory = true};
  for (size_t i = 0; i < count; ++i) {
    offer.files.push_back(
        {.number = static_cast<uint32_t>(i), .name = "f" + std::to_string(i), .size_bytes = 1});
  }
  return offer;
}

// Files of which at most four are open at a time, and what they ask for.
class Files : public testing::Test {
 protected:
  Files() { settings_.open_objects_max = 4; }

  void known(size_t count, bool discard = false) {
    files_ = std::make_unique<DestinationFiles>(settings_, discard, kExtent, known_files(count));
  }
  // The only thing that is asked for now.
  template <typename E>
  E asked() {
    std::vector<Effect> all = out_.drain();
    std::erase_if(all, [](const Effect& effect) { return std::holds_alternative<Log>(effect); });
    EXPECT_EQ(all.size(), 1U);
    if (all.size() == 1 && std::holds_alternative<E>(all[0])) return std::get<E>(all[0]);
    ADD_FAILURE() << "something else was asked for";
    return {};
  }
  uint32_t open_all() {
    uint32_t opened = 0;
    for (; !files_->prepared() && !HasFailure(); ++opened)
      EXPECT_TRUE(files_->on(ObjectOpened{.object = asked<OpenObject>().object}, out_));
    return opened;
  }

  Settings settings_;
  Effects out_;
  std::unique_ptr<DestinationFiles> files_ =
      std::make_unique<DestinationFiles>(settings_, false, kExtent, known_files(0));
};

TEST(FilesPhases, FromEachOnlyTheseFollow) {
  using P = FilesPhase;
  const std::set<P> prepared{P::kReopening, P::kFetching, P::kOpening, P::kReady};
  std::map<P, std::set<P>> next = {
      {P::kIdle, {P::kOffer, P::kRecovering, P::kFetching, P::kReopening, P::kReady}},
      {P::kOffer, {P::kCreating, P::kReopening, P::kOpening, P::kReady}},
      {P::kRecovering, {}},
      {P::kCreating, {P::kReopening, P::kOpening, P::kReady}},
      {P::kFetching, prepared},
      {P::kReopening, prepared},
      {P::kRecreating, {P::kNoting}},
      {P::kNoting, prepared},
      {P::kOpening, {P::kOpening, P::kReady}},
      {P::kReady, {}},
  };
  next[P::kReopening].insert(P::kRecreating);
  for (const auto& [from, expected] : next) {
    for (const auto& [to, unused] : next) {
      EXPECT_EQ(allowed(from, to), to == P::kIdle || expected.contains(to))
          << static_cast<int>(from) << " to " << static_cast<int>(to);
    }
  }
}

TEST_F(Files, AreCreatedAllAtOnceAndThenOpenedOneAfterTheOther) {
  ASSERT_TRUE(*files_->take_offer(offer_of(3), nullptr));
  files_->prepare(out_);
  EXPECT_EQ(files_->phase(), FilesPhase::kCreating);
  EXPECT_EQ(asked<CreateFiles>().files.size(), 3U);
  ASSERT_TRUE(files_->on(FilesCreated{known_files(3)}, out_));
  for (uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(files_->phase(), FilesPhase::kOpening);
    EXPECT_EQ(files_->pending(), 1U);
    const OpenObject open = asked<OpenObject>();
    EXPECT_EQ(open.object, ObjectId(i));
    EXPECT_EQ(open.flags, uint32_t{board::kObjectWrite});
    EXPECT_EQ(open.extent_bytes, kExtent);
    ASSERT_TRUE(files_->on(ObjectOpened{.object = open.object}, out_));
  }
  EXPECT_TRUE(files_->prepared());
  EXPECT_EQ(files_->pending(), 0U);
}

// Before anything of them is stored.
TEST_F(Files, OwnersThatWereNotAgreedUponAreRefused) {
  const auto offered = [this](uint32_t keep, const catalog::Attributes& attributes,
                              const selection::Keep& wanted, bool asked_here) {
    known(0);
    TransferOffer offer = offer_of(1);
    offer.files[0].name = "a";
    offer.files[0].attributes = attributes;
    offer.keep = keep;
    const std::vector<std::string> paths{"data/a"};
    const selection::Selection selection{.rules = {}, .names = {}, .keep = wanted};
    const DestinationFiles::Wish wish{.paths = paths, .selection = selection, .destination = "in/f"};
    const Result<bool> taken = files_->take_offer(offer, asked_here ? &wish : nullptr);
    return taken ? ErrorCode::kOk : taken.error().code;
  };
  const ErrorCode refused = ErrorCode::kIncompatible;
  const catalog::Attributes owned{.uid = 5, .gid = {}, .user = "a", .group = {}};
  EXPECT_EQ(offered(selection::Keep::kOwner, owned, {}, false), ErrorCode::kOk);
  EXPECT_EQ(files_->phase(), FilesPhase::kOffer);
  EXPECT_EQ(offered(0, owned, {}, false), refused);
  EXPECT_EQ(offered(selection::Keep::kGroup, owned, {}, false), refused);
  EXPECT_EQ(offered(selection::Keep::kKnown + 1, {}, {}, false), refused) << "what is not known here";
  EXPECT_EQ(offered(selection::Keep::kOwner, owned, {.owner = true}, true), ErrorCode::kOk);
  EXPECT_EQ(offered(selection::Keep::kOwner, owned, {}, true), refused) << "not asked for here";
  EXPECT_EQ(offered(0, {}, {.owner = true}, true), refused) << "a peer that is too old";
}

// Otherwise a peer would choose what is written here, as servers of scp could (CVE-2019-6111).
TEST_F(Files, OnlyWhatWasAskedForIsTaken) {
  const auto offered = [this](const std::vector<std::string>& paths, const std::vector<std::string>& names) {
    known(0);
    TransferOffer offer = offer_of(names.size());
    for (size_t i = 0; i < names.size(); ++i) offer.files[i].name = names[i];
    const selection::Selection all;
    const DestinationFiles::Wish wish{
        .paths = paths, .selection = all, .destination = "in/", .into_directory = true};
    const Result<bool> taken = files_->take_offer(offer, &wish);
    return taken ? ErrorCode::kOk : taken.error().code;
  };
  const ErrorCode refused = ErrorCode::kIncompatible;
  EXPECT_EQ(offered({"data/a"}, {"a"}), ErrorCode::kOk);
  EXPECT_EQ(offered({"data/a", "/x/b"}, {"a", "b"}), ErrorCode::kOk);
  EXPECT_EQ(offered({"data//a/./", "b/"}, {"a", "b"}), ErrorCode::kOk) << "a spelling that the peer takes";
  EXPECT_EQ(offered({"a"}, {"a"}), ErrorCode::kOk);
  EXPECT_EQ(offered({"memory:1"}, {"memory-1"}), ErrorCode::kOk);
  EXPECT_EQ(offered({"data/a"}, {".bashrc"}), refused);
  EXPECT_EQ(offered({"data/a"}, {"A"}), refused);
  EXPECT_EQ(offered({"data/a"}, {"a", "b"}), refused) << "one more";
  EXPECT_EQ(offered({"data/a", "data/b"}, {"a"}), refused) << "one less";
  EXPECT_EQ(offered({"data/a", "data/b"}, {"b", "a"}), refused) << "another order";
  EXPECT_EQ(offered({"memory:1"}, {"memory-2"}), refused);
  EXPECT_EQ(offered({""}, {"a"}), refused);
  EXPECT_EQ(offered({"data/d/"}, {"a", "b"}), ErrorCode::kOk) << "what a directory holds";
  EXPECT_EQ(offered({"/"}, {"a"}), ErrorCode::kOk);
  EXPECT_EQ(offered({"./."}, {"a"}), refused);
}

TEST_F(Files, ThoseThatAreDiscardedAreNowhere) {
  files_ = std::make_unique<DestinationFiles>(settings_, true, kExtent, known_files(0));
  TransferOffer offer = offer_of(1);
  offer.destination = kNullDestination;
  ASSERT_TRUE(*files_->take_offer(offer, nullptr));
  files_->prepare(out_);
  EXPECT_EQ(asked<OpenObject>().flags, board::kObjectWrite | board::kObjectDiscard);
  EXPECT_TRUE(files_->held(ObjectId(0)));
}

TEST_F(Files, OnlySoManyAreOpenAtATimeAndEachMakesRoomForOne) {
  known(10);
  files_->recover(out_);
  (void)asked<RecoverFiles>();
  ASSERT_TRUE(files_->on(FilesRecovered{Indexed<ObjectId, Recovered>(10, Recovered::kHeld)}, out_));
  ASSERT_TRUE(*files_->take_offer(offer_of(10), nullptr));
  files_->prepare(out_);
  EXPECT_EQ(open_all(), 4U);
  files_->done(ObjectId(1), out_);
  EXPECT_EQ(asked<CloseObject>().object, ObjectId(1)) << "its number is used again";
  files_->on(ObjectClosed{ObjectId(1)}, out_);
  EXPECT_EQ(asked<OpenObject>().object, ObjectId(5));
  EXPECT_TRUE(!files_->open_no_more(ObjectId(5)) && files_->open_no_more(ObjectId(6))) << "5 opens";
  files_->done(ObjectId(2), out_);
  (void)asked<CloseObject>();
  files_->on(ObjectClosed{ObjectId(2)}, out_);
  EXPECT_TRUE(out_.empty()) << "what needs no bytes is not opened any more";
  files_->done(ObjectId(0), out_);
  (void)asked<CloseObject>();
  files_->halt();
  files_->on(ObjectClosed{ObjectId(0)}, out_);
  EXPECT_TRUE(out_.empty()) << "nothing new when the attempt ends";
}

TEST_F(Files, HolesAreWholeExtentsInOrderAndOfPlainFiles) {
  using Holes = std::vector<recovery::Range>;
  const auto taken = [this](const Holes& holes, uint64_t size_bytes, uint32_t members = 0) {
    known(0);
    TransferOffer offer = offer_of(1);
    offer.files[0].size_bytes = size_bytes;
    offer.files[0].holes = holes;
    if (members != 0) {
      offer.files[0].kind = catalog::FileKind::kPack;
      offer.files[0].members = members;
      offer.files[0].name.clear();
    }
    const Result<bool> result = files_->take_offer(offer, nullptr);
    return result ? ErrorCode::kOk : result.error().code;
  };
  constexpr uint64_t kSize = 10 * kExtent + 5;
  for (const Holes& good :
       {Holes{{0, kExtent}}, Holes{{0, kSize}}, Holes{{10ULL * kExtent, 5}},
        Holes{{0, kExtent}, {kExtent, kExtent}, {5ULL * kExtent, kSize - 5ULL * kExtent}}})
    EXPECT_EQ(taken(good, kSize), ErrorCode::kOk) << good.size();
  for (const Holes& bad :
       {Holes{{0, 0}}, Holes{{1, kExtent}}, Holes{{0, kExtent - 1}}, Holes{{0, kSize + 1}}, Holes{{kSize, 1}},
        Holes{{kExtent, kExtent}, {0, kExtent}}, Holes{{0, 2 * kExtent}, {kExtent, kExtent}},
        Holes{{kExtent, UINT64_MAX - kExtent + 1}}, Holes{{UINT64_MAX, 1}}, Holes{{kExtent, UINT64_MAX}}})
    EXPECT_EQ(taken(bad, kSize), ErrorCode::kIncompatible) << bad[0].offset << " " << bad[0].length;
  EXPECT_EQ(taken({}, kSize, 7), ErrorCode::kOk);
  EXPECT_EQ(taken({{0, kExtent}}, kSize, 7), ErrorCode::kIncompatible);
}

TEST_F(Files, NobodyOffersMoreHolesThanThereMayBe) {
  known(0);
  const auto offered = [](uint32_t number, bool more) {
    TransferOffer part{.destination = "in/", .into_directory = true, .more = more};
    OfferedFile file{
        .number = number, .name = std::to_string(number), .size_bytes = uint64_t{kExtent} * 8192};
    for (uint64_t i = 0; i < catalog::kHolesMax; ++i) file.holes.push_back({i * 2 * kExtent, kExtent});
    part.files = {file};
    return part;
  };
  constexpr uint32_t kParts = catalog::kHolesOfAllMax / catalog::kHolesMax;
  for (uint32_t i = 0; i < kParts; ++i) ASSERT_TRUE(files_->take_offer(offered(i, true), nullptr));
  EXPECT_EQ(files_->take_offer(offered(kParts, false), nullptr).error().code, ErrorCode::kIncompatible);
}

TEST_F(Files, ThatWereNotHeldAreOpenedAgainOrBeginAnew) {
  known(2);
  ASSERT_TRUE(*files_->take_offer(offer_of(2), nullptr));
  files_->prepare(out_);
  EXPECT_EQ(asked<ReopenFile>().object, ObjectId(0));
  ASSERT_TRUE(files_->on(FileReopened{.object = ObjectId(0), .found = true}, out_));
  EXPECT_EQ(asked<ReopenFile>().object, ObjectId(1));
  ASSERT_TRUE(files_->on(FileReopened{.object = ObjectId(1), .found = false}, out_));
  EXPECT_EQ(asked<RecreateFile>().object, ObjectId(1));
  ASSERT_TRUE(files_->on(
      FileRecreated{.object = ObjectId(1), .identity = catalog::FileIdentity{.device = 1, .inode = 55}}, {},
      out_));
  const WriteJournal note = asked<WriteJournal>();
  EXPECT_EQ(note.entry, Entry::kAnew);
  EXPECT_EQ(note.durability, Durability::kPower);
  EXPECT_EQ(note.batch.restart, std::vector<ObjectId>{ObjectId(1)});
  EXPECT_EQ(note.batch.files.front().record.identity.inode, 55U);
  ASSERT_TRUE(files_->on(JournalWritten{.entry = Entry::kAnew, .object = ObjectId(1)}, out_));
  EXPECT_EQ(files_->phase(), FilesPhase::kOpening);
}

TEST_F(Files, OfAnEarlierLifeAreFetchedFromTheDataplane) {
  known(2);
  files_->adopt(out_);
  EXPECT_EQ(asked<FetchObject>().object, ObjectId(0));
  ASSERT_TRUE(files_->on(ObjectFetched{.object = ObjectId(0), .found = true}, out_));
  (void)asked<ReopenFile>();
  ASSERT_TRUE(files_->on(FileReopened{.object = ObjectId(0), .found = true}, out_));
  EXPECT_TRUE(files_->is_open(ObjectId(0)));
  (void)asked<FetchObject>();
  ASSERT_TRUE(files_->on(ObjectFetched{.object = ObjectId(1), .found = false}, out_));
  (void)asked<ReopenFile>();
  ASSERT_TRUE(files_->on(FileReopened{.object = ObjectId(1), .found = true}, out_));
  const OpenObject open = asked<OpenObject>();
  EXPECT_EQ(open.object, ObjectId(1));
  EXPECT_EQ(open.extent_bytes, kExtent) << "no offer says how it was cut";
}

// The former control died before it closed them: their places are those of the fifth and the sixth.
TEST_F(Files, ThatHadEndedInAnEarlierLifeAreClosedBeforeOthersTakeTheirPlaces) {
  known(6);
  files_->recover(out_);
  (void)asked<RecoverFiles>();
  Indexed<ObjectId, Recovered> found(6, Recovered::kHeld);
  found[ObjectId(0)] = Recovered::kNamed;
  found[ObjectId(1)] = found[ObjectId(5)] = Recovered::kAway;
  ASSERT_TRUE(files_->on(FilesRecovered{found}, out_));
  for (const uint32_t away : {1U, 5U}) files_->mark_failed(ObjectId(away));  // 5 never had its turn
  files_->adopt(out_);
  for (uint32_t i = 0; i < 6; ++i) {
    EXPECT_EQ(asked<FetchObject>().object, ObjectId(i));
    ASSERT_TRUE(files_->on(ObjectFetched{.object = ObjectId(i), .found = i < 4}, out_));
  }
  EXPECT_TRUE(files_->prepared()) << "nothing is opened where something else still is";
  EXPECT_TRUE(out_.empty());
  files_->close_ended(out_);
  std::vector<ObjectId> closed;
  for (const Effect& effect : out_.drain()) closed.push_back(std::get<CloseObject>(effect).object);
  EXPECT_EQ(closed, (std::vector<ObjectId>{ObjectId(0), ObjectId(1)}));
  files_->on(ObjectClosed{ObjectId(1)}, out_);
  EXPECT_TRUE(out_.empty()) << "nobody waits for the place of what has failed as well";
  files_->on(ObjectClosed{ObjectId(0)}, out_);
  EXPECT_EQ(asked<OpenObject>().object, ObjectId(4));
}

TEST_F(Files, ThatBeginAnewAreNotWrittenByWhatAnEarlierLifeHadOpen) {
  known(1);
  files_->adopt(out_);
  (void)asked<FetchObject>();
  ASSERT_TRUE(files_->on(ObjectFetched{.object = ObjectId(0), .found = true}, out_));
  (void)asked<ReopenFile>();
  EXPECT_EQ(files_->on(FileReopened{.object = ObjectId(0), .found = false}, out_).error().code,
            ErrorCode::kStalled)
      << "with other flows";
  files_->attempt_over();
  (void)out_.drain();
  ASSERT_TRUE(*files_->take_offer(offer_of(1), nullptr));
  files_->prepare(out_);
  (void)asked<ReopenFile>();
  ASSERT_TRUE(files_->on(FileReopened{.object = ObjectId(0), .found = false}, out_));
  EXPECT_EQ(asked<RecreateFile>().object, ObjectId(0));
}

TEST_F(Files, ThatAreDoneNeedNothing) {
  known(3);
  files_->recover(out_);
  (void)asked<RecoverFiles>();
  EXPECT_FALSE(files_->recovered());
  ASSERT_TRUE(files_->on(FilesRecovered{{Recovered::kNamed, Recovered::kHeld, Recovered::kNamed}}, out_));
  EXPECT_EQ(files_->catalog().file(catalog::FileId(0)).state, catalog::FileState::kDone);
  ASSERT_TRUE(*files_->take_offer(offer_of(3), nullptr));
  files_->prepare(out_);
  EXPECT_EQ(asked<OpenObject>().object, ObjectId(1));
}

TEST_F(Files, AnErrorOfEachStepIsToldAndTheNextAttemptBeginsAnew) {
  const Error error{ErrorCode::kStorage, "bad"};
  ASSERT_TRUE(*files_->take_offer(offer_of(1), nullptr));
  files_->prepare(out_);
  EXPECT_EQ(files_->on(FilesCreated{error}, out_).error().code, ErrorCode::kStorage);
  files_->attempt_over();
  EXPECT_FALSE(files_->agreed());
  ASSERT_TRUE(*files_->take_offer(offer_of(1), nullptr));
  files_->prepare(out_);
  (void)out_.drain();
  ASSERT_TRUE(files_->on(FilesCreated{known_files(1)}, out_));
  EXPECT_FALSE(files_->on(ObjectOpened{.object = ObjectId(0), .status = error}, out_));
  files_->attempt_over();
  files_->released();
  (void)out_.drain();
  for (const bool recreated : {false, true}) {
    ASSERT_TRUE(*files_->take_offer(offer_of(1), nullptr));
    files_->prepare(out_);
    (void)asked<ReopenFile>();
    if (recreated) {
      ASSERT_TRUE(files_->on(FileReopened{.object = ObjectId(0), .found = false}, out_));
      EXPECT_FALSE(files_->on(FileRecreated{.object = ObjectId(0), .identity = error}, {}, out_));
    } else {
      EXPECT_FALSE(files_->on(FileReopened{.object = ObjectId(0), .found = error}, out_));
    }
    files_->attempt_over();
    (void)out_.drain();
  }
  EXPECT_EQ(files_->phase(), FilesPhase::kIdle);
  EXPECT_EQ(files_->pending(), 0U);
}

TEST_F(Files, AreAgreedUponOnceAndOfferedAgainAsTheyWere) {
  known(2);
  EXPECT_TRUE(files_->take_offer(offer_of(2), nullptr));
  files_->attempt_over();
  EXPECT_EQ(files_->take_offer(offer_of(3), nullptr).error().code, ErrorCode::kIntegrity);
  files_->attempt_over();
  TransferOffer part = offer_of(1);
  part.more = true;
  EXPECT_FALSE(*files_->take_offer(part, nullptr));
  files_->attempt_over();
  EXPECT_TRUE(*files_->take_offer(offer_of(2), nullptr)) << "parts of an attempt that is over are gone";
}

TEST_F(Files, AreAsManyAsATransferMayHaveAndNoMore) {
  EXPECT_TRUE(*files_->take_offer(offer_of(catalog::kFilesMax), nullptr));
  files_->attempt_over();
  EXPECT_EQ(files_->take_offer(offer_of(catalog::kFilesMax + 1), nullptr).error().code,
            ErrorCode::kIncompatible);
}

TEST_F(Files, SeveralNeedADirectoryAndADestination) {
  TransferOffer offer = offer_of(2);
  offer.into_directory = false;
  EXPECT_EQ(files_->take_offer(offer, nullptr).error().code, ErrorCode::kUsage);
  files_->attempt_over();
  offer.into_directory = true;
  offer.destination.clear();
  EXPECT_EQ(files_->take_offer(offer, nullptr).error().code, ErrorCode::kUsage);
}

}  // namespace
}  // namespace sluice::transfer
