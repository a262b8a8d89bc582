// SPDX-License-Identifier: Apache-2.0
#include "tools/unattended/telling.h"

#include <gtest/gtest.h>

#include "tools/unattended/words.h"

namespace sluice::unattended {
namespace {

Telling::Limits few() {
  return {.at_once = 2, .tries = 3, .waits = {.first_ns = 10, .most_ns = 15}, .waiting = 5};
}

Letter letter(const std::string& key) { return {.key = key, .text = "{\"of\": \"" + key + "\"}\n"}; }

std::string key_of(const Letter* one) { return one == nullptr ? "" : one->key; }

TEST(Words, AnyBytesComeBack) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  for (const std::string& bytes : {std::string(), std::string(" "), std::string("%"), all}) {
    const std::string word = as_word(bytes);
    EXPECT_EQ(words_of(word).size(), 1U) << word;
    EXPECT_EQ(of_word(word), bytes);
  }
  for (const char* none : {"%4", "%zz", "a%"}) EXPECT_FALSE(of_word(none)) << none;
}

TEST(Telling, EachIsToldOnceAndNotMoreThanSoManyAtATime) {
  Telling telling(few());
  for (const char* key : {"a", "b", "c"}) EXPECT_EQ(telling.add(letter(key), 0), Telling::Added::kNew);
  EXPECT_EQ(telling.add(letter("a"), 0), Telling::Added::kKnown);
  EXPECT_EQ(key_of(telling.next(0)), "a");
  EXPECT_EQ(key_of(telling.next(0)), "b");
  EXPECT_EQ(telling.next(0), nullptr);
  EXPECT_EQ(telling.next_ns(), kNever) << "as many run as may";
  EXPECT_EQ(telling.ended("a", true, 0), Telling::Outcome::kTold);
  EXPECT_EQ(telling.add(letter("a"), 0), Telling::Added::kKnown) << "it was told";
  EXPECT_EQ(key_of(telling.next(0)), "c");
  telling.ended("b", true, 0);
  telling.ended("c", true, 0);
  EXPECT_TRUE(telling.idle());
}

TEST(Telling, WhatFailsIsTriedAgainAfterLongerWaitsAndThenGivenUp) {
  Telling telling(few());
  telling.add(letter("a"), 0);
  ASSERT_NE(telling.next(0), nullptr);
  EXPECT_EQ(telling.ended("a", false, 100), Telling::Outcome::kAgain);
  EXPECT_EQ(telling.next(109), nullptr);
  EXPECT_EQ(telling.next_ns(), 110);
  ASSERT_NE(telling.next(110), nullptr);
  EXPECT_EQ(telling.ended("a", false, 200), Telling::Outcome::kAgain);
  EXPECT_EQ(telling.next_ns(), 215) << "twice as long, but no longer than the limit";
  ASSERT_NE(telling.next(300), nullptr);
  EXPECT_EQ(telling.ended("a", false, 300), Telling::Outcome::kGivenUp);
  EXPECT_TRUE(telling.idle());
  EXPECT_TRUE(telling.knows("a"));
}

TEST(Telling, ATryThatWasInterruptedDoesNotCount) {
  Telling telling(few());
  telling.add(letter("a"), 0);
  for (int i = 0; i < 10; ++i) {
    ASSERT_NE(telling.next(0), nullptr);
    telling.given_back("a");
  }
  ASSERT_NE(telling.next(0), nullptr);
  EXPECT_EQ(telling.ended("a", false, 0), Telling::Outcome::kAgain);
}

TEST(Telling, MoreThanThereIsRoomForIsSaid) {
  Telling telling(few());
  for (const char* key : {"a", "b", "c", "d", "e"}) telling.add(letter(key), 0);
  EXPECT_EQ(telling.add(letter("f"), 0), Telling::Added::kNoRoom);
  EXPECT_FALSE(telling.knows("f")) << "it may be added later";
}

// What is written at each step, and cut off anywhere, gives a state of before or after.
TEST(Telling, AfterARestartNothingIsToldTwiceAndNothingIsLost) {
  Telling before(few());
  std::string file;
  const auto write = [&] { file += before.take_lines(); };
  before.pass_over("old");
  for (const char* key : {"a", "b", "c"}) before.add(letter(key), 0);
  before.add({.key = "passing", .text = "x", .lasting = false}, 0);
  write();
  before.next(0);
  before.next(0);
  before.add(letter("d"), 0);  // written together with what comes next
  before.ended("a", true, 0);
  EXPECT_TRUE(before.decisive());
  before.ended("b", false, 0);
  write();
  EXPECT_FALSE(before.decisive());
  for (const std::string& text : {file, file + "letter cut 0 half", before.all_lines()}) {
    Telling after(few());
    after.read(text);
    for (const char* known : {"old", "a", "b", "c", "d"})
      EXPECT_EQ(after.add(letter(known), 0), Telling::Added::kKnown) << known;
    EXPECT_FALSE(after.knows("passing"));
    EXPECT_FALSE(after.knows("cut"));
    const Letter* const first = after.next(0);
    ASSERT_NE(first, nullptr);
    EXPECT_EQ(first->key, "b");
    EXPECT_EQ(first->tries, 2U) << "the one before counts";
    EXPECT_EQ(first->text, letter("b").text);
    EXPECT_EQ(key_of(after.next(0)), "c");
    after.ended("b", true, 0);
    after.ended("c", true, 0);
    EXPECT_EQ(key_of(after.next(0)), "d");
    after.ended("d", true, 0);
    EXPECT_TRUE(after.idle());
  }
}

TEST(Telling, WhatTheNodeHasForgottenIsForgotten) {
  Telling telling(few());
  telling.pass_over("gone");
  telling.pass_over("there");
  telling.add(letter("waits"), 0);
  telling.keep([](const std::string& key) { return key == "there"; });
  EXPECT_FALSE(telling.knows("gone"));
  EXPECT_TRUE(telling.knows("there"));
  EXPECT_TRUE(telling.knows("waits"));
  Telling after(few());
  after.read(telling.take_lines());
  EXPECT_FALSE(after.knows("gone"));
  EXPECT_TRUE(after.knows("waits"));
}

TEST(Telling, LinesThatAreNoneAreLeftOut) {
  Telling telling(few());
  telling.read("\n\nletter\nletter a\nletter a x y\ntried a 3\nforget a\nnonsense a b\ntold %z\ntold b\n");
  EXPECT_TRUE(telling.idle());
  EXPECT_TRUE(telling.knows("b"));
}

}  // namespace
}  // namespace sluice::unattended
