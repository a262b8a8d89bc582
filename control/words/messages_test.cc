// What a peer may say at all, before anybody looks at what it means.
// SPDX-License-Identifier: Apache-2.0
#include "control/words/messages.h"

#include <gtest/gtest.h>

#include "control/board/flow_table.h"
#include "control/catalog/catalog.h"
#include "control/selection/choice.h"
#include "dataplane/base/text.h"

namespace sluice::transfer {
namespace {

const std::string kHostile = "a\nforged \x1b[2J \xc2\x9b" + std::string(1U << 20, 'x') + "\xff";

bool refused(Message message) {
  const Status status = admit(&message);
  if (status) return false;
  EXPECT_EQ(status.error().code, ErrorCode::kIncompatible);
  EXPECT_LT(status.error().message.size(), 400U);
  EXPECT_EQ(base::printable(status.error().message), status.error().message);
  return true;
}

template <typename M>
M admitted(M message) {
  Message any(std::move(message));
  EXPECT_TRUE(admit(&any));
  return std::get<M>(any);
}

void expect_shown(const std::string& text, size_t bytes_max) {
  EXPECT_LE(text.size(), bytes_max);
  EXPECT_EQ(base::printable(text), text);
  EXPECT_TRUE(text.starts_with("a?forged"));
}

TEST(Admit, WhatIsOnlyShownBecomesPrintableAndIsCut) {
  expect_shown(admitted(Failure{.message = kHostile}).message, kTextBytesMax);
  expect_shown(admitted(Hello{.software = kHostile}).software, 100);
  expect_shown(admitted(Pause{.node = kHostile}).node, 100);
  expect_shown(admitted(TransferReady{.final_paths = {"x", kHostile}}).final_paths[1], kPathBytesMax);
  const std::string honest = "größe, 数据";
  EXPECT_EQ(admitted(Failure{.message = honest}).message, honest);
}

TEST(Admit, AUserHasANameThatCanBe) {
  EXPECT_EQ(admitted(Hello{.user = "d\xC3\xA9sir\xE9@corp"}).user, "d\xC3\xA9sir\xE9@corp");
  EXPECT_TRUE(refused(Hello{.user = std::string(kUserBytesMax + 1, 'a')}));
  EXPECT_TRUE(refused(Hello{.user = kHostile}));
  EXPECT_TRUE(refused(Hello{.user = std::string("al\0ice", 6)}));
}

TEST(Failures, EveryErrorIsHeardAsWhatItWasAndOthersAsADefect) {
  int code = 1;
  for (; error_code_name(static_cast<ErrorCode>(code)) != "unknown"; ++code) {
    const Failure failure = failure_of({static_cast<ErrorCode>(code), "why"});
    EXPECT_EQ(error_of("beta", failure).code, static_cast<ErrorCode>(code));
  }
  EXPECT_EQ(error_of("beta", Failure{.code = static_cast<uint32_t>(code)}).code, ErrorCode::kInternal);
  EXPECT_EQ(error_of("beta", Failure{.code = 256 + 2}).code, ErrorCode::kInternal);
}

TEST(Failures, WhatAPeerSaysOfItselfIsNotTakenForThisNode) {
  const auto heard = [](const std::string& said) {
    return error_of("beta", failure_of({ErrorCode::kInternal, said})).message;
  };
  EXPECT_EQ(heard("sluice-dataplane of this node does not run: start it"),
            "beta: sluice-dataplane of node beta does not run: start it");
  EXPECT_EQ(heard("this node's data port has no IPv6 address"),
            "beta: node beta's data port has no IPv6 address");
  EXPECT_EQ(heard("the peer wants a protection that is not known here: upgrade this node"),
            "beta: its peer wants a protection that is not known here: upgrade node beta");
  EXPECT_EQ(heard("data/this node/the peer: no such file"), "beta: data/this node/the peer: no such file");
  EXPECT_EQ(heard("ask this nodes"), "beta: ask this nodes");
}

TEST(Admit, ATextIsNotCutWithinACharacter) {
  const std::string text = std::string(kTextBytesMax - 4, 'x') + "数数";
  EXPECT_TRUE(base::is_utf8(admitted(Failure{.message = text}).message));
}

TEST(Admit, NamesAndPathsAreBytesAndBounded) {
  const std::string name(kPathBytesMax, '\n');  // in a tree it is a path
  const std::string path(kPathBytesMax, '\x1b');
  const TransferOffer offer = admitted(TransferOffer{.files = {{.name = name}}, .destination = path});
  EXPECT_EQ(offer.files[0].name, name) << "a name is what it is";
  EXPECT_EQ(offer.destination, path);
  EXPECT_FALSE(refused(TransferRequest{.source_paths = {path}}));
  EXPECT_TRUE(refused(TransferOffer{.files = {{.name = "x"}, {.name = name + "x"}}}));
  EXPECT_TRUE(refused(TransferOffer{.files = {{.name = kHostile}}}));
  EXPECT_TRUE(refused(TransferOffer{.destination = path + "x"}));
  EXPECT_TRUE(refused(TransferRequest{.source_paths = {"x", path + "x"}}));
}

TEST(Admit, WordsAboutPartsAreBounded) {
  const std::vector<recovery::Range> many(kRangesPerMessage + 1, {.offset = 0, .length = 65536});
  EXPECT_TRUE(refused(Want{.ranges = many}));
  EXPECT_TRUE(refused(DigestsWanted{.ranges = many}));
  EXPECT_TRUE(refused(Want{.ranges = {{.offset = 2, .length = UINT64_MAX}}}));
  EXPECT_FALSE(refused(ExtentDigests{.digests = std::vector<uint64_t>(kDigestsPerMessage)}));
  EXPECT_TRUE(refused(ExtentDigests{.digests = std::vector<uint64_t>(kDigestsPerMessage + 1)}));
}

TEST(Admit, ASelectionIsOneThatCanBe) {
  const auto asks = [](std::vector<selection::Rule> rules, std::vector<std::string> names = {}) {
    return refused(TransferRequest{.source_paths = {"x"},
                                   .selection = {.rules = std::move(rules), .names = std::move(names)}});
  };
  using Rules = std::vector<selection::Rule>;
  EXPECT_FALSE(asks({{.include = true, .pattern = std::string(4096, '\xff')}}, {"a", "b/"}));
  EXPECT_TRUE(asks({{.include = true, .pattern = std::string(4097, 'x')}}));
  EXPECT_TRUE(asks({{.include = false, .pattern = ""}}));
  EXPECT_FALSE(asks(Rules(selection::kRulesMax, {.include = false, .pattern = "x"})));
  EXPECT_TRUE(asks(Rules(selection::kRulesMax + 1, {.include = false, .pattern = "x"})));
  EXPECT_TRUE(asks({}, {"../x"}));
  EXPECT_TRUE(asks({}, {"/x"}));
  EXPECT_TRUE(asks({}, std::vector<std::string>(selection::kNamesMax + 1, "x")));
  EXPECT_TRUE(
      refused(TransferRequest{.source_paths = {"x", "y"}, .selection = {.rules = {}, .names = {"a"}}}));
}

TEST(Admit, ListsAreBounded) {
  const std::vector<recovery::Range> most(kRangesPerMessage, recovery::Range{0, 1});
  const std::vector<recovery::Range> many(kRangesPerMessage + 1, recovery::Range{0, 1});
  EXPECT_FALSE(refused(Need{.ranges = most}));
  EXPECT_TRUE(refused(Need{.ranges = many}));
  EXPECT_TRUE(refused(PartitionDone{.ranges = many}));
  EXPECT_TRUE(refused(ObjectState{.held = many}));
  EXPECT_TRUE(refused(TransferOffer{.files = std::vector<OfferedFile>(catalog::kFilesMax + 1)}));
  EXPECT_TRUE(refused(TransferRequest{.source_paths = std::vector<std::string>(catalog::kFilesMax + 1)}));
  EXPECT_TRUE(refused(TransferReady{.final_paths = std::vector<std::string>(catalog::kFilesMax + 1)}));
  EXPECT_TRUE(refused(Hello{.flow_ids = std::vector<uint64_t>(board::kLanesMax + 1)}));
}

TEST(Admit, ARangeWhoseEndIsNoNumberIsRefused) {
  const recovery::Range last{.offset = UINT64_MAX - 1, .length = 1};
  const recovery::Range beyond{.offset = UINT64_MAX, .length = 1};
  EXPECT_FALSE(refused(PartitionSent{.range = last}));
  EXPECT_TRUE(refused(PartitionSent{.range = beyond}));
  EXPECT_TRUE(refused(Need{.ranges = {last, beyond}}));
  EXPECT_TRUE(refused(ObjectState{.held = {beyond}}));
  EXPECT_TRUE(refused(PartitionDone{.ranges = {beyond}}));
}

TEST(MemoryBytes, GrowWithWhatAMessageCarries) {
  EXPECT_EQ(memory_bytes(Heartbeat{}), sizeof(Message));
  EXPECT_GE(
      memory_bytes(TransferOffer{.files = std::vector<OfferedFile>(10, {.name = std::string(255, 'x')})}),
      10U * 255);
  EXPECT_GE(memory_bytes(TransferRequest{.source_paths = {std::string(4096, 'x')}}), 4096U);
  EXPECT_GE(memory_bytes(
                TransferRequest{.source_paths = {},
                                .selection = {.rules = {{.include = true, .pattern = std::string(4096, 'x')}},
                                              .names = {std::string(4096, 'x')}}}),
            8192U);
  EXPECT_GE(memory_bytes(TransferReady{.final_paths = {std::string(4096, 'x')}}), 4096U);
  EXPECT_GE(memory_bytes(Need{.ranges = std::vector<recovery::Range>(100)}), 1600U);
  EXPECT_GE(memory_bytes(ObjectState{.held = std::vector<recovery::Range>(100)}), 1600U);
  EXPECT_GE(memory_bytes(PartitionDone{.ranges = std::vector<recovery::Range>(100)}), 1600U);
}

}  // namespace
}  // namespace sluice::transfer
