// Receipts: made of real keys, checked by whoever gets one.
// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/receipt.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "tools/cli/app.h"
#include "tools/cli/receipt_list.h"

namespace sluice::cli {
namespace {

namespace fs = std::filesystem;

class ReceiptTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = "/tmp/sluice-receipt-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    root_ = name;
    for (const char* node : {"alpha", "beta"}) {
      fs::create_directory(root_ / node);
      ASSERT_TRUE(identity::create(root_ / node, node));
      std::ofstream(root_ / node / "node.toml") << "";
    }
    beta_ = identity::load(root_ / "beta")->certificate_pem;
    ASSERT_TRUE(identity::trust(root_ / "alpha", "beta", "beta:1", beta_, false));
    session_.set_id("0123456789abcdef0123456789abcdef");
    session_.set_state(api::Session::SUCCEEDED);
    session_.set_direction("send");
    session_.set_peer("beta");
    session_.set_bytes_total(7);
    session_.set_started_unix_ns(4'000'000'000'000'000'000);  // after the keys were made
    api::FileProgress* const file = session_.add_files();
    file->set_source("in/\xff");
    file->set_size(7);
    file->set_digest_destination("abcd");
  }
  void TearDown() override { fs::remove_all(root_); }

  api::Json made() const {
    const auto receipt = make_receipt(root_ / "alpha", session_);
    EXPECT_TRUE(receipt) << receipt.error().message;
    return receipt ? *receipt : api::Json();
  }
  static ErrorCode code_of(const std::string& text) {
    const auto checked = check_receipt(text);
    return checked ? ErrorCode::kOk : checked.error().code;
  }
  // `sluice receipt --check` by the node of this directory.
  int check(const std::string& node, const api::Json& receipt, const std::vector<std::string>& more = {}) {
    std::ostringstream err;
    std::istringstream in(receipt.dump());
    out_.str("");
    Environment environment{
        .out = out_, .err = err, .working_directory = root_, .default_node = root_ / node, .in = in};
    std::vector<std::string> arguments = {"receipt", "--check", "-"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments, environment);
  }

  fs::path root_;
  std::string beta_;
  api::Session session_;
  std::ostringstream out_;
};

TEST_F(ReceiptTest, SaysWhatWasMovedAndWhoBothAre) {
  const auto checked = check_receipt(made().dump());
  ASSERT_TRUE(checked) << checked.error().message;
  const api::Json& said = checked->statement;
  EXPECT_EQ(said["session"], session_.id());
  EXPECT_EQ(said["node"]["fingerprint"], identity::load(root_ / "alpha")->fingerprint);
  EXPECT_EQ(said["peer"]["fingerprint"], identity::load(root_ / "beta")->fingerprint);
  EXPECT_EQ(said["bytes"], 7);
  EXPECT_EQ(said["files"][0]["digest"], "abcd");
  EXPECT_EQ(said["started"], "2096-10-02T07:06:40Z");
}

TEST_F(ReceiptTest, NamesEachOfSeveralSourcesAndWhatItBrought) {
  fs::create_directory(root_ / "gamma");
  ASSERT_TRUE(identity::create(root_ / "gamma", "gamma"));
  const auto gamma = identity::load(root_ / "gamma");
  ASSERT_TRUE(identity::trust(root_ / "alpha", "gamma", "gamma:1", gamma->certificate_pem, false));
  session_.set_direction("get");
  session_.set_peer("beta, gamma");
  for (const char* peer : {"beta", "gamma"}) session_.add_legs()->set_peer(peer);
  session_.mutable_legs(0)->set_bytes(7);
  const auto checked = check_receipt(made().dump());
  ASSERT_TRUE(checked) << checked.error().message;
  const api::Json& peers = checked->statement["peers"];
  ASSERT_EQ(peers.size(), 2U);
  EXPECT_EQ(peers[0]["name"], "beta");
  EXPECT_EQ(peers[0]["bytes"], 7);
  EXPECT_EQ(peers[1]["fingerprint"], gamma->fingerprint);
  EXPECT_FALSE(checked->statement.contains("peer"));
}

// A receipt of what arrived of a partial session says what did not, and whoever checks it is told by the exit
// code.
TEST_F(ReceiptTest, OfAPartialSessionNamesWhatIsMissing) {
  session_.set_error_code(static_cast<uint32_t>(ErrorCode::kPartial));
  session_.mutable_files(0)->set_done(true);
  session_.add_files()->set_source("in/b");
  session_.mutable_names()->set_failed(1);
  api::MissingName* const other_time = session_.mutable_names()->add_missing();
  other_time->set_path("a");
  other_time->set_arrived(true);
  EXPECT_FALSE(make_receipt(root_ / "alpha", session_)) << "of all";
  EXPECT_FALSE(make_receipt(root_ / "alpha", session_, receipt::Covers::kArrived)) << "it does not name b";
  api::MissingName* const missing = session_.mutable_names()->add_missing();
  missing->set_path("b");
  missing->set_reason("exists");
  EXPECT_FALSE(make_receipt(root_ / "alpha", session_)) << "of all";
  const auto receipt = make_receipt(root_ / "alpha", session_, receipt::Covers::kArrived);
  ASSERT_TRUE(receipt) << receipt.error().message;
  const auto checked = check_receipt(receipt->dump());
  ASSERT_TRUE(checked) << checked.error().message;
  EXPECT_EQ(checked->statement["missing"].dump(), R"([{"name":"b","reason":"exists"}])");
  EXPECT_EQ(checked->statement["files"].size(), 1U);
  EXPECT_EQ(check("alpha", *receipt), static_cast<int>(ErrorCode::kPartial));
  EXPECT_NE(out_.str().find("missing"), std::string::npos) << out_.str();
}

// `--manifest receipt.json`.
TEST_F(ReceiptTest, IsAListOfTheFilesThatTravelledOnTheirOwn) {
  session_.set_crc("crc64");
  session_.mutable_files(0)->set_source("/srv/old/run42/a");
  session_.mutable_files(0)->set_names(1);
  session_.mutable_files(0)->set_digest_destination("0123456789abcdef");
  api::Digest* const digest = session_.mutable_files(0)->add_digests();
  digest->set_kind("sha1");
  digest->set_hex(std::string(40, 'a'));
  api::FileProgress* const pack = session_.add_files();
  pack->set_source("/srv/old/run42");
  pack->set_names(5);
  pack->set_digest_destination("0123456789abcdef");
  api::FileProgress* const broken = session_.add_files();
  broken->set_source("/srv/old/run42/b");
  broken->set_names(1);
  broken->set_digest_destination("no hex");
  const std::string text = made().dump();
  std::ostringstream err;
  std::istringstream in;
  Environment environment{
      .out = out_, .err = err, .working_directory = root_, .default_node = root_ / "beta", .in = in};
  Context context{.environment = environment};
  EXPECT_TRUE(looks_like_receipt(text));
  EXPECT_FALSE(looks_like_receipt("abc  name"));
  const auto stranger = entries_of_receipt(context, text, {"data/run42"});
  ASSERT_FALSE(stranger);
  EXPECT_EQ(stranger.error().code, ErrorCode::kPeerUntrusted);
  const auto alpha = identity::load(root_ / "alpha");
  ASSERT_TRUE(identity::trust(root_ / "beta", "alpha", "alpha:1", alpha->certificate_pem, false));
  const auto entries = entries_of_receipt(context, text, {"data/run42"});
  ASSERT_TRUE(entries) << entries.error().message;
  ASSERT_EQ(entries->size(), 1U) << "a pack has no digest of a name";
  EXPECT_EQ(entries->front().name, "run42/a");
  ASSERT_EQ(entries->front().values.size(), 2U);
  EXPECT_EQ(entries->front().values[0].hex, "0123456789abcdef");
  const auto elsewhere = entries_of_receipt(context, text, {"data/a"});
  ASSERT_TRUE(elsewhere);
  EXPECT_EQ(elsewhere->front().name, "a");
  EXPECT_EQ(entries_of_receipt(context, "{}", {}).error().code, ErrorCode::kUsage);
}

TEST_F(ReceiptTest, WhatWasChangedIsFound) {
  const api::Json good = made();
  const auto changed = [&good](const char* key, const std::string& from, const std::string& to) {
    api::Json receipt = good;
    auto text = receipt[key].get<std::string>();
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos);
    receipt[key] = text.replace(at, from.size(), to);
    return receipt.dump();
  };
  EXPECT_EQ(code_of(changed("statement", "abcd", "abce")), ErrorCode::kIntegrity);
  EXPECT_EQ(code_of(changed("statement", "\n", " ")), ErrorCode::kIntegrity);
  const auto signature = good["signature"].get<std::string>();
  api::Json receipt = good;
  receipt["signature"] = signature.substr(4) + signature.substr(0, 4);
  EXPECT_EQ(code_of(receipt.dump()), ErrorCode::kIntegrity);
  for (const char* bad : {"", "A", "====", "AAAA", "!!!!"}) {
    receipt["signature"] = bad;
    EXPECT_EQ(code_of(receipt.dump()), ErrorCode::kIntegrity) << bad;
  }
  receipt = good;
  receipt["certificate"] = beta_;
  EXPECT_EQ(code_of(receipt.dump()), ErrorCode::kIntegrity) << "of another key";
}

TEST_F(ReceiptTest, NobodySignsForAnother) {
  // Beta signs a statement that names alpha.
  api::Json forged = made();
  const auto by_beta = identity::load(root_ / "beta");
  ASSERT_TRUE(identity::trust(root_ / "beta", "beta2", "x:1",
                              identity::load(root_ / "alpha")->certificate_pem, false));
  session_.set_peer("beta2");
  api::Json own = *make_receipt(root_ / "beta", session_);
  own["statement"] = forged["statement"];
  EXPECT_EQ(code_of(own.dump()), ErrorCode::kIntegrity);
}

TEST_F(ReceiptTest, OtherTextsAreNoReceipts) {
  for (const char* text :
       {"", "{}", "[]", "7", R"({"schema":"sluice.receipt.v1"})", R"({"schema":7})",
        R"({"schema":"sluice.receipt.v1","statement":1,"signature":"","certificate":""})",
        R"({"schema":"sluice.receipt.v1","statement":"","signature":"","certificate":""})"})
    EXPECT_EQ(code_of(text), ErrorCode::kUsage) << text;
}

TEST_F(ReceiptTest, OnlySuccessHasOne) {
  session_.set_state(api::Session::FAILED);
  const auto none = make_receipt(root_ / "alpha", session_);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::kUsage);
}

TEST_F(ReceiptTest, AKeyThatIsYoungerThanTheSessionIsNotTakenForItsKey) {
  session_.set_started_unix_ns(1);
  const auto none = make_receipt(root_ / "alpha", session_);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::kConfiguration);
  EXPECT_EQ(none.error().message.find('\n'), std::string::npos);
}

TEST_F(ReceiptTest, TheCommandKnowsItselfItsPeersAndWhomItWasTold) {
  const api::Json receipt = made();
  EXPECT_EQ(check("alpha", receipt), 0);
  EXPECT_NE(out_.str().find("good: signed by this node, alpha"), std::string::npos) << out_.str();
  EXPECT_EQ(check("beta", receipt), static_cast<int>(ErrorCode::kPeerUntrusted))
      << "a key that it does not know";
  EXPECT_EQ(check("nowhere", receipt), static_cast<int>(ErrorCode::kPeerUntrusted));
  const std::string alpha = identity::load(root_ / "alpha")->fingerprint;
  EXPECT_EQ(check("nowhere", receipt, {"--signer", alpha}), 0);
  EXPECT_EQ(check("nowhere", receipt, {"--signer", (root_ / "alpha/identity/cert.pem").string()}), 0);
  EXPECT_EQ(check("alpha", receipt, {"--signer", identity::load(root_ / "beta")->fingerprint}),
            static_cast<int>(ErrorCode::kPeerUntrusted));
  ASSERT_TRUE(identity::trust(root_ / "beta", "alpha", "a:1",
                              identity::load(root_ / "alpha")->certificate_pem, false));
  EXPECT_EQ(check("beta", receipt), 0);
  EXPECT_NE(out_.str().find("peer alpha"), std::string::npos);
}

}  // namespace
}  // namespace sluice::cli
