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
