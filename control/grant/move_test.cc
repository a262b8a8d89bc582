// SPDX-License-Identifier: Apache-2.0
#include "control/grant/move.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <functional>

#include "control/grant/grant.h"
#include "control/grant/nodes_for_test.h"
#include "control/identity/sha256.h"
#include "control/identity/signature.h"

namespace sluice::grant {
namespace {

constexpr int64_t kMovedAt = 1'800'000'000 * kSecondNs;
const std::string kMovedId(32, 'c');

// Alpha has begun a session with beta, and gives it to gamma. Each trusts the others.
class MoveTest : public NodesTest {
 protected:
  MoveTest()
      : NodesTest({"alpha", "beta", "gamma", "other"}), trust_(std::make_shared<identity::Trust>(trust())) {}

  const identity::Identity& alpha() const { return node(0); }
  const identity::Identity& beta() const { return node(1); }
  const identity::Identity& gamma() const { return node(2); }
  const identity::Identity& other() const { return node(3); }
  identity::Standing at(const identity::Identity& self) const {
    return {.self = std::make_shared<identity::Identity>(self), .trust = trust_};
  }
  Move move() const {
    return {.session = kMovedId,
            .from = alpha().fingerprint,
            .to = gamma().fingerprint,
            .peer = beta().fingerprint,
            .epoch = 3,
            .not_before_unix_ns = kMovedAt,
            .end_by_unix_ns = kMovedAt + 3600 * kSecondNs,
            .content_sha256 = identity::sha256_of("rows")};
  }
  transfer::SignedMove signed_move(const std::function<void(Move&)>& change = [](Move&) {}) const {
    Move is = move();
    change(is);
    const auto made = sign(alpha(), is);
    EXPECT_TRUE(made) << made.error().message;
    return *made;
  }
  void expect_refused(const Result<MoveShown>& shown, const std::string& word,
                      ErrorCode code = ErrorCode::kPeerUntrusted) const {
    ASSERT_FALSE(shown) << word;
    EXPECT_EQ(shown.error().code, code) << shown.error().message;
    EXPECT_NE(shown.error().message.find(word), std::string::npos) << shown.error().message;
  }
  Result<MoveShown> shown(const transfer::SignedMove& move, int64_t now = kMovedAt) const {
    return check_shown(move, kMovedId, peer(gamma()), at(beta()), now);
  }

  std::shared_ptr<identity::Trust> trust_;
};

TEST_F(MoveTest, IsTakenByTheOtherNodeAndByThePeer) {
  for (const auto& taken : {shown(signed_move()), check_taken(signed_move(), at(gamma()), kMovedAt)}) {
    ASSERT_TRUE(taken) << taken.error().message;
    EXPECT_EQ(taken->from.name, "alpha");
    EXPECT_EQ(taken->move.epoch, 3U);
    EXPECT_EQ(taken->move.content_sha256, identity::sha256_of("rows"));
  }
}

TEST_F(MoveTest, IsForItsHolderItsPeerAndItsSessionAlone) {
  const transfer::SignedMove move = signed_move();
  expect_refused(check_shown(move, kMovedId, peer(other()), at(beta()), kMovedAt),
                 "other shows a move that alpha gave to another node");
  expect_refused(check_shown(move, kMovedId, peer(alpha()), at(beta()), kMovedAt), "another node");
  expect_refused(check_shown(move, kMovedId, peer(gamma()), at(other()), kMovedAt),
                 "a session with another node");
  expect_refused(check_shown(move, std::string(32, 'd'), peer(gamma()), at(beta()), kMovedAt),
                 "another session");
  expect_refused(check_taken(move, at(other()), kMovedAt), "exported to another node");
  expect_refused(check_taken(move, at(alpha()), kMovedAt), "--withdraw");
}

TEST_F(MoveTest, HasItsTimes) {
  EXPECT_TRUE(shown(signed_move(), kMovedAt - kClocksApartNs));
  expect_refused(shown(signed_move(), kMovedAt - kClocksApartNs - 1), "counts from");
  EXPECT_TRUE(shown(signed_move(), kMovedAt + 3600 * kSecondNs + kClocksApartNs));
  expect_refused(shown(signed_move(), kMovedAt + 3600 * kSecondNs + kClocksApartNs + 1), "was to be used by");
}

TEST_F(MoveTest, OfANodeThatNobodyTrustsIsRefused) {
  auto there = at(beta());
  there.trust = std::make_shared<identity::Trust>(std::vector{peer(gamma())});
  expect_refused(check_shown(signed_move(), kMovedId, peer(gamma()), there, kMovedAt), "does not trust");
}

TEST_F(MoveTest, ThatSomebodyChangedOrForgedIsRefused) {
  transfer::SignedMove changed = signed_move();
  changed.move[changed.move.size() / 2] ^= 1;
  expect_refused(shown(changed), "forged or damaged", ErrorCode::kIntegrity);
  transfer::SignedMove other_signs = *sign(other(), move());
  expect_refused(shown(other_signs), "another node than it says", ErrorCode::kIntegrity);
  transfer::SignedMove other_certificate = signed_move();
  other_certificate.certificate = other().certificate_pem;
  expect_refused(shown(other_certificate), "forged or damaged", ErrorCode::kIntegrity);
  transfer::SignedMove none = signed_move();
  none.certificate = "none";
  expect_refused(shown(none), "without a certificate", ErrorCode::kIncompatible);
  none = signed_move();
  none.certificate.resize(transfer::kMoveBytesMax);
  expect_refused(shown(none), "too long", ErrorCode::kIncompatible);
  // A signature under another purpose makes no move.
  const std::string text = encode(move());
  const transfer::SignedMove elsewhere{.move = text,
                                       .signature = *identity::sign(alpha(), std::string(kPurpose) + text),
                                       .certificate = alpha().certificate_pem};
  expect_refused(shown(elsewhere), "forged or damaged", ErrorCode::kIntegrity);
}

TEST_F(MoveTest, ThatCannotBeIsNone) {
  const std::vector<std::function<void(Move&)>> wrong = {
      [](Move& is) { is.epoch = 0; },
      [](Move& is) { is.epoch = kMoveEpochMax + 1; },
      [](Move& is) { is.to = "gamma"; },
      [](Move& is) { is.peer.pop_back(); },
      [](Move& is) { is.content_sha256.pop_back(); },
      [](Move& is) { is.end_by_unix_ns = is.not_before_unix_ns - 1; },
      [](Move& is) { is.not_before_unix_ns = -1; },
      [](Move& is) { is.end_by_unix_ns = is.not_before_unix_ns + kEndWithinNs + kClocksApartNs + 1; },
  };
  for (const auto& change : wrong)
    expect_refused(shown(signed_move(change)), "is none", ErrorCode::kIncompatible);
  EXPECT_FALSE(decode_move(encode(move()) + "\x78\x01")) << "a field that is not known may be a bound";
  EXPECT_FALSE(decode_move("\xff"));
}

}  // namespace
}  // namespace sluice::grant
