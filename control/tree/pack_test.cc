// SPDX-License-Identifier: Apache-2.0
#include "control/tree/pack.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "control/tree/pack_for_test.h"

namespace sluice::tree {
namespace {

using namespace test;

void expect_same(const Entry& one, const Entry& other) {
  EXPECT_EQ(one.path, other.path);
  EXPECT_EQ(one.kind, other.kind);
  EXPECT_EQ(one.size_bytes, other.size_bytes);
  EXPECT_EQ(one.mode, other.mode);
  EXPECT_EQ(one.mtime_ns, other.mtime_ns);
  EXPECT_EQ(one.target, other.target);
  EXPECT_EQ(one.digest, other.digest);
  EXPECT_EQ(one.failure, other.failure);
}

Content one_of_each() {
  Content content;
  content.add_file("t/a", "bytes of a");
  content.add_file("t/\xff\xfe\n", "bytes of a name that is no text");
  content.add_file("t/empty", "");
  content.add({.path = "t/link", .kind = EntryKind::kSymlink, .mtime_ns = -1, .target = "../../etc/\x80"});
  content.add({.path = "t/hard", .kind = EntryKind::kHardLink, .mtime_ns = 7, .target = "t/a"});
  content.add({.path = "t/lost", .failure = Failure::kForbidden});
  content.add({.path = "t/closed", .kind = EntryKind::kDirectory, .failure = Failure::kForbidden});
  content.add_file("t/z", std::string(5000, 'z'));
  content.add({.path = "t", .kind = EntryKind::kDirectory, .mode = 0, .mtime_ns = INT64_MIN});
  content.add(
      {.path = "u", .kind = EntryKind::kDirectory, .mtime_ns = base::file_time_ns(INT64_MAX, 999'999'999)});
  content.add({.path = "v", .kind = EntryKind::kDirectory, .mtime_ns = base::file_time_ns(INT64_MIN, 1)});
  return content;
}

TEST(Pack, EveryKindOfNameComesOutAsItWentIn) {
  const Content content = one_of_each();
  const Bytes pack = content.pack();
  const Result<Index> index = read_index(pack);
  ASSERT_TRUE(index) << index.error().message;
  ASSERT_EQ(index->entries.size(), content.entries.size());
  uint64_t at = index->data_at;
  for (size_t i = 0; i < content.entries.size(); ++i) {
    expect_same(index->entries[i], content.entries[i]);
    const std::string text(pack.begin() + static_cast<ptrdiff_t>(at),
                           pack.begin() + static_cast<ptrdiff_t>(at + content.entries[i].size_bytes));
    EXPECT_EQ(text, content.texts[i]);
    at += content.entries[i].size_bytes;
  }
  EXPECT_EQ(at, pack.size());
}

TEST(Pack, OfNothingIsAHead) {
  const Bytes pack = Content().pack();
  EXPECT_EQ(pack.size(), kPackHeadBytes);
  const Result<Index> index = read_index(pack);
  ASSERT_TRUE(index);
  EXPECT_TRUE(index->entries.empty());
}

TEST(Pack, ItsSizeIsKnownFromTheListAlone) {
  std::vector<Entry> entries = one_of_each().entries;
  const PackLayout before = layout_of(entries);
  uint64_t bytes = kPackHeadBytes;
  for (const Entry& entry : entries) bytes += bytes_in_pack(entry);
  EXPECT_EQ(before.size_bytes, bytes);
  for (Entry& entry : entries) {  // what is known only once it was read
    entry.digest = UINT64_MAX;
    entry.failure = Failure::kOther;
  }
  EXPECT_EQ(layout_of(entries).size_bytes, before.size_bytes);
  EXPECT_EQ(layout_of(entries).data_at, before.data_at);
}

// The longest of everything: write_index() would end the process if it did not fit.
TEST(Pack, AnIndexNeverBecomesLongerThanWasThought) {
  std::string longest;
  for (int i = 0; i < 16; ++i) longest += std::string(254, 'n') + "/n";
  longest.resize(4096);
  if (longest.back() == '/') longest.back() = 'n';
  for (const size_t count : {1U, 2U, 300U}) {
    for (const std::string& path : {std::string("p"), std::string(127, 'p'), longest}) {
      const Entry file{.path = path,
                       .size_bytes = 1,
                       .mode = UINT32_MAX,
                       .mtime_ns = base::file_time_ns(INT64_MIN, 999'999'999),
                       .target = longest,
                       .digest = UINT64_MAX,
                       .failure = Failure::kOther};
      Bytes of_file(layout_of({&file, 1}).size_bytes);
      write_index({&file, 1}, of_file);
      const Entry entry{.path = path,
                        .kind = EntryKind::kHardLink,
                        .mode = UINT32_MAX,
                        .mtime_ns = base::file_time_ns(INT64_MIN, 999'999'999),
                        .target = longest,
                        .digest = UINT64_MAX,
                        .failure = Failure::kOther};
      const std::vector<Entry> entries(count, entry);
      Bytes pack(layout_of(entries).size_bytes);
      write_index(entries, pack);
      const Result<Index> index = read_index(pack);
      ASSERT_TRUE(index) << index.error().message;
      EXPECT_EQ(index->entries.size(), count);
      EXPECT_EQ(index->entries.back().mode, 07777U) << "permission bits, whatever was said";
    }
  }
}

TEST(PackList, KeepsWhatDoesNotTravel) {
  std::vector<Entry> entries = one_of_each().entries;
  for (size_t i = 0; i < entries.size(); ++i) entries[i].ctime_ns = static_cast<int64_t>(i) - 3;
  const Result<std::vector<Entry>> again = from_bytes(to_bytes(entries));
  ASSERT_TRUE(again) << again.error().message;
  ASSERT_EQ(again->size(), entries.size());
  for (size_t i = 0; i < entries.size(); ++i) {
    expect_same((*again)[i], entries[i]);
    EXPECT_EQ((*again)[i].ctime_ns, entries[i].ctime_ns);
  }
  EXPECT_EQ(layout_of(*again).size_bytes, layout_of(entries).size_bytes);
  EXPECT_TRUE(from_bytes("")->empty());
}

TEST(PackList, ThatIsNoneIsRefused) {
  EXPECT_EQ(from_bytes("\xff\xff").error().code, ErrorCode::kStorage);
  std::vector<Entry> entries = one_of_each().entries;
  const std::string bytes = to_bytes(entries);
  EXPECT_FALSE(from_bytes(bytes.substr(0, bytes.size() - 1)));
  entries.front().path = "../a";
  EXPECT_FALSE(from_bytes(to_bytes(entries)));
}

}  // namespace
}  // namespace sluice::tree
