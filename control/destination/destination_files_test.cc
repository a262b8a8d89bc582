// Files of a receiving end on their way: created, opened in their turn, found again, closed.
// SPDX-License-Identifier: Apache-2.0
#include "control/destination/destination_files.h"

#include <map>
#include <set>

#include "control/destination/destination_files_fixture.h"
#include "dataplane/board/attach.h"

namespace sluice::transfer {
namespace {

using Files = DestinationFilesTest;

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
    EXPECT_EQ(open.extent_bytes, kFilesExtent);
    ASSERT_TRUE(files_->on(ObjectOpened{.object = open.object}, out_));
  }
  EXPECT_TRUE(files_->prepared());
  EXPECT_EQ(files_->pending(), 0U);
}

TEST_F(Files, ThoseThatAreDiscardedAreNowhere) {
  files_ = std::make_unique<DestinationFiles>(settings_, true, kFilesExtent, known_files(0));
  TransferOffer offer = offer_of(1);
  offer.destination = kNullDestination;
  ASSERT_TRUE(*files_->take_offer(offer, nullptr));
  files_->prepare(out_);
  EXPECT_EQ(asked<OpenObject>().flags, board::kObjectWrite | board::kObjectDiscard);
  EXPECT_TRUE(files_->has_file(ObjectId(0)));
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
  EXPECT_EQ(open.extent_bytes, kFilesExtent) << "no offer says how it was cut";
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

}  // namespace
}  // namespace sluice::transfer
