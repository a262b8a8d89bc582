// SPDX-License-Identifier: Apache-2.0
#include <fstream>

#include "tools/cli/cli_fixture_for_test.h"
#include "tools/cli/probe_file.h"
#include "tools/cli/probe_report.h"
#include "tools/cli/probe_state.h"

namespace sluice::cli {
namespace {

ProbeState some_probe(const char* kind) {
  ProbeState state;
  state.node_directory = "/etc/sluice";
  state.peer = "beta";
  state.kind = kind;
  state.bytes = 1000;
  state.began_unix_ns = 5;
  return state;
}

class Probe : public ::testing::Test {
 protected:
  Probe() {
    std::string directory = (std::filesystem::temp_directory_path() / "sluice-probe-test-XXXXXX").string();
    EXPECT_NE(::mkdtemp(directory.data()), nullptr);
    directory_ = directory;
  }
  ~Probe() override { std::filesystem::remove_all(directory_); }
  std::filesystem::path directory_;
};

TEST(ShareAtMost, IsTheRuleOfThreeWhereNoneWasWrong) {
  EXPECT_DOUBLE_EQ(share_at_most(0, 0), 1);
  EXPECT_DOUBLE_EQ(share_at_most(0, 1), 1);
  EXPECT_DOUBLE_EQ(share_at_most(0, 100'082), 3.0 / 100'082);
}

// Upper limits of Poisson means at 95 %: tables of chi-squared, half of the quantile with 2(k + 1) degrees of
// freedom.
TEST(ShareAtMost, IsPoissonsBoundWhereSomeWere) {
  EXPECT_NEAR(share_at_most(1, 10'000) * 10'000, 4.744, 0.001);
  EXPECT_NEAR(share_at_most(5, 10'000) * 10'000, 10.513, 0.001);
  EXPECT_NEAR(share_at_most(50, 1'000'000) * 1'000'000, 63.287, 0.01);
  EXPECT_DOUBLE_EQ(share_at_most(10, 10), 1);
  EXPECT_GT(share_at_most(1'000'000, 100'000'000), 0.01);
}

TEST_F(Probe, AStateComesBackAsItWasWritten) {
  ProbeState state = some_probe(kPackets);
  state.done = 10;
  state.wrong = 2;
  state.lost = 1;
  state.copies = 3;
  state.wrong_bytes = 4;
  state.bits_set = 5;
  state.bits_cleared = 6;
  state.positions = {{7, 8}, {900, 1}};
  state.tried_again = 9;
  state.elapsed_s = 1.5;
  state.add_fault({{"number", 3}});
  const std::filesystem::path path = directory_ / "new/state.json";
  {
    auto file = ProbeStateFile::open(path);
    ASSERT_TRUE(file) << file.error().message;
    EXPECT_EQ(file->text(), "");
    ASSERT_TRUE(file->write("something else"));
    ASSERT_TRUE(file->write(state_text(state)));
    const auto other = ProbeStateFile::open(path);
    ASSERT_FALSE(other);
    EXPECT_EQ(other.error().code, ErrorCode::kDestinationExists);
  }
  const auto file = ProbeStateFile::open(path);
  ASSERT_TRUE(file);
  const auto read = read_state(file->text());
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(state_text(*read), state_text(state));
  EXPECT_TRUE(read->same_probe(state));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory_ / "new"), {}), 1)
      << "nothing beside it";
}

TEST_F(Probe, WhatIsNoStateIsRefused) {
  const std::string good = state_text(some_probe(kTransfers));
  EXPECT_TRUE(read_state(good));
  for (const char* const text : {"", "{}", "[]", "{\"schema\":\"sluice.probe_state.v1\"}", "\xff"})
    EXPECT_FALSE(read_state(text)) << text;
  for (const char* const member : {"done", "peer", "faults", "positions", "elapsed_s", "udp_checksum"}) {
    api::Json object = api::Json::parse(good);
    object[member] = -1;
    EXPECT_FALSE(read_state(object.dump())) << member;
    object.erase(member);
    EXPECT_FALSE(read_state(object.dump())) << member;
  }
  api::Json object = api::Json::parse(good);
  object["wrong"] = 1;
  EXPECT_FALSE(read_state(object.dump())) << "more wrong than done";
  EXPECT_FALSE(ProbeStateFile::open(directory_)) << "a directory";
}

TEST_F(Probe, AFileHasAnotherContentEachTime) {
  std::filesystem::path path;
  {
    ProbeFile file(1001);
    ASSERT_TRUE(file.make(directory_));
    path = file.path();
    const auto first = file.renew();
    ASSERT_TRUE(first) << first.error().message;
    EXPECT_EQ(std::filesystem::file_size(path), 1001U);
    EXPECT_EQ(first->size(), 16U);
    EXPECT_NE(*file.renew(), *first);
  }
  EXPECT_FALSE(std::filesystem::exists(path.parent_path()));
}

api::Session session_with(const std::string& source, const std::string& destination) {
  api::Session session;
  session.set_id("3f2a");
  session.set_state(api::Session::SUCCEEDED);
  session.set_crc_errors(2);
  session.set_lost(3);
  api::FileProgress& file = *session.add_files();
  file.set_digest_source(source);
  file.set_digest_destination(destination);
  return session;
}

TEST(TakeTransfer, NamesWhoseBytesAreOthers) {
  ProbeState state = some_probe(kTransfers);
  EXPECT_EQ(take_transfer("aa", session_with("aa", "aa"), 1, &state), "");
  EXPECT_NE(take_transfer("aa", session_with("ab", "ab"), 1, &state).find("source"), std::string::npos);
  EXPECT_NE(take_transfer("aa", session_with("aa", "ab"), 1, &state).find("destination"), std::string::npos);
  api::Session failed = session_with("aa", "ab");
  failed.set_state(api::Session::FAILED);
  failed.set_error("the digests of the nodes differ");
  EXPECT_EQ(take_transfer("aa", failed, 1, &state), "the digests of the nodes differ");
  EXPECT_EQ(state.done, 4U);
  EXPECT_EQ(state.wrong, 3U);
  EXPECT_EQ(state.bytes_moved, 4000U);
  EXPECT_EQ(state.crc_errors, 8U);
  EXPECT_EQ(state.faults.size(), 3U);
  EXPECT_EQ(state.faults[0]["number"], 2);
  const std::string text = probe_text(state, 10);
  EXPECT_NE(text.find("4 of 10 transfers to beta, 3 wrong"), std::string::npos) << text;
  EXPECT_NE(text.find("transfer 3: "), std::string::npos) << text;
}

TEST(TakeEchoes, AddsUpWhatCameBackWrong) {
  ProbeState state = some_probe(kPackets);
  state.done = 100;
  api::Session session;
  api::Echoes& echoes = *session.mutable_echoes();
  echoes.set_sent(50);
  echoes.set_came(48);
  echoes.set_wrong(2);
  echoes.set_wrong_bytes(3);
  echoes.set_copies(1);
  const auto fault = [&](uint32_t number, uint32_t offset, const char* sent, const char* came) {
    api::EchoFault& one = *echoes.add_faults();
    one.set_number(number);
    one.set_offset(offset);
    one.set_sent(sent);
    one.set_came(came);
  };
  fault(7, 16, "AAAAAAAA", "AACAAAAA");
  fault(7, 24, "AAAA", "AAA@");
  fault(9, 0, "A", "q");
  EXPECT_EQ(take_echoes(session, 1, &state), 2U);
  EXPECT_EQ(state.done, 150U);
  EXPECT_EQ(state.came(), 148U);
  EXPECT_EQ(state.lost, 2U);
  EXPECT_EQ(state.wrong, 2U);
  EXPECT_EQ(state.bits_set, 3U) << "A to C is one, A to q two";
  EXPECT_EQ(state.bits_cleared, 1U);
  EXPECT_EQ(state.positions, (std::map<uint32_t, uint64_t>{{0, 1}, {18, 1}, {27, 1}}));
  ASSERT_EQ(state.faults.size(), 2U);
  EXPECT_EQ(state.faults[0]["number"], 107);
  EXPECT_EQ(state.faults[0]["runs"].size(), 2U);
  EXPECT_EQ(state.faults[0]["runs"][1]["came"], "41414140");
  const std::string text = probe_text(state, 150);
  EXPECT_NE(text.find("150 of 150 datagrams reflected by beta, 2 wrong"), std::string::npos) << text;
  EXPECT_NE(text.find("datagram 109: at 0 sent 41 came 71"), std::string::npos) << text;
  EXPECT_NE(text.find("by their place"), std::string::npos) << text;
  EXPECT_EQ(probe_json(state, 150)["schema"], "sluice.integrity.v1");
}

class ProbeCommand : public CliTest {};

TEST_F(ProbeCommand, WhatCannotBeIsRefusedBeforeAnythingIsSent) {
  expect_one_line_error(sluice({"probe", "integrity", "beta"}), ErrorCode::kUsage);
  expect_one_line_error(sluice({"probe", "integrity", "beta:data", "--transfers", "1"}), ErrorCode::kUsage);
  expect_one_line_error(sluice({"probe", "integrity", "beta", "--transfers", "1", "--packets", "1"}),
                        ErrorCode::kUsage);
  expect_one_line_error(sluice({"probe", "integrity", "beta", "--transfers", "1", "--size", "9"}),
                        ErrorCode::kUsage);
  expect_one_line_error(sluice({"probe", "integrity", "beta", "--packets", "1", "--bytes", "4M"}),
                        ErrorCode::kUsage);
  expect_one_line_error(sluice({"probe", "integrity", "beta", "--transfers", "1", "--bytes", "2T"}),
                        ErrorCode::kUsage);
}

}  // namespace
}  // namespace sluice::cli
