// SPDX-License-Identifier: Apache-2.0
#include "control/users/words.h"

#include <gtest/gtest.h>

#include "control/proto/users.pb.h"

namespace sluice::users {
namespace {

Call sample() {
  Call call{.kind = Kind::kCreate, .file = {}};
  call.file.peer = "beta";
  call.file.spec = {.path = "/srv/data/in/x.bin",
                    .is_directory = true,
                    .name = "x.bin",
                    .size = 1 << 20,
                    .mode = 0640,
                    .mtime_ns = base::file_time_ns(-20'000'000'000, 9),
                    .overwrite = true,
                    .alignment = 4096,
                    .holes = {{4096, 8192}, {65536, 4096}}};
  call.file.identity = {.device = 1, .inode = 2, .generation = 3, .birth_ns = 4};
  return call;
}

TEST(UsersWords, ACallComesAsItWasSaid) {
  const Call said = sample();
  const std::optional<Call> heard = decode_call(encode(said));
  ASSERT_TRUE(heard);
  EXPECT_EQ(heard->kind, said.kind);
  EXPECT_EQ(heard->file.peer, "beta");
  EXPECT_EQ(heard->file.spec.path, said.file.spec.path);
  EXPECT_TRUE(heard->file.spec.is_directory && heard->file.spec.overwrite);
  EXPECT_EQ(heard->file.spec.name, "x.bin");
  EXPECT_EQ(heard->file.spec.size, said.file.spec.size);
  EXPECT_EQ(heard->file.spec.mode, 0640U);
  EXPECT_EQ(heard->file.spec.mtime_ns, base::file_time_ns(-20'000'000'000, 9));
  EXPECT_EQ(heard->file.spec.alignment, 4096U);
  EXPECT_EQ(heard->file.spec.holes, said.file.spec.holes);
  EXPECT_TRUE(catalog::same_file(heard->file.identity, said.file.identity));
}

TEST(UsersWords, NamesAreAskedForAndToldAsTheyWereSaid) {
  Call said{.kind = Kind::kNames,
            .file = {},
            .names = names::List{.path = "data/\xff",
                                 .recursive = true,
                                 .digests = true,
                                 .digest_kind = names::DigestKind::kCrc32c}};
  said.file.peer = "beta";
  const std::optional<Call> heard = decode_call(encode(said));
  ASSERT_TRUE(heard && heard->names);
  EXPECT_EQ(heard->file.peer, "beta");
  const auto& list = std::get<names::List>(*heard->names);
  EXPECT_TRUE(list.path == "data/\xff" && list.recursive && list.digests);
  EXPECT_EQ(list.digest_kind, names::DigestKind::kCrc32c);
  EXPECT_EQ(decode_call(encode(Call{.kind = Kind::kMore, .file = {}}))->kind, Kind::kMore);
  names::Page page;
  page.entries.push_back({.path = "x", .type = names::Type::kFile, .size_bytes = 7, .digest = 9});
  const std::optional<Answer> told = decode_answer(encode(Answer{.names = page}));
  ASSERT_TRUE(told && told->names);
  EXPECT_EQ(std::get<names::Page>(*told->names).entries.at(0).digest, 9U);
  const std::optional<Answer> over = decode_answer(encode(Answer{.names = names::Done{.entries = 3}}));
  ASSERT_TRUE(over && over->names);
  EXPECT_EQ(std::get<names::Done>(*over->names).entries, 3U);
}

TEST(UsersWords, WhatIsNoRequestOrNoListIsRefused) {
  EXPECT_FALSE(decode_call(encode(Call{.kind = Kind::kNames, .file = {}})));
  EXPECT_FALSE(
      decode_call(encode(Call{.kind = Kind::kNames,
                              .file = {},
                              .names = names::List{.path = std::string(names::kPathBytesMax + 1, 'x')}})));
  EXPECT_FALSE(decode_answer(encode(Answer{.names = names::Page{}})));
  EXPECT_FALSE(decode_answer(encode(Answer{.names = names::Request(names::List{})})));
  names::Page odd;
  odd.entries.push_back({.path = "../up"});
  EXPECT_FALSE(decode_answer(encode(Answer{.names = odd})));
}

TEST(UsersWords, AnAnswerComesAsItWasSaidAndIsNeverEmpty) {
  EXPECT_FALSE(encode(Answer()).empty());
  const std::optional<Answer> well = decode_answer(encode(Answer{.found = true, .name_path = "/srv/x"}));
  ASSERT_TRUE(well);
  EXPECT_TRUE(well->status() && well->found);
  EXPECT_EQ(well->name_path, "/srv/x");
  const std::optional<Answer> ill = decode_answer(encode(Answer{.error = {ErrorCode::kNoSpace, "full"}}));
  ASSERT_TRUE(ill);
  EXPECT_EQ(ill->status().error().code, ErrorCode::kNoSpace);
  EXPECT_EQ(ill->status().error().message, "full");
}

TEST(UsersWords, WhatNobodyMaySayIsNoCall) {
  const auto refused = [](void (*change)(Call&)) {
    Call call = sample();
    change(call);
    return !decode_call(encode(call));
  };
  EXPECT_FALSE(refused([](Call&) {}));
  EXPECT_TRUE(refused([](Call& call) { call.kind = static_cast<Kind>(0); }));
  EXPECT_TRUE(refused([](Call& call) { call.kind = static_cast<Kind>(10); }));
  EXPECT_TRUE(refused([](Call& call) { call.file.spec.path = "in/x.bin"; }));
  EXPECT_TRUE(refused([](Call& call) { call.file.spec.path += std::string("\0y", 2); }));
  EXPECT_TRUE(refused([](Call& call) { call.file.spec.name = std::string(1, '\0'); }));
  EXPECT_TRUE(refused([](Call& call) { call.file.spec.path = std::string(1 << 15, '/'); }));
  EXPECT_TRUE(refused([](Call& call) { call.file.peer = std::string(300, 'p'); }));
  EXPECT_TRUE(refused([](Call& call) { call.file.spec.size = ~0ULL; }));
  EXPECT_TRUE(refused([](Call& call) { call.file.spec.mode = 010000; }));
  EXPECT_TRUE(refused([](Call& call) { call.file.spec.holes = {{0, ~0ULL}}; }));
  EXPECT_TRUE(refused([](Call& call) { call.file.spec.holes = {{8192, 4096}, {4096, 4096}}; }));
  EXPECT_FALSE(decode_call("rubbish"));
  EXPECT_FALSE(decode_call(std::string(kMessageBytesMax + 1, '\0')));
  EXPECT_FALSE(decode_answer(""));
}

catalog::File a_pack() {
  catalog::File file{.shown = "/srv/x (3 names)", .path = "/srv/x", .size_bytes = 4096};
  file.kind = catalog::FileKind::kPack;
  file.pack.members = 3;
  file.pack.list = std::make_shared<const std::string>("list");
  file.keep.xattrs = true;
  file.overwrite = true;
  return file;
}

TEST(UsersWords, ACallAboutAPackComesAsItWasSaid) {
  Call call{.kind = Kind::kStagePack, .file = {}};
  call.file.peer = "beta";
  call.tree.pack = a_pack();
  call.tree.staging = ".sluice-x.sluice-part";
  call.tree.number = 7;
  call.tree.forgotten = {5, 6};
  call.tree.expected = {{"a/b", {{.kind = digests::Kind::kMd5, .hex = std::string(32, 'a')}}}};
  const std::optional<Call> heard = decode_call(encode(call));
  ASSERT_TRUE(heard && heard->tree.pack);
  EXPECT_EQ(heard->file.peer, "beta");
  EXPECT_EQ(heard->tree.pack->path, "/srv/x");
  EXPECT_EQ(*heard->tree.pack->pack.list, "list");
  EXPECT_TRUE(heard->tree.pack->overwrite && heard->tree.pack->keep.xattrs);
  EXPECT_EQ(heard->tree.staging, call.tree.staging);
  EXPECT_EQ(heard->tree.number, 7U);
  EXPECT_EQ(heard->tree.forgotten, call.tree.forgotten);
  EXPECT_EQ(heard->tree.expected, call.tree.expected);
}

TEST(UsersWords, AWishForAListComesAsItWasSaid) {
  Call call{.kind = Kind::kList, .file = {}};
  call.tree.wish = exports::UserTrees::Wish{
      .paths = {"data/x", "/srv/y"}, .selection = {}, .known = {a_pack()}, .expected = nullptr};
  call.tree.wish->selection.rules = {{.include = false, .pattern = "*.tmp"}};
  call.tree.wish->selection.keep.xattrs = true;
  const std::optional<Call> heard = decode_call(encode(call));
  ASSERT_TRUE(heard && heard->tree.wish);
  EXPECT_EQ(heard->tree.wish->paths, call.tree.wish->paths);
  EXPECT_EQ(heard->tree.wish->selection.rules, call.tree.wish->selection.rules);
  EXPECT_TRUE(heard->tree.wish->selection.keep.xattrs);
  ASSERT_EQ(heard->tree.wish->known.size(), 1U);
  Answer answer{.files = {a_pack()}, .ended = true};
  answer.missing.note("a", catalog::Failure::kForbidden);
  const std::optional<Answer> told = decode_answer(encode(answer));
  ASSERT_TRUE(told);
  ASSERT_EQ(told->files.size(), 1U);
  EXPECT_EQ(*told->files.front().pack.list, "list");
  EXPECT_TRUE(told->ended);
  EXPECT_EQ(told->missing.failed, 1U);
  EXPECT_EQ(told->missing.names.at(0).failure, catalog::Failure::kForbidden);
}

TEST(UsersWords, WhatNobodyMaySayOfTreesIsNoCall) {
  const auto said = [](Kind kind, void (*change)(Call&)) {
    Call call{.kind = kind, .file = {}};
    call.tree.pack = a_pack();
    call.tree.staging = "s";
    call.tree.wish =
        exports::UserTrees::Wish{.paths = {"data/x"}, .selection = {}, .known = {}, .expected = {}};
    change(call);
    return decode_call(encode(call)).has_value();
  };
  EXPECT_TRUE(said(Kind::kStagePack, [](Call&) {}));
  EXPECT_FALSE(said(Kind::kStagePack, [](Call& call) { call.tree.staging = "../s"; }));
  EXPECT_FALSE(said(Kind::kStagePack, [](Call& call) { call.tree.staging = ""; }));
  EXPECT_FALSE(said(Kind::kStagePack, [](Call& call) { call.tree.pack->path = "srv"; }));
  EXPECT_FALSE(said(Kind::kFillPack, [](Call& call) { call.tree.pack->kind = catalog::FileKind::kFile; }));
  EXPECT_FALSE(said(Kind::kFillPack, [](Call& call) { call.tree.pack->size_bytes = 1ULL << 40; }));
  EXPECT_TRUE(said(Kind::kList, [](Call&) {}));
  EXPECT_FALSE(said(Kind::kList, [](Call& call) { call.tree.wish->paths.clear(); }));
  EXPECT_FALSE(said(Kind::kList, [](Call& call) { call.tree.wish->paths = {std::string("a\0b", 3)}; }));
  EXPECT_FALSE(said(Kind::kOpenTree, [](Call&) {})) << "it has no path";
}

TEST(UsersWords, HolesThatAreTooManyAreLeftOut) {
  Call call = sample();
  call.file.spec.size = 1ULL << 40;
  call.file.spec.holes.clear();
  for (uint64_t i = 0; i < 100'000; ++i) call.file.spec.holes.push_back({i << 20, 4096});
  const std::string bytes = encode(call);
  EXPECT_LE(bytes.size(), kMessageBytesMax);
  const std::optional<Call> heard = decode_call(bytes);
  ASSERT_TRUE(heard);
  EXPECT_TRUE(heard->file.spec.holes.empty());
}

TEST(UsersWords, AGreetingOfAnotherVersionIsRefused) {
  const Result<uint32_t> uid = uid_of_hello(hello(1234));
  ASSERT_TRUE(uid);
  EXPECT_EQ(*uid, 1234U);
  wire::Hello other;
  other.set_version(kVersion + 1);
  other.set_uid(1234);
  EXPECT_EQ(uid_of_hello(other.SerializeAsString()).error().code, ErrorCode::kIncompatible);
  EXPECT_EQ(uid_of_hello("\xff").error().code, ErrorCode::kInternal);
}

}  // namespace
}  // namespace sluice::users
