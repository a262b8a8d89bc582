// SPDX-License-Identifier: Apache-2.0
#include "control/selection/file_part.h"

#include <gtest/gtest.h>

namespace sluice::selection {
namespace {

using What = FilePart::What;
constexpr uint64_t kMiB = 1U << 20;
const std::string kSet = "0123456789abcdef0123456789abcdef";

FilePart parsed(const std::string& text) {
  const auto part = parse_file_part(text);
  EXPECT_TRUE(part) << text << ": " << part.error().message;
  return part ? *part : FilePart();
}

TEST(FilePart, IsWrittenAsItIsRead) {
  EXPECT_EQ(parsed(""), FilePart());
  EXPECT_EQ(parsed(kSet + ":2097152+1048576"),
            (FilePart{.what = What::kRange, .set = kSet, .offset = 2 * kMiB, .length = kMiB}));
  EXPECT_EQ(parsed(kSet + ":0+"), (FilePart{.what = What::kRange, .set = kSet}));
  EXPECT_EQ(parsed(kSet + ":finish"), (FilePart{.what = What::kFinish, .set = kSet}));
  EXPECT_EQ(parsed(kSet + ":drop"), (FilePart{.what = What::kDrop, .set = kSet}));
  for (const char* rest : {"2097152+1048576", "0+", "finish", "drop", "1048576+77"})
    EXPECT_EQ(file_part_text(parsed(kSet + ":" + rest)), kSet + ":" + rest);
  EXPECT_EQ(file_part_text({}), "");
}

TEST(FilePart, WhatCannotBeIsTold) {
  for (const std::string& text : std::initializer_list<std::string>{
           kSet, kSet + ":", kSet + ":1", kSet + ":+1", kSet + ":0+0", kSet + ":-1+", kSet + ":0x0+",
           kSet + ":1+" /* no whole MiB */, kSet + ":0+1 ", kSet + ":Finish", ":0+",
           "x" + kSet.substr(1) + ":0+", kSet + "0:0+", kSet + ":99999999999999999999+",
           kSet + ":1152921504606846976+", kSet + ":1048576+1152921504606846976"}) {
    const auto part = parse_file_part(text);
    ASSERT_FALSE(part) << text;
    EXPECT_EQ(part.error().code, ErrorCode::kUsage);
    EXPECT_EQ(part.error().message.find('\n'), std::string::npos);
  }
}

TEST(FilePart, BecomesThatOfItsFile) {
  const uint64_t size = 5 * kMiB + 7;
  FilePart part = parsed(kSet + ":4194304+");
  auto of_file = part_of_file(part, size);
  ASSERT_TRUE(of_file);
  EXPECT_EQ(of_file->length, kMiB + 7);
  EXPECT_EQ(of_file->whole_bytes, size);
  EXPECT_EQ(part_bytes(*of_file), kMiB + 7);
  EXPECT_EQ(offered_part_problem(*of_file, kMiB + 7), "");
  EXPECT_NE(offered_part_problem(*of_file, kMiB), "");
  EXPECT_TRUE(answers_wish(*of_file, part));

  of_file = part_of_file(parsed(kSet + ":finish"), size);
  ASSERT_TRUE(of_file);
  EXPECT_EQ(part_bytes(*of_file), 0U);
  EXPECT_EQ(offered_part_problem(*of_file, 0), "");
}

TEST(FilePart, OfAFileThatIsShorterNowItIsNone) {
  for (const char* rest : {":4194304+", ":2097152+2097152"}) {
    const auto part = part_of_file(parsed(kSet + rest), 3 * kMiB);
    ASSERT_FALSE(part) << rest;
    EXPECT_EQ(part.error().code, ErrorCode::kIntegrity);
  }
}

TEST(FilePart, OfAnEmptyFileThereIsNone) {
  const auto part = part_of_file(parsed(kSet + ":0+"), 0);
  ASSERT_FALSE(part);
  EXPECT_EQ(part.error().code, ErrorCode::kUsage) << "it has not changed";
  EXPECT_NE(part.error().message.find("is empty"), std::string::npos);
  EXPECT_EQ(part_of_file(parsed(kSet + ":0+1048576"), 0).error().code, ErrorCode::kIntegrity)
      << "it had bytes once";
}

TEST(FilePart, EndsAtAWholeMiBOrWithItsFile) {
  EXPECT_TRUE(part_of_file(parsed(kSet + ":0+1048583"), kMiB + 7));
  const auto part = part_of_file(parsed(kSet + ":0+1048583"), 2 * kMiB);
  ASSERT_FALSE(part);
  EXPECT_EQ(part.error().code, ErrorCode::kUsage);
}

TEST(FilePart, AnotherOneIsNoAnswer) {
  const FilePart wished = parsed(kSet + ":1048576+1048576");
  const FilePart right{
      .what = What::kRange, .set = kSet, .offset = kMiB, .length = kMiB, .whole_bytes = 9 * kMiB};
  EXPECT_TRUE(answers_wish(right, wished));
  FilePart other = right;
  other.offset = 0;
  EXPECT_FALSE(answers_wish(other, wished));
  other = right;
  other.length = 2 * kMiB;
  EXPECT_FALSE(answers_wish(other, wished));
  EXPECT_FALSE(answers_wish({}, wished));
  EXPECT_FALSE(answers_wish(right, {}));
  // Up to the end: there it has to end.
  EXPECT_FALSE(answers_wish(right, parsed(kSet + ":1048576+")));
  EXPECT_TRUE(answers_wish({}, {}));
}

TEST(FilePart, WhatAPeerMakesUpIsFound) {
  const FilePart good{
      .what = What::kRange, .set = kSet, .offset = kMiB, .length = kMiB, .whole_bytes = 2 * kMiB};
  EXPECT_EQ(offered_part_problem(good, kMiB), "");
  for (const auto& spoil : std::initializer_list<void (*)(FilePart&)>{
           [](FilePart& part) { part.what = static_cast<What>(4); },
           [](FilePart& part) { part.set.pop_back(); }, [](FilePart& part) { part.offset = 1; },
           [](FilePart& part) { part.offset = ~0ULL << 20; }, [](FilePart& part) { part.length = 0; },
           [](FilePart& part) { part.length = ~0ULL; }, [](FilePart& part) { part.whole_bytes = kMiB; },
           [](FilePart& part) { part.whole_bytes = ~0ULL; }, [](FilePart& part) { part.what = What::kWhole; },
           [](FilePart& part) { part.what = What::kDrop; }}) {
    FilePart part = good;
    spoil(part);
    EXPECT_NE(offered_part_problem(part, part.length), "");
  }
}

}  // namespace
}  // namespace sluice::selection
