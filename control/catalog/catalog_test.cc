// SPDX-License-Identifier: Apache-2.0
#include "control/catalog/catalog.h"

#include <gtest/gtest.h>

namespace sluice::catalog {
namespace {

TEST(Catalog, EachFileIsAnObjectOfItsOwnInTheOrderOfAdding) {
  Catalog catalog;
  EXPECT_EQ(catalog.add({.name = "a", .shown = "/x/a", .size_bytes = 5}), FileId(0));
  EXPECT_EQ(catalog.add({.name = "b", .shown = "/x/b", .size_bytes = 7}), FileId(1));
  EXPECT_EQ(catalog.file_count(), 2U);
  EXPECT_EQ(catalog.object_count(), 2U);
  EXPECT_EQ(catalog.bytes_total(), 12U);
  EXPECT_EQ(catalog.object(ObjectId(1)).size_bytes, 7U);
  EXPECT_EQ(catalog.shown(ObjectId(1)), "/x/b");
  ASSERT_EQ(catalog.files_of(ObjectId(0)).size(), 1U);
  catalog.files_of(ObjectId(0)).front().state = FileState::kDone;
  EXPECT_EQ(catalog.file(FileId(0)).state, FileState::kDone);
  EXPECT_FALSE(catalog.contains(ObjectId(2)));
}

TEST(Catalog, AHoleOfTwoReplicasIsOneOfBoth) {
  using Ranges = std::vector<base::Range>;
  const auto same = [](const Ranges& holes, const Ranges& others, const Ranges& common, const Ranges& rest) {
    const CommonHoles found = common_holes(holes, others);
    EXPECT_EQ(found.common, common);
    EXPECT_EQ(found.rest, rest);
  };
  same({}, {{0, 5}}, {}, {});
  same({{0, 5}, {9, 3}}, {}, {}, {{0, 5}, {9, 3}});
  same({{0, 5}, {9, 3}}, {{0, 5}, {9, 3}}, {{0, 5}, {9, 3}}, {});
  same({{2, 8}}, {{0, 3}, {4, 1}, {8, 9}}, {{2, 1}, {4, 1}, {8, 2}}, {{3, 1}, {5, 3}});
  same({{2, 2}, {6, 2}, {9, 1}}, {{0, 7}, {20, 1}}, {{2, 2}, {6, 1}}, {{7, 1}, {9, 1}});
}

TEST(Catalog, APackIsOneObjectAndManyNames) {
  Catalog catalog;
  EXPECT_FALSE(catalog.has_packs());
  EXPECT_EQ(catalog.names(), 0U);
  catalog.add({.name = "a", .size_bytes = 5});
  EXPECT_FALSE(catalog.has_packs());
  File pack{.size_bytes = 100, .kind = FileKind::kPack};
  pack.pack.members = 7;
  catalog.add(pack);
  pack.kind = FileKind::kLastPack;
  pack.pack.members = 2;
  catalog.add(pack);
  EXPECT_TRUE(catalog.has_packs());
  EXPECT_EQ(catalog.names(), 10U);
  EXPECT_EQ(catalog.object_count(), 3U);
  EXPECT_EQ(catalog.bytes_total(), 205U);
  EXPECT_FALSE(catalog.file(FileId(0)).packed());
  EXPECT_TRUE(catalog.file(FileId(1)).packed());
  EXPECT_TRUE(catalog.file(FileId(2)).packed());
}

TEST(Catalog, AnInodeNumberThatWasGivenAnewIsAnotherFile) {
  constexpr uint64_t kDisk = 0x801;  // 8:1
  const FileIdentity known{.device = kDisk, .inode = 2, .generation = 3, .birth_ns = 4};
  EXPECT_TRUE(same_file(known, known));
  EXPECT_TRUE(same_file(known, {.device = kDisk, .inode = 2}))
      << "a journal of before, a file system without";
  EXPECT_TRUE(same_file({.device = kDisk, .inode = 2, .birth_ns = 4}, known));
  EXPECT_FALSE(same_file(known, {.device = 0x809, .inode = 2, .generation = 3, .birth_ns = 4}));
  EXPECT_FALSE(same_file(known, {.device = kDisk, .inode = 9, .generation = 3, .birth_ns = 4}));
  EXPECT_FALSE(same_file(known, {.device = kDisk, .inode = 2, .generation = 9, .birth_ns = 4}));
  EXPECT_FALSE(same_file(known, {.device = kDisk, .inode = 2, .generation = 3, .birth_ns = 9}));
}

TEST(Catalog, AFileSystemWithoutADiskIsTheSameAfterItWasMountedAgain) {
  const FileIdentity before{.device = 40, .inode = 2, .birth_ns = 4};
  EXPECT_TRUE(same_file(before, {.device = 52, .inode = 2, .birth_ns = 4}));
  EXPECT_FALSE(same_file(before, {.device = 52, .inode = 9, .birth_ns = 4}));
  EXPECT_FALSE(same_file(before, {.device = 0x801, .inode = 2, .birth_ns = 4})) << "what lies beneath";
}

}  // namespace
}  // namespace sluice::catalog
