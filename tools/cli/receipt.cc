// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/receipt.h"

#include <sys/stat.h>

#include "control/identity/rotation.h"
#include "control/identity/signature.h"
#include "control/proto/session_state.h"
#include "dataplane/base/utc.h"
#include "tools/cli/format.h"
#include "tools/cli/progress.h"

namespace sluice::cli {
namespace {

constexpr std::string_view kSchema = "sluice.receipt.v1";
constexpr std::string_view kPurpose = "sluice receipt v1\n";  // before the statement, in what is signed
constexpr int64_t kStatSecondNs = 1'000'000'000;              // of a timespec

Error no_receipt() {
  return {ErrorCode::kUsage, "this is no receipt; give what 'sluice receipt ID' has printed, as it is"};
}

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
               file.string() + ": was written after session " + session.id().substr(0, kShortIdBytes) +
                   " began: whether the key of " + (name.empty() ? "this node" : name) +
                   " was this one nobody can say, so there is no receipt"};
}

// Of one of the two: the key that signs, or is pinned, and the one that it had then, if that was another.
api::Json party(const std::string& name, const std::string& fingerprint, const std::string& then) {
  api::Json said = {{"name", name}, {"fingerprint", fingerprint}};
  if (then != fingerprint) said["fingerprint_then"] = then;
  return said;
}

api::Json statement_of(const api::Session& session, api::Json self, api::Json peer) {
  api::Json files = api::Json::array();
  for (const api::FileProgress& file : session.files())
    files.push_back({{"source", file.source()},
                     {"destination", file.destination()},
                     {"bytes", file.size()},
                     {"names", file.names()},
                     {"digest", file.digest_destination()}});
  return {{"statement", kSchema},
          {"session", session.id()},
          {"direction", session.direction()},
          {"node", std::move(self)},
          {"peer", std::move(peer)},
          {"started", base::utc_text(session.started_unix_ns())},
          {"elapsed_s", session.elapsed_s()},
          {"bytes", session.bytes_total()},
          {"names", {{"total", session.names().total()}, {"done", session.names().done()}}},
          {"crc", session.crc()},
          {"protection", session.protection()},
          {"files", std::move(files)}};
}

}  // namespace

Result<api::Json> make_receipt(const std::filesystem::path& node_directory, const api::Session& session) {
  if (session.state() != api::Session::SUCCEEDED || session.error_code() != 0)
    return Error{ErrorCode::kUsage, "session " + session.id().substr(0, kShortIdBytes) + " is " +
                                        api::state_name(session) +
                                        ": there are receipts of what has succeeded"};
  const Result<identity::Identity> self = identity::load(node_directory);
  if (!self) return self.error();
  const Result<identity::Peer> peer = identity::find_peer(node_directory, session.peer());
  if (!peer) return peer.error();
  const Result<std::string> self_then =
      key_then(node_directory, self->certificate_file, self->fingerprint, "", session);
  if (!self_then) return self_then.error();
  const std::filesystem::path pinned = node_directory / "trusted" / (peer->name + ".pem");
  const Result<std::string> peer_then =
      key_then(node_directory, pinned, peer->fingerprint, peer->name, session);
  if (!peer_then) return peer_then.error();
  const std::string statement = statement_of(session, party(self->name, self->fingerprint, *self_then),
                                             party(peer->name, peer->fingerprint, *peer_then))
                                    .dump(1, ' ', false, api::Json::error_handler_t::replace);
  const Result<std::string> signature = identity::sign(*self, std::string(kPurpose) + statement);
  if (!signature) return signature.error();
  return api::Json{{"schema", kSchema},
                   {"statement", statement},
                   {"signature", *signature},
                   {"certificate", self->certificate_pem}};
}

Result<CheckedReceipt> check_receipt(std::string_view text) {
  const api::Json receipt = api::Json::parse(text, nullptr, false);
  if (!receipt.is_object() || receipt.value("schema", api::Json()) != kSchema) return no_receipt();
  for (const char* key : {"statement", "signature", "certificate"}) {
    if (!receipt.contains(key) || !receipt[key].is_string()) return no_receipt();
  }
  const auto statement = receipt["statement"].get<std::string>();
  const auto certificate = receipt["certificate"].get<std::string>();
  const Result<std::string> signer = identity::fingerprint_of_pem(certificate);
  if (!signer) return no_receipt();
  if (Status status = identity::check_signature(certificate, std::string(kPurpose) + statement,
                                                receipt["signature"].get<std::string>());
      !status)
    return Error{status.error().code, "the receipt was changed: " + status.error().message};
  api::Json said = api::Json::parse(statement, nullptr, false);
  const bool fits = said.is_object() && said.contains("node") && said["node"].is_object() &&
                    said["node"].value("fingerprint", api::Json()) == *signer;
  if (!fits)
    return Error{ErrorCode::kIntegrity,
                 "the receipt was signed by another key than that of the node it names"};
  return CheckedReceipt{.statement = std::move(said), .signer = *signer};
}

}  // namespace sluice::cli
