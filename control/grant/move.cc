// SPDX-License-Identifier: Apache-2.0
#include "control/grant/move.h"

#include <fmt/format.h>

#include "control/grant/grant.h"
#include "control/grant/parties.h"
#include "control/grant/signer.h"
#include "control/identity/signature.h"
#include "control/peer/codec.h"
#include "control/proto/moves.pb.h"
#include "dataplane/base/utc.h"

namespace sluice::grant {
namespace {

constexpr size_t kSha256Bytes = 32;
constexpr int64_t kMoveLatestUnixNs = 1LL << 62;

std::string text_of_move(const std::string& move) { return std::string(kMovePurpose) + move; }

Error no_move(std::string_view what) {
  return {
      ErrorCode::kIncompatible,
      fmt::format("the move of this session is none ({}): export the session again, with one version on all "
                  "nodes",
                  what)};
}

Error not_moved(std::string message) { return {ErrorCode::kPeerUntrusted, std::move(message)}; }

bool good_times(const Move& is) {
  return is.not_before_unix_ns >= 0 && is.end_by_unix_ns <= kMoveLatestUnixNs &&
         is.not_before_unix_ns <= is.end_by_unix_ns &&
         is.end_by_unix_ns - is.not_before_unix_ns <= kEndWithinNs + kClocksApartNs;
}

Status check_times(const Move& move, int64_t now_unix_ns) {
  if (now_unix_ns + kClocksApartNs < move.not_before_unix_ns)
    return not_moved(
        fmt::format("the move of this session counts from {}, and it is {} at this node: compare "
                    "the clocks of the nodes",
                    base::utc_text(move.not_before_unix_ns), base::utc_text(now_unix_ns)));
  if (now_unix_ns - kClocksApartNs > move.end_by_unix_ns)
    return not_moved(
        fmt::format("the move of this session was to be used by {}: withdraw it at the node that "
                    "exported the session, and export it again",
                    base::utc_text(move.end_by_unix_ns)));
  return {};
}

// This node reads a move only if it trusts whoever signed it.
Result<MoveShown> signed_by_trusted(const transfer::SignedMove& move, const identity::Standing& here,
                                    int64_t now_unix_ns) {
  Result<SignedBy> shown = read(move);
  if (!shown) return shown.error();
  if (shown->move.from == here.self->fingerprint)
    return not_moved(
        fmt::format("this node itself has exported the session; to take it back: sluice session export {} "
                    "--withdraw",
                    shown->move.session.substr(0, 8)));
  Result<identity::Peer> from = judge_certificate(shown->certificate_pem, *here.trust, now_unix_ns);
  if (from) return MoveShown{.move = std::move(shown->move), .from = std::move(*from)};
  return not_moved(
      fmt::format("this node does not trust the node that exported the session (key {}): {}; "
                  "'sluice node trust' lets it in",
                  shown->move.from.substr(0, 16), from.error().message));
}

}  // namespace

std::string encode(const Move& move) {
  peer::Move to;
  to.set_session_id(peer::session_id_bytes(move.session));
  to.set_from(move.from);
  to.set_to(move.to);
  to.set_peer(move.peer);
  to.set_epoch(move.epoch);
  to.set_not_before_unix_ns(move.not_before_unix_ns);
  to.set_end_by_unix_ns(move.end_by_unix_ns);
  to.set_content_sha256(move.content_sha256);
  return to.SerializeAsString();
}

Result<Move> decode_move(const std::string& bytes) {
  peer::Move from;
  if (!from.ParseFromString(bytes)) return no_move("its bytes are no message");
  // A field that this version does not know may be a bound.
  if (!from.GetReflection()->GetUnknownFields(from).empty())
    return no_move("it says more than is known here");
  Move is{.session = peer::session_id_text(from.session_id()),
          .from = from.from(),
          .to = from.to(),
          .peer = from.peer(),
          .epoch = from.epoch(),
          .not_before_unix_ns = from.not_before_unix_ns(),
          .end_by_unix_ns = from.end_by_unix_ns(),
          .content_sha256 = from.content_sha256()};
  if (is.session.empty()) return no_move("it names no session");
  if (!is_party(is.to) || !is_party(is.peer)) return no_move("it names no nodes");
  if (is.epoch == 0 || is.epoch > kMoveEpochMax) return no_move("its epoch");
  if (!is.content_sha256.empty() && is.content_sha256.size() != kSha256Bytes) return no_move("its digest");
  if (!good_times(is)) return no_move("its times");
  return is;
}

Result<transfer::SignedMove> sign(const identity::Identity& self, const Move& move) {
  transfer::SignedMove made{.move = encode(move), .signature = {}, .certificate = self.certificate_pem};
  Result<std::string> signature = identity::sign(self, text_of_move(made.move));
  if (!signature) return signature.error();
  made.signature = std::move(*signature);
  if (made.bytes() <= transfer::kMoveBytesMax) return made;
  return Error{
      ErrorCode::kConfiguration,
      fmt::format("the move would have {} bytes with this node's certificate: at most {} are possible; "
                  "use a smaller certificate",
                  made.bytes(), transfer::kMoveBytesMax)};
}

Result<SignedBy> read(const transfer::SignedMove& move) {
  if (move.bytes() > transfer::kMoveBytesMax) return no_move("it is too long");
  const Result<std::string> signer = signer_of(
      {.text = text_of_move(move.move), .signature = move.signature, .certificate_pem = move.certificate},
      "the move of this session", no_move);
  if (!signer) return signer.error();
  Result<Move> is = decode_move(move.move);
  if (!is) return is.error();
  if (is->from != *signer)
    return Error{ErrorCode::kIntegrity, "the move of this session was signed by another node than it says"};
  return SignedBy{.move = std::move(*is), .certificate_pem = move.certificate};
}

Result<MoveShown> check_shown(const transfer::SignedMove& move, const std::string& session,
                              const identity::Peer& shown_by, const identity::Standing& here,
                              int64_t now_unix_ns) {
  Result<MoveShown> shown = signed_by_trusted(move, here, now_unix_ns);
  if (!shown) return shown;
  if (shown->move.session != session) return not_moved("the move is for another session: export this one");
  if (!is_party(shown->move.to, shown_by, shown->from))
    return not_moved(
        fmt::format("{} shows a move that {} gave to another node", shown_by.name, shown->from.name));
  if (!is_self(shown->move.peer, *here.self, shown->from))
    return not_moved(
        "the move is for a session with another node: it names a key that is not that of this node");
  if (const Status status = check_times(shown->move, now_unix_ns); !status) return status.error();
  return shown;
}

Result<MoveShown> check_taken(const transfer::SignedMove& move, const identity::Standing& here,
                              int64_t now_unix_ns) {
  Result<MoveShown> shown = signed_by_trusted(move, here, now_unix_ns);
  if (!shown) return shown;
  if (!is_self(shown->move.to, *here.self, shown->from))
    return not_moved(
        "the session was exported to another node: it names a key that is not that of this node");
  if (const Status status = check_times(shown->move, now_unix_ns); !status) return status.error();
  return shown;
}

}  // namespace sluice::grant
