// SPDX-License-Identifier: Apache-2.0
#include "control/journal/bundle.h"

#include <gtest/gtest.h>

#include "control/journal/records_for_test.h"

namespace sluice::journal {
namespace {

MovedRows sample_rows(transfer::Role role = transfer::Role::kDestination) {
  MovedRows rows{.saved = {.record = sample_record(std::string(32, 'a'), 7)},
                 .exports = {{.name = "data", .path = "/export"}, {.name = "in", .path = "/export/in"}}};
  transfer::Record& record = rows.saved.record;
  record.role = role;
  record.granted.reset();
  record.ordered.reset();
  record.legs.resize(1);
  record.request->user.reset();
  record.request->local_files.reset();
  record.request->selection.names.clear();  // they are of one source, as is a part
  record.request->selection.part = {};
  record.request->source_paths = {"/export/x/", "memory:1M"};
  record.request->destination = "/export/in/";
  rows.saved.files = {sample_file("f"), sample_file("g")};
  rows.saved.files[0].path = "/export/in/f\xff";
  rows.saved.files[0].shown = "/export/in/f?";
  rows.saved.files[1].path.clear();
  rows.saved.blocks.resize(2);
  rows.saved.blocks[ObjectId(1)] = {{.id = recovery::BlockId(3), .bytes = std::string("\0\xff", 2)}};
  make_portable(&rows.saved);
  return rows;
}

TEST(Bundle, HasAllOfASessionThatAnotherNodeNeeds) {
  const MovedRows rows = sample_rows();
  const auto again = decode_rows(encode(rows));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_TRUE(fields::equal(again->saved, rows.saved));
  EXPECT_EQ(again->exports, rows.exports);
  EXPECT_EQ(encode(*again), encode(rows));
  EXPECT_TRUE(again->saved.record.lease);
  EXPECT_TRUE(again->saved.record.legs[0].flows.empty());
  const MovedSession bundle{.move = {.move = "\xff", .signature = "s", .certificate = "c"},
                            .content = "\xfe"};
  const auto whole = decode_bundle(encode(bundle));
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->move, bundle.move);
  EXPECT_EQ(whole->content, bundle.content);
}

TEST(Bundle, OfASourceHasNoDigests) {
  EXPECT_TRUE(sample_rows(transfer::Role::kSource).saved.blocks[ObjectId(1)].empty());
  EXPECT_FALSE(sample_rows().saved.blocks[ObjectId(1)].empty());
}

TEST(Bundle, IsPlacedInTheExportsOfTheSameNames) {
  const std::vector<ExportPlace> there = {{.name = "in", .path = "/mnt/incoming"},
                                          {.name = "data", .path = "/"}};
  MovedRows rows = sample_rows();
  const Status placed = place(&rows.saved, rows.exports, there);
  ASSERT_TRUE(placed) << placed.error().message;
  EXPECT_EQ(rows.saved.record.request->destination, "/mnt/incoming/");
  EXPECT_EQ(rows.saved.files[0].path, "/mnt/incoming/f\xff") << "the innermost export counts";
  EXPECT_EQ(rows.saved.files[0].shown, "/mnt/incoming/f?");
  EXPECT_EQ(rows.saved.files[1].path, "");
  EXPECT_EQ(rows.saved.record.request->source_paths[0], "/export/x/") << "they are the peer's";
  rows = sample_rows(transfer::Role::kSource);
  ASSERT_TRUE(place(&rows.saved, rows.exports, there));
  EXPECT_EQ(rows.saved.record.request->source_paths, (std::vector<std::string>{"/x/", "memory:1M"}));
  EXPECT_EQ(rows.saved.record.request->destination, "/export/in/") << "it is the peer's";
}

TEST(Bundle, ThatDoesNotFitTheExportsHereIsRefused) {
  MovedRows rows = sample_rows();
  const Status missing = place(&rows.saved, rows.exports, {{.name = "data", .path = "/srv"}});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kOutsideExports);
  EXPECT_NE(missing.error().message.find("no such export"), std::string::npos) << missing.error().message;
  rows = sample_rows();
  rows.saved.files[0].path = "/exporting/f";
  const Status outside = place(&rows.saved, rows.exports, rows.exports);
  ASSERT_FALSE(outside);
  EXPECT_NE(outside.error().message.find("lies in no export"), std::string::npos) << outside.error().message;
}

TEST(Bundle, OfNoSessionThatCouldGoOnIsRefused) {
  const auto refused = [](const std::function<void(transfer::Saved&)>& change) {
    MovedRows rows = sample_rows();
    change(rows.saved);
    const auto read = decode_rows(encode(rows));
    EXPECT_FALSE(read);
    return !read && read.error().code == ErrorCode::kUsage;
  };
  EXPECT_TRUE(refused([](auto& saved) { saved.record.initiator = false; }));
  EXPECT_TRUE(refused([](auto& saved) { saved.record.id = "short"; }));
  EXPECT_TRUE(refused([](auto& saved) { saved.record.legs.push_back(saved.record.legs[0]); }));
  EXPECT_TRUE(refused([](auto& saved) { saved.record.legs[0].agreement.reset(); }));
  EXPECT_TRUE(refused([](auto& saved) { saved.record.legs[0].flows.resize(1); }));
  EXPECT_TRUE(refused([](auto& saved) { saved.record.state = transfer::RecordState::kFailed; }));
  EXPECT_TRUE(
      refused([](auto& saved) { saved.record.request->user = transfer::User{.uid = 1, .name = "a"}; }));
  EXPECT_TRUE(refused([](auto& saved) { saved.record.granted = transfer::Granted{}; }));
  EXPECT_TRUE(refused([](auto& saved) { saved.record.lease->name = "short"; }));
  EXPECT_TRUE(refused([](auto& saved) { saved.files.clear(), saved.blocks.resize(0); }));
  for (const char* const bytes : {"", "\xff", "\x08\x07", "not a bundle"}) {
    EXPECT_FALSE(decode_bundle(bytes));
    EXPECT_FALSE(decode_rows(bytes));
  }
}

}  // namespace
}  // namespace sluice::journal
