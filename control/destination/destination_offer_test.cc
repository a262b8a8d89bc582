// What a receiving end takes of an offer, and what it refuses.
// SPDX-License-Identifier: Apache-2.0
#include "control/destination/destination_files_fixture.h"

namespace sluice::transfer {
namespace {

using Offer = DestinationFilesTest;

// Before anything of them is stored.
TEST_F(Offer, OwnersThatWereNotAgreedUponAreRefused) {
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

// A replica may have bytes where another one has a hole.
TEST_F(Offer, OfReplicasOnlyWhatIsAHoleInAllCounts) {
  known(0);
  const std::vector<std::string> paths{"f0"};
  const selection::Selection selection;
  const DestinationFiles::Wish wish{
      .paths = paths, .selection = selection, .destination = "in/f", .replicas = true};
  TransferOffer offer = offer_of(1);
  offer.files[0].size_bytes = 8 * kFilesExtent;
  offer.files[0].holes = {{0, 4 * kFilesExtent}};
  ASSERT_TRUE(*files_->take_offer(offer, &wish));
  files_->prepare(out_);
  ASSERT_TRUE(files_->on(FilesCreated{asked<CreateFiles>().files}, out_));
  EXPECT_TRUE(files_->take_no_holes().empty());
  offer.files[0].holes = {{kFilesExtent, 5 * kFilesExtent}};
  ASSERT_TRUE(*files_->take_offer(offer, &wish));
  const auto no_holes = files_->take_no_holes();
  ASSERT_EQ(no_holes.size(), 1U);
  EXPECT_EQ(no_holes[0].range, (base::Range{0, kFilesExtent}));
  EXPECT_EQ(files_->catalog().file(catalog::FileId(0)).holes,
            (std::vector<base::Range>{{kFilesExtent, 3 * kFilesExtent}}));
  EXPECT_TRUE(files_->take_no_holes().empty());
}

// A peer that moves data for a third node goes no further than that node has allowed.
TEST_F(Offer, WhatAThirdNodeHasOrderedIsTakenAndNoMore) {
  const auto offered = [this](const std::string& destination, bool overwrite, uint64_t bytes_max) {
    known(0);
    files_->bind({.issuer = "home", .path = "in/f", .overwrite = false, .bytes_max = bytes_max});
    TransferOffer offer = offer_of(1);
    offer.files[0].size_bytes = 100;
    offer.destination = destination;
    offer.overwrite = overwrite;
    const Result<bool> taken = files_->take_offer(offer, nullptr);
    return taken ? ErrorCode::kOk : taken.error().code;
  };
  EXPECT_EQ(offered("in/f", false, 0), ErrorCode::kOk);
  EXPECT_EQ(offered("in/f", false, 100), ErrorCode::kOk);
  EXPECT_EQ(offered("in/f", false, 99), ErrorCode::kPeerUntrusted);
  EXPECT_EQ(offered("in/g", false, 0), ErrorCode::kPeerUntrusted);
  EXPECT_EQ(offered("in/f/", false, 0), ErrorCode::kPeerUntrusted);
  EXPECT_EQ(offered("in/f", true, 0), ErrorCode::kPeerUntrusted);
}

// Otherwise a peer would choose what is written here, as servers of scp could (CVE-2019-6111).
TEST_F(Offer, OnlyWhatWasAskedForIsTaken) {
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

TEST_F(Offer, HolesAreWholeExtentsInOrderAndOfPlainFiles) {
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
  constexpr uint64_t kSize = 10 * kFilesExtent + 5;
  for (const Holes& good : {Holes{{0, kFilesExtent}}, Holes{{0, kSize}}, Holes{{10ULL * kFilesExtent, 5}},
                            Holes{{0, kFilesExtent},
                                  {kFilesExtent, kFilesExtent},
                                  {5ULL * kFilesExtent, kSize - 5ULL * kFilesExtent}}})
    EXPECT_EQ(taken(good, kSize), ErrorCode::kOk) << good.size();
  for (const Holes& bad :
       {Holes{{0, 0}}, Holes{{1, kFilesExtent}}, Holes{{0, kFilesExtent - 1}}, Holes{{0, kSize + 1}},
        Holes{{kSize, 1}}, Holes{{kFilesExtent, kFilesExtent}, {0, kFilesExtent}},
        Holes{{0, 2 * kFilesExtent}, {kFilesExtent, kFilesExtent}},
        Holes{{kFilesExtent, UINT64_MAX - kFilesExtent + 1}}, Holes{{UINT64_MAX, 1}},
        Holes{{kFilesExtent, UINT64_MAX}}})
    EXPECT_EQ(taken(bad, kSize), ErrorCode::kIncompatible) << bad[0].offset << " " << bad[0].length;
  EXPECT_EQ(taken({}, kSize, 7), ErrorCode::kOk);
  EXPECT_EQ(taken({{0, kFilesExtent}}, kSize, 7), ErrorCode::kIncompatible);
}

TEST_F(Offer, NobodyOffersMoreHolesThanThereMayBe) {
  known(0);
  const auto offered = [](uint32_t number, bool more) {
    TransferOffer part{.destination = "in/", .into_directory = true, .more = more};
    OfferedFile file{
        .number = number, .name = std::to_string(number), .size_bytes = uint64_t{kFilesExtent} * 8192};
    for (uint64_t i = 0; i < catalog::kHolesMax; ++i)
      file.holes.push_back({i * 2 * kFilesExtent, kFilesExtent});
    part.files = {file};
    return part;
  };
  constexpr uint32_t kParts = catalog::kHolesOfAllMax / catalog::kHolesMax;
  for (uint32_t i = 0; i < kParts; ++i) ASSERT_TRUE(files_->take_offer(offered(i, true), nullptr));
  EXPECT_EQ(files_->take_offer(offered(kParts, false), nullptr).error().code, ErrorCode::kIncompatible);
}

TEST_F(Offer, AreAgreedUponOnceAndOfferedAgainAsTheyWere) {
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

TEST_F(Offer, AreAsManyAsATransferMayHaveAndNoMore) {
  EXPECT_TRUE(*files_->take_offer(offer_of(catalog::kFilesMax), nullptr));
  files_->attempt_over();
  EXPECT_EQ(files_->take_offer(offer_of(catalog::kFilesMax + 1), nullptr).error().code,
            ErrorCode::kIncompatible);
}

TEST_F(Offer, SeveralNeedADirectoryAndADestination) {
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
