// Files of a receiving end among which there are packs of small ones.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <functional>

#include "control/destination/destination_files.h"
#include "control/transfer/peer_fixture.h"

namespace sluice::transfer::test {
namespace {

using catalog::FileKind;

OfferedFile pack(uint32_t number, FileKind kind = FileKind::kPack) {
  return {.number = number, .size_bytes = 100, .kind = kind, .members = 3};
}
// Two packs, a large file, the last pack.
TransferOffer tree() {
  TransferOffer offer{.destination = "in/", .into_directory = true};
  offer.files = {
      pack(0), pack(1), {.number = 2, .name = "t/large", .size_bytes = 5}, pack(3, FileKind::kLastPack)};
  return offer;
}

class Packs : public testing::Test {
 protected:
  Result<bool> take(const TransferOffer& offer, const std::vector<std::string>& paths = {},
                    const selection::Selection& selection = {}) {
    files_ = std::make_unique<DestinationFiles>(settings_, false, kExtent, std::vector<catalog::File>());
    const DestinationFiles::Wish wish{
        .paths = paths, .selection = selection, .destination = "in/", .into_directory = true};
    return files_->take_offer(offer, paths.empty() ? nullptr : &wish);
  }
  ErrorCode code(const TransferOffer& offer, const std::vector<std::string>& paths = {},
                 const selection::Selection& selection = {}) {
    const Result<bool> taken = take(offer, paths, selection);
    if (taken) return ErrorCode::kOk;
    EXPECT_FALSE(taken.error().message.empty());
    EXPECT_EQ(taken.error().message.find('\n'), std::string::npos);
    return taken.error().code;
  }
  template <typename E>
  std::vector<ObjectId> asked() {
    std::vector<ObjectId> objects;
    for (const Effect& effect : out_.drain()) {
      if (const E* each = std::get_if<E>(&effect)) objects.push_back(each->object);
    }
    return objects;
  }
  // So many packs, and files of which each is one, agreed upon and created.
  void have(uint32_t packs, uint32_t files) {
    TransferOffer offer{.destination = "in/", .into_directory = true};
    std::vector<catalog::File> created;
    for (uint32_t i = 0; i < packs + files; ++i) {
      offer.files.push_back(i < packs ? pack(i) : OfferedFile{.number = i, .name = std::to_string(i)});
      offer.files.back().size_bytes = 100;
      catalog::File file{.name = offer.files.back().name, .shown = "in", .size_bytes = 100};
      file.kind = offer.files.back().kind;
      file.pack.members = offer.files.back().members;
      created.push_back(file);
    }
    ASSERT_TRUE(*take(offer));
    files_->prepare(out_);
    (void)out_.drain();
    ASSERT_TRUE(files_->on(FilesCreated{created}, out_));
  }
  // Opens what is asked for until the files are ready; how many that were.
  uint32_t open_all() {
    uint32_t opened = 0;
    while (!files_->prepared()) {
      const std::vector<ObjectId> next = asked<OpenObject>();
      if (next.size() != 1 || !files_->on(ObjectOpened{.object = next[0]}, out_)) break;
      ++opened;
    }
    return opened;
  }

  Settings settings_;
  Effects out_;
  std::unique_ptr<DestinationFiles> files_;
};

TEST_F(Packs, MissingDirectoriesAreMadeWhereTheOfferSaysSo) {
  for (const bool mkdir : {false, true}) {
    TransferOffer offer = tree();
    offer.mkdir = mkdir;
    ASSERT_TRUE(take(offer));
    files_->prepare(out_);
    const std::vector<Effect> effects = out_.drain();
    ASSERT_EQ(effects.size(), 1U);
    EXPECT_EQ(std::get<CreateFiles>(effects[0]).mkdir, mkdir);
  }
}

TEST_F(Packs, WhatASelectionLeavesOutIsRefused) {
  const auto rules = [](const std::string& pattern) {
    return selection::Selection{.rules = {{.include = false, .pattern = pattern}}, .names = {}};
  };
  EXPECT_EQ(code(tree(), {"data/t"}, rules("other")), ErrorCode::kOk);
  EXPECT_EQ(code(tree(), {"data/t"}, rules("large")), ErrorCode::kIncompatible);
  EXPECT_EQ(code(tree(), {"data/t"}, rules("large/")), ErrorCode::kOk) << "a directory";
  EXPECT_EQ(code(tree(), {"data/t"}, rules("t")), ErrorCode::kIncompatible) << "above it";
  EXPECT_EQ(code(tree(), {"data/"}, {.rules = {}, .names = {"t/large"}}), ErrorCode::kOk);
  EXPECT_EQ(code(tree(), {"data/"}, {.rules = {}, .names = {"t/small"}}), ErrorCode::kIncompatible);
  // Of plain files fewer may come than were asked for.
  TransferOffer one{.destination = "in/", .into_directory = true};
  one.files = {{.number = 0, .name = "b", .size_bytes = 5}};
  EXPECT_EQ(code(one, {"data/a", "data/b"}, rules("a")), ErrorCode::kOk);
  EXPECT_EQ(code(one, {"data/a", "data/b"}, rules("b")), ErrorCode::kIncompatible);
  EXPECT_EQ(code(one, {"data/a", "data/b"}), ErrorCode::kIncompatible);
}

TEST_F(Packs, ATreeIsTakenAsItIsOffered) {
  ASSERT_TRUE(*take(tree()));
  files_->prepare(out_);
  const std::vector<Effect> effects = out_.drain();
  const auto* const create = std::get_if<CreateFiles>(&effects.at(0));
  ASSERT_NE(create, nullptr);
  ASSERT_EQ(create->files.size(), 4U);
  EXPECT_EQ(create->files[0].kind, FileKind::kPack);
  EXPECT_EQ(create->files[0].pack.members, 3U);
  EXPECT_EQ(create->files[2].name, "t/large");
  EXPECT_EQ(create->files[3].kind, FileKind::kLastPack);
}

TEST_F(Packs, WhatNoHonestSourceOffersIsRefused) {
  using O = TransferOffer;
  const std::vector<std::function<void(O&)>> lies = {
      [](O& o) { o.files[0].size_bytes = (1ULL << 30) + 1; },
      [](O& o) { o.files[0].size_bytes = 23; },
      [](O& o) { o.files[3].size_bytes = 0; },
      [](O& o) { o.files[0].name = "t"; },
      [](O& o) { o.files[3].name = "t"; },
      [](O& o) { o.files[0].members = 0; },
      [](O& o) { o.files[0].kind = FileKind::kLastPack; },
      [](O& o) { o.files[2].kind = FileKind::kLastPack; },
      [](O& o) { o.files[0].kind = static_cast<FileKind>(3); },
      [](O& o) { o.files[0].kind = static_cast<FileKind>(255); },
      [](O& o) { o.files[2].name = "t/../large"; },
      [](O& o) { o.files[2].name = "../large"; },
      [](O& o) { o.files[2].name = "/t/large"; },
      [](O& o) { o.files[2].name = "t//large"; },
      [](O& o) { o.files[2].name = "t/"; },
      [](O& o) { o.files[2].name = "t/."; },
      [](O& o) { o.files[2].name = std::string("t/\0", 3); },
      [](O& o) { o.files[2].name = "t/" + std::string(256, 'n'); },
      [](O& o) { o.files[2].name = "t/\x1b[2J\n/.."; },
      [](O& o) { o.files[1] = {.number = 1, .name = "t/large", .size_bytes = 5}; },
  };
  for (size_t i = 0; i < lies.size(); ++i) {
    TransferOffer offer = tree();
    lies[i](offer);
    EXPECT_EQ(code(offer), ErrorCode::kIncompatible) << i;
  }
  TransferOffer largest = tree();
  largest.files[0].size_bytes = 1ULL << 30;
  EXPECT_EQ(code(largest), ErrorCode::kOk);
}

TEST_F(Packs, ATreeNeedsADirectory) {
  TransferOffer offer = tree();
  offer.into_directory = false;
  EXPECT_EQ(code(offer), ErrorCode::kUsage);
  offer.files = {pack(0, FileKind::kLastPack)};
  EXPECT_EQ(code(offer), ErrorCode::kUsage);
  offer.files = {{.number = 0, .name = "t/large", .size_bytes = 5}};
  EXPECT_EQ(code(offer), ErrorCode::kUsage);
}

TEST_F(Packs, OfATreeOnlyWhatWasAskedForIsTaken) {
  EXPECT_EQ(code(tree(), {"data/t"}), ErrorCode::kOk);
  EXPECT_EQ(code(tree(), {"data/other", "data/t"}), ErrorCode::kOk);
  EXPECT_EQ(code(tree(), {"data/t/"}), ErrorCode::kOk);
  EXPECT_EQ(code(tree(), {"data/other"}), ErrorCode::kIncompatible);
  TransferOffer offer = tree();
  offer.files[2].name = ".bashrc";
  EXPECT_EQ(code(offer, {"data/t"}), ErrorCode::kIncompatible);
  offer.files[2].name = "tt/large";
  EXPECT_EQ(code(offer, {"data/t"}), ErrorCode::kIncompatible);
  EXPECT_EQ(code(offer, {"data/t", "memory:5"}), ErrorCode::kIncompatible);
  offer.files[2].name = "memory-5";
  EXPECT_EQ(code(offer, {"data/t", "memory:5"}), ErrorCode::kOk);
}

// Of a directory with large files only there is no pack.
TEST_F(Packs, WhatADirectoryHoldsMayBeAnyNumberOfFiles) {
  TransferOffer offer{.destination = "in/", .into_directory = true};
  offer.files = {{.number = 0, .name = "a", .size_bytes = 5}, {.number = 1, .name = "b", .size_bytes = 5}};
  EXPECT_EQ(code(offer, {"data/t/"}), ErrorCode::kOk);
  EXPECT_EQ(code(offer, {"data"}), ErrorCode::kOk);
  EXPECT_EQ(code(offer, {"data/t"}), ErrorCode::kIncompatible);
}

TEST_F(Packs, AnotherPackThanTheSessionBeganWithIsRefused) {
  ASSERT_TRUE(*take(tree()));
  files_->prepare(out_);
  const std::vector<Effect> effects = out_.drain();
  ASSERT_TRUE(files_->on(FilesCreated{std::get<CreateFiles>(effects.at(0)).files}, out_));
  EXPECT_EQ(open_all(), 4U);
  files_->attempt_over();
  EXPECT_TRUE(*files_->take_offer(tree(), nullptr));
  files_->attempt_over();
  for (const std::function<void(OfferedFile&)>& change : std::vector<std::function<void(OfferedFile&)>>{
           [](OfferedFile& file) { file.members = 4; }, [](OfferedFile& file) { file.size_bytes = 101; },
           [](OfferedFile& file) { file = {.number = 1, .name = "x", .size_bytes = 100}; }}) {
    TransferOffer other = tree();
    change(other.files[1]);
    EXPECT_EQ(files_->take_offer(other, nullptr).error().code, ErrorCode::kIntegrity);
    files_->attempt_over();
  }
}

TEST_F(Packs, SixteenObjectsAreOpenWhereThereArePacks) {
  have(40, 0);
  EXPECT_EQ(open_all(), 16U);
  have(1, 40);
  EXPECT_EQ(open_all(), 16U);
  have(0, 40);
  EXPECT_EQ(open_all(), 40U);
  settings_.open_objects_max = 4;
  have(40, 0);
  EXPECT_EQ(open_all(), 4U);
}

TEST_F(Packs, OneThatIsDoneIsClosedAlsoWhenNothingWaitsForIt) {
  have(18, 0);
  ASSERT_EQ(open_all(), 16U);
  files_->done(ObjectId(1), out_);
  EXPECT_EQ(asked<CloseObject>(), std::vector{ObjectId(1)});
  files_->on(ObjectClosed{ObjectId(1)}, out_);
  EXPECT_EQ(asked<OpenObject>(), std::vector{ObjectId(17)});
  ASSERT_TRUE(files_->on(ObjectOpened{.object = ObjectId(17)}, out_));
  files_->done(ObjectId(5), out_);
  EXPECT_EQ(asked<CloseObject>(), std::vector{ObjectId(5)}) << "its memory is given back";
  files_->on(ObjectClosed{ObjectId(5)}, out_);
  EXPECT_TRUE(asked<OpenObject>().empty());
  EXPECT_EQ(files_->pending(), 0U);
}

TEST_F(Packs, OneWhoseMemoryIsGoneBeginsAnew) {
  ASSERT_TRUE(*take(tree()));
  files_->prepare(out_);
  const std::vector<Effect> effects = out_.drain();
  std::vector<catalog::File> known = std::get<CreateFiles>(effects.at(0)).files;
  known[0].state = catalog::FileState::kDone;
  known[1].state = catalog::FileState::kFinishing;
  files_ = std::make_unique<DestinationFiles>(settings_, false, kExtent, known);
  files_->recover(out_);
  (void)out_.drain();
  ASSERT_TRUE(files_->on(
      FilesRecovered{{Recovered::kNamed, Recovered::kAway, Recovered::kHeld, Recovered::kAway}}, out_));
  ASSERT_TRUE(*files_->take_offer(tree(), nullptr));
  files_->prepare(out_);
  for (const ObjectId object : {ObjectId(1), ObjectId(3)}) {
    EXPECT_EQ(asked<ReopenFile>(), std::vector{object});
    ASSERT_TRUE(files_->on(FileReopened{.object = object, .found = false}, out_));
    EXPECT_EQ(asked<RecreateFile>(), std::vector{object});
    ASSERT_TRUE(files_->on(FileRecreated{.object = object, .identity = catalog::FileIdentity()}, {}, out_));
    EXPECT_EQ(files_->catalog().files_of(object).front().state, known[object.value()].state)
        << "names of the first may stand there";
    EXPECT_EQ(asked<WriteJournal>(), std::vector{object});
    ASSERT_TRUE(files_->on(JournalWritten{.entry = Entry::kAnew, .object = object}, out_));
  }
  EXPECT_EQ(open_all(), 3U);
}

}  // namespace
}  // namespace sluice::transfer::test
