// Packs that no honest source sends.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <functional>

#include "control/tree/pack.h"
#include "control/tree/pack_for_test.h"

namespace sluice::tree {
namespace {

using namespace test;

Content some() {
  Content content;
  content.add_file("t/a", "first");
  content.add({.path = "t/l", .kind = EntryKind::kSymlink, .target = "a"});
  content.add({.path = "t/h", .kind = EntryKind::kHardLink, .target = "t/a"});
  content.add_file("t/b", "second");
  content.add({.path = "t", .kind = EntryKind::kDirectory, .mode = 0755});
  return content;
}

// Whatever is accepted keeps what read_index() promises.
void expect_sound(std::span<const uint8_t> pack) {
  const Result<Index> index = read_index(pack);
  if (!index) {
    EXPECT_EQ(index.error().code, ErrorCode::kIncompatible);
    return;
  }
  ASSERT_LE(index->data_at, pack.size());
  uint64_t left = pack.size() - index->data_at;
  for (const Entry& entry : index->entries) {
    EXPECT_TRUE(catalog::good_path(entry.path));
    EXPECT_TRUE(entry.kind != EntryKind::kHardLink || catalog::good_path(entry.target));
    EXPECT_TRUE(entry.kind == EntryKind::kFile || entry.size_bytes == 0);
    ASSERT_LE(entry.size_bytes, left);
    left -= entry.size_bytes;
  }
}

// Each in memory of its own, so that a sanitizer sees what is read behind it.
TEST(PackDamage, OneThatEndsTooSoonIsRefused) {
  const Bytes pack = some().pack();
  ASSERT_TRUE(read_index(pack));
  for (size_t bytes = 0; bytes < pack.size(); ++bytes) {
    const Bytes part(pack.begin(), pack.begin() + static_cast<ptrdiff_t>(bytes));
    EXPECT_FALSE(read_index(part)) << bytes;
  }
}

TEST(PackDamage, AnyByteThatIsAnotherIsRefusedOrStillSound) {
  const Bytes pack = some().pack();
  for (size_t at = 0; at < layout_of(some().entries).data_at; ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      Bytes other = pack;
      other[at] ^= static_cast<uint8_t>(1 << bit);
      expect_sound(other);
      EXPECT_TRUE(at >= 8 || !read_index(other)) << "its first word says what it is";
    }
    for (const uint8_t byte : {0, 0x7F, 0x80, 0xFF}) {
      Bytes other = pack;
      other[at] = byte;
      expect_sound(other);
    }
  }
}

TEST(PackDamage, AHeadThatPointsBeyondThePackIsRefused) {
  const Bytes pack = some().pack();
  for (const size_t field : {8U, 16U}) {
    const uint64_t right = wire::load_be64(pack.data() + field);
    for (const uint64_t wrong : {uint64_t{pack.size()} + 1, uint64_t{1} << 31, uint64_t{1} << 32, UINT64_MAX,
                                 UINT64_MAX - kPackHeadBytes + 1, UINT64_MAX - right}) {
      Bytes other = pack;
      wire::store_be64(other.data() + field, wrong);
      EXPECT_FALSE(read_index(other)) << field << " " << wrong;
    }
  }
  Bytes overlapping = pack;
  wire::store_be64(overlapping.data() + 16, kPackHeadBytes + wire::load_be64(pack.data() + 8) - 1);
  EXPECT_FALSE(read_index(overlapping)) << "files' bytes begin in the index";
}

// What an index says that was made by the letter of the format.
struct Lie {
  const char* name;
  std::function<void(peer::PackEntry*)> tell;
};

std::vector<Lie> lies() {
  using E = peer::PackEntry;
  std::vector<Lie> all;
  for (const char* path : {"..", "../a", "/a", "/", "", "a//b", "a/", "a/../b", ".", "a/."})
    all.push_back({path, [path](E* e) { e->set_path(path); }});
  for (const char* path : {"..", "../a", "/a", "", "a//b", "a/../b"}) {
    all.push_back({path, [path](E* e) {
                     e->set_kind(E::HARD_LINK);
                     e->set_target(path);
                   }});
  }
  all.push_back({"NUL in a path", [](E* e) { e->set_path(std::string("a\0b", 3)); }});
  all.push_back({"long name", [](E* e) { e->set_path(std::string(256, 'n')); }});
  all.push_back({"long path", [](E* e) { e->set_path("n/" + std::string(4095, 'n')); }});
  all.push_back({"later kind", [](E* e) { e->set_kind(static_cast<E::Kind>(4)); }});
  all.push_back({"kind 256", [](E* e) { e->set_kind(static_cast<E::Kind>(256)); }});
  all.push_back({"kind below all", [](E* e) { e->set_kind(static_cast<E::Kind>(-1)); }});
  all.push_back({"a byte too many", [](E* e) { e->set_size(11); }});
  all.push_back({"all bytes there are", [](E* e) { e->set_size(UINT64_MAX); }});
  for (const E::Kind kind : {E::DIRECTORY, E::SYMLINK, E::HARD_LINK}) {
    all.push_back({"bytes of no file", [kind](E* e) {
                     e->set_kind(kind);
                     e->set_target("b");
                     e->set_size(1);
                   }});
  }
  for (const std::string& target : {std::string(), std::string("a\0b", 3), std::string(4096, 't')}) {
    all.push_back({"target", [target](E* e) {
                     e->set_kind(E::SYMLINK);
                     e->set_target(target);
                   }});
  }
  return all;
}

TEST(PackDamage, AnIndexThatLiesIsRefused) {
  peer::PackIndex honest;
  honest.add_entries()->set_path("a");
  ASSERT_TRUE(read_index(pack_of_index(honest.SerializeAsString(), 10)));
  for (const Lie& lie : lies()) {
    peer::PackIndex index = honest;
    lie.tell(index.add_entries());
    if (index.entries(1).path().empty() && index.entries(1).kind() != peer::PackEntry::FILE)
      index.mutable_entries(1)->set_path("x");
    const Result<Index> read = read_index(pack_of_index(index.SerializeAsString(), 10));
    ASSERT_FALSE(read) << lie.name;
    EXPECT_EQ(read.error().code, ErrorCode::kIncompatible);
    EXPECT_EQ(read.error().message.find('\n'), std::string::npos);
  }
}

TEST(PackDamage, FilesTogetherHaveNoMoreBytesThanThereAre) {
  peer::PackIndex index;
  for (const char* path : {"a", "b", "c"}) {
    index.add_entries()->set_path(path);
    index.mutable_entries(index.entries_size() - 1)->set_size(4);
  }
  EXPECT_TRUE(read_index(pack_of_index(index.SerializeAsString(), 12)));
  EXPECT_FALSE(read_index(pack_of_index(index.SerializeAsString(), 11)));
  index.mutable_entries(1)->set_size(UINT64_MAX - 3);  // with the first it is 0
  EXPECT_FALSE(read_index(pack_of_index(index.SerializeAsString(), 12)));
}

// Two bytes each in the index, and a hundred times that in memory.
TEST(PackDamage, MoreNamesThanThereMayBeAreRefusedBeforeTheyTakeMemory) {
  std::string index;
  for (uint32_t i = 0; i < kEntriesMax; ++i) index += std::string("\x0a\x03\x0a\x01", 4) + "a";
  const Result<Index> most = read_index(pack_of_index(index));
  ASSERT_TRUE(most) << most.error().message;
  EXPECT_EQ(most->entries.size(), kEntriesMax);
  EXPECT_FALSE(read_index(pack_of_index(index + std::string("\x0a\x03\x0a\x01", 4) + "a")));
  EXPECT_FALSE(read_index(pack_of_index(index + std::string("\x0a\x00", 2))));
}

TEST(PackDamage, MoreEntriesOfACLsThanThereMayBeAreRefused) {
  constexpr uint32_t kOfOne = 1U << 16;
  peer::PackIndex index;
  for (uint32_t count = 0; count < kKeptMax; count += kOfOne) {
    peer::PackEntry* const entry = index.add_entries();
    entry->set_path("a");
    for (uint32_t i = 0; i < kOfOne; ++i) entry->mutable_attributes()->add_acl();
  }
  EXPECT_TRUE(read_index(pack_of_index(index.SerializeAsString())));
  index.mutable_entries(0)->mutable_attributes()->add_xattrs();
  EXPECT_FALSE(read_index(pack_of_index(index.SerializeAsString())));
}

TEST(PackDamage, WhatALaterVersionAddsIsPassedOver) {
  peer::PackEntry entry;
  entry.set_path("a");
  entry.set_mode(0600);
  const std::string later = entry.SerializeAsString() + "\xf8\x06\x01";  // field 111
  std::string index = "\xf8\x06\x05";
  index += std::string("\x0a") + static_cast<char>(later.size()) + later;
  const Result<Index> read = read_index(pack_of_index(index));
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read->entries.size(), 1U);
  EXPECT_EQ(read->entries.front().path, "a");
  EXPECT_EQ(read->entries.front().mode, 0600U);
}

TEST(PackDamage, AnEntryThatIsLongerThanAnyCanBeIsRefused) {
  const std::string later =
      "\x0a\x01"
      "a" +
      std::string("\xfa\x06\x80\x80\x10", 5) + std::string(262144, 'x');
  const std::string index = std::string("\x0a\x88\x80\x10", 4) + later;
  EXPECT_FALSE(read_index(pack_of_index(index)));
}

}  // namespace
}  // namespace sluice::tree
