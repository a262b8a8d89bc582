// Moves: what a node signs so that another one goes on with a session of its own (docs/WIRE.md 2.15; decision
// 20).
//
// As a grant, it is no bearer token: it names the one node that may show it. Nobody makes its bytes anew.
// Cold; any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "control/identity/trust.h"
#include "control/words/lease.h"
#include "dataplane/base/error.h"

namespace sluice::grant {

inline constexpr std::string_view kMovePurpose = "sluice move v1\n";  // before the move, in what is signed
inline constexpr uint64_t kMoveEpochMax = INT64_MAX;

struct Move {
  std::string session;  // 32 hex digits
  std::string from;     // a fingerprint, as identity::Peer has it
  std::string to;       // by party_of(); it alone may show it
  std::string peer;     // likewise: who is to believe it
  uint64_t epoch = 0;   // from 1 on
  int64_t not_before_unix_ns = 0;
  int64_t end_by_unix_ns = 0;
  std::string content_sha256;  // 32 bytes, or empty
};

// The bytes that are signed, and what they mean. kIncompatible: they are no move, or one that cannot be.
std::string encode(const Move& move);
Result<Move> decode_move(const std::string& bytes);

Result<transfer::SignedMove> sign(const identity::Identity& self, const Move& move);

// Reads the signer and the move, and checks nothing else. kIncompatible: it is no move. kIntegrity: it was
// not signed so.
struct SignedBy {
  Move move;
  std::string certificate_pem;
};
Result<SignedBy> read(const transfer::SignedMove& move);

// At the peer of the session, or at the node that is to go on with it. kPeerUntrusted, with the remedy: the
// signer is nobody whom this node trusts, the move is for others, or its time is over.
struct MoveShown {
  Move move;
  identity::Peer from;
};
Result<MoveShown> check_shown(const transfer::SignedMove& move, const std::string& session,
                              const identity::Peer& shown_by, const identity::Standing& here,
                              int64_t now_unix_ns);
Result<MoveShown> check_taken(const transfer::SignedMove& move, const identity::Standing& here,
                              int64_t now_unix_ns);

}  // namespace sluice::grant
