// SPDX-License-Identifier: Apache-2.0
#include "control/receipt/receipt.h"

#include <sys/stat.h>

#include <optional>

#include "control/identity/identity.h"
#include "control/identity/rotation.h"
#include "control/identity/signature.h"
#include "control/proto/session_state.h"
#include "dataplane/base/utc.h"

namespace sluice::receipt {
namespace {

constexpr int64_t kStatSecondNs = 1'000'000'000;  // of a timespec
constexpr size_t kIdShown = 8;

// Which key that of `name` (empty: this node) was when the session began. A key that was put there later was
// not it, unless the one before was kept (control/identity/rotation.h).
Result<std::string> key_then(const std::filesystem::path& node, const std::filesystem::path& file,
                             const std::string& now, const std::string& name, const api::Session& session) {
  struct stat info {};
  const bool there = ::stat(file.c_str(), &info) == 0;
  const int64_t written_ns = info.st_mtim.tv_sec * kStatSecondNs + info.st_mtim.tv_nsec;
  if (there && written_ns <= session.started_unix_ns()) return now;
  const auto former = identity::load_former(node);
  if (!former) return former.error();
  std::string then;
  for (const identity::Former& one : *former) {
    if (one.name == name && one.since_unix_ns <= session.started_unix_ns()) then = one.fingerprint;
  }
  if (!then.empty()) return then;
  return Error{ErrorCode::kConfiguration,
               file.string() + ": was written after session " + session.id().substr(0, kIdShown) +
                   " began: whether the key of " + (name.empty() ? "this node" : name) +
                   " was this one nobody can say, so there is no receipt"};
}

// Of one of the two: the key that signs, or is pinned, and the one that it had then, if that was another.
Json party(const std::string& name, const std::string& fingerprint, const std::string& then) {
  Json said = {{"name", name}, {"fingerprint", fingerprint}};
  if (then != fingerprint) said["fingerprint_then"] = then;
  return said;
}

Result<Json> peer_of(const std::filesystem::path& node, const std::string& name,
                     const api::Session& session) {
  const Result<identity::Peer> peer = identity::find_peer(node, name);
  if (!peer) return peer.error();
  const std::filesystem::path pinned = node / "trusted" / (peer->name + ".pem");
  const Result<std::string> then = key_then(node, pinned, peer->fingerprint, peer->name, session);
  if (!then) return then.error();
  return party(peer->name, peer->fingerprint, *then);
}

// Of one peer that. Of several sources each, with what it brought, as far as that is known.
Result<Json> peers_of(const std::filesystem::path& node, const api::Session& session) {
  if (session.legs_size() < 2) return peer_of(node, session.peer(), session);
  Json all = Json::array();
  for (const api::LegProgress& leg : session.legs()) {
    Result<Json> peer = peer_of(node, leg.peer(), session);
    if (!peer) return peer;
    if (leg.bytes() != 0) (*peer)["bytes"] = leg.bytes();
    if (!leg.error().empty()) (*peer)["done_without"] = leg.error();
    all.push_back(std::move(*peer));
  }
  return all;
}

bool is_partial(const api::Session& session) {
  return session.error_code() == static_cast<uint32_t>(ErrorCode::kPartial);
}

// Of the names of a partial session, those that did not arrive, with the reason. Nothing: it does not name
// them all.
std::optional<Json> missing_of(const api::Session& session) {
  Json missing = Json::array();
  for (const api::MissingName& one : session.names().missing()) {
    if (!one.arrived()) missing.push_back({{"name", one.path()}, {"reason", one.reason()}});
  }
  const bool all = missing.size() >= session.names().failed() + session.names().left_out();
  return all ? std::optional(std::move(missing)) : std::nullopt;
}

Json statement_of(const api::Session& session, Json self, Json peers) {
  Json files = Json::array();
  for (const api::FileProgress& file : session.files()) {
    if (is_partial(session) && !file.done()) continue;
    files.push_back({{"source", file.source()},
                     {"destination", file.destination()},
                     {"bytes", file.size()},
                     {"names", file.names()},
                     {"digest", file.digest_destination()}});
    for (const api::Digest& digest : file.digests()) files.back()["digests"][digest.kind()] = digest.hex();
  }
  return {{"statement", kSchema},
          {"session", session.id()},
          {"direction", session.direction()},
          {"ordered_by", session.ordered_by()},
          {"node", std::move(self)},
          {peers.is_array() ? "peers" : "peer", std::move(peers)},
          {"started", base::utc_text(session.started_unix_ns())},
          {"elapsed_s", session.elapsed_s()},
          {"bytes", session.bytes_total()},
          {"names", {{"total", session.names().total()}, {"done", session.names().done()}}},
          {"crc", session.crc()},
          {"protection", session.protection()},
          {"files", std::move(files)}};
}

}  // namespace

Result<Json> make_receipt(const std::filesystem::path& node_directory, const api::Session& session,
                          Covers covers) {
  const bool counts = session.error_code() == 0 || (covers == Covers::kArrived && is_partial(session));
  if (session.state() != api::Session::SUCCEEDED || !counts)
    return Error{ErrorCode::kUsage, "session " + session.id().substr(0, kIdShown) + " is " +
                                        api::state_name(session) +
                                        ": there are receipts of what has succeeded"};
  if (!session.from().empty())
    return Error{ErrorCode::kUsage, "session " + session.id().substr(0, kIdShown) +
                                        ": this node has only ordered it; ask for a receipt at " +
                                        session.from() + " or " + session.peer() + ", under the same id"};
  const std::optional<Json> missing = is_partial(session) ? missing_of(session) : Json::array();
  if (!missing)
    return Error{ErrorCode::kUsage, "session " + session.id().substr(0, kIdShown) +
                                        " does not name all that is missing, so there is no receipt"};
  const Result<identity::Identity> self = identity::load(node_directory);
  if (!self) return self.error();
  Result<Json> peers = peers_of(node_directory, session);
  if (!peers) return peers.error();
  const Result<std::string> self_then =
      key_then(node_directory, self->certificate_file, self->fingerprint, "", session);
  if (!self_then) return self_then.error();
  Json said = statement_of(session, party(self->name, self->fingerprint, *self_then), std::move(*peers));
  if (is_partial(session)) said["missing"] = *missing;
  const std::string statement = said.dump(1, ' ', false, Json::error_handler_t::replace);
  const Result<std::string> signature = identity::sign(*self, std::string(kPurpose) + statement);
  if (!signature) return signature.error();
  return Json{{"schema", kSchema},
              {"statement", statement},
              {"signature", *signature},
              {"certificate", self->certificate_pem}};
}

}  // namespace sluice::receipt
