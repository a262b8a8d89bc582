// SPDX-License-Identifier: Apache-2.0
#include "control/grant/grant.h"

#include <fmt/format.h>

#include "control/grant/parties.h"
#include "control/grant/signer.h"
#include "control/identity/sha256.h"
#include "control/identity/signature.h"
#include "control/peer/codec.h"
#include "control/proto/orders.pb.h"
#include "dataplane/base/config/config.h"
#include "dataplane/base/text.h"
#include "dataplane/base/utc.h"

namespace sluice::grant {
namespace {

constexpr size_t kShownPathBytes = 64;
constexpr size_t kDigestBytes = 32;
constexpr int64_t kLatestUnixNs = 1LL << 62;

std::string signed_text(const std::string& grant) { return std::string(kPurpose) + grant; }

Error no_grant(std::string_view what) {
  return {ErrorCode::kIncompatible,
          fmt::format("the peer shows a grant that is none ({}): run one version on all three nodes", what)};
}

Error refused(std::string message) { return {ErrorCode::kPeerUntrusted, std::move(message)}; }

// None of them is so large that a sum of it and a span would not fit.
bool good_times(const Grant& is) {
  const int64_t start = is.not_before_unix_ns;
  if (start < 0 || start > kLatestUnixNs || is.start_by_unix_ns < start ||
      is.end_by_unix_ns < is.start_by_unix_ns)
    return false;
  return is.start_by_unix_ns - start <= kStartWithinNs + kClocksApartNs &&
         is.end_by_unix_ns - start <= kEndWithinNs + kClocksApartNs;
}

Result<identity::Peer> judge_issuer(const Signed& shown, const identity::Trust& trust, int64_t now_unix_ns) {
  Result<identity::Peer> issuer = judge_certificate(shown.certificate_pem, trust, now_unix_ns);
  if (issuer) return issuer;
  return refused(
      fmt::format("this node does not trust the node that ordered the transfer (key {}): {}; 'sluice node "
                  "trust' lets it in",
                  shown.grant.issuer.substr(0, 16), issuer.error().message));
}

Status check_times(const Grant& grant, const Showing& showing) {
  const int64_t now = showing.now_unix_ns;
  if (now + kClocksApartNs < grant.not_before_unix_ns)
    return refused(
        fmt::format("the grant of this transfer counts from {}, and it is {} at this node: compare the "
                    "clocks of the three nodes",
                    base::utc_text(grant.not_before_unix_ns), base::utc_text(now)));
  if (now - kClocksApartNs > grant.end_by_unix_ns)
    return refused(fmt::format("the grant of this transfer ended at {}: order it again",
                               base::utc_text(grant.end_by_unix_ns)));
  if (!showing.known && now - kClocksApartNs > grant.start_by_unix_ns)
    return refused(
        fmt::format("the grant of this transfer was to be used by {}, and it is {} at this node: order it "
                    "again, and compare the "
                    "clocks of the three nodes",
                    base::utc_text(grant.start_by_unix_ns), base::utc_text(now)));
  return {};
}

Status check_parties(const Grant& grant, const identity::Peer& issuer, const Showing& showing) {
  if (grant.id != showing.session_id)
    return refused("the grant is for another session: order the transfer again");
  if (showing.by_issuer) {
    if (issuer.name != showing.shown_by.name)
      return refused(fmt::format("{} orders a transfer for {}: a node takes orders of whom they are for",
                                 showing.shown_by.name, issuer.name));
    // By its name the issuer has called this node, so that is whom it means.
    if (!grant.holder.starts_with(kByAuthority) && !is_self(grant.holder, showing.self, issuer))
      return refused("the order is for another node: it names a key that is not that of this node");
    return {};
  }
  if (!is_party(grant.holder, showing.shown_by, issuer))
    return refused(
        fmt::format("{} shows a grant that {} gave to another node", showing.shown_by.name, issuer.name));
  if (!is_self(grant.destination, showing.self, issuer))
    return refused("the grant is for another destination: it names a key that is not that of this node");
  return {};
}

}  // namespace

std::string digest_of(const std::vector<std::string>& source_paths) {
  std::string text;
  for (const std::string& path : source_paths) text += path + '\0';
  return identity::sha256_of(text);
}

std::string encode(const Grant& grant) {
  peer::Grant to;
  to.set_id(peer::session_id_bytes(grant.id));
  to.set_issuer(grant.issuer);
  to.set_holder(grant.holder);
  to.set_destination(grant.destination);
  to.set_sources_sha256(grant.sources_sha256);
  to.set_path(grant.path);
  to.set_overwrite(grant.overwrite);
  to.set_bytes_max(grant.bytes_max);
  to.set_not_before_unix_ns(grant.not_before_unix_ns);
  to.set_start_by_unix_ns(grant.start_by_unix_ns);
  to.set_end_by_unix_ns(grant.end_by_unix_ns);
  return to.SerializeAsString();
}

Result<Grant> decode(const std::string& bytes) {
  peer::Grant from;
  if (!from.ParseFromString(bytes)) return no_grant("its bytes are no message");
  // A field that this version does not know may be a bound.
  if (!from.GetReflection()->GetUnknownFields(from).empty())
    return no_grant("it says more than is known here");
  Grant is{.id = peer::session_id_text(from.id()),
           .issuer = from.issuer(),
           .holder = from.holder(),
           .destination = from.destination(),
           .sources_sha256 = from.sources_sha256(),
           .path = from.path(),
           .overwrite = from.overwrite(),
           .bytes_max = from.bytes_max(),
           .not_before_unix_ns = from.not_before_unix_ns(),
           .start_by_unix_ns = from.start_by_unix_ns(),
           .end_by_unix_ns = from.end_by_unix_ns()};
  if (is.id.empty() || is.sources_sha256.size() != kDigestBytes || is.path.empty())
    return no_grant("parts are missing");
  if (is.path.size() > transfer::kGrantPathBytesMax) return no_grant("its path is too long");
  if (!is_party(is.holder) || !is_party(is.destination)) return no_grant("it names no nodes");
  if (!good_times(is)) return no_grant("its times");
  return is;
}

Result<transfer::SignedGrant> sign(const identity::Identity& self, const Grant& grant) {
  if (grant.path.size() > transfer::kGrantPathBytesMax)
    return Error{
        ErrorCode::kUsage,
        fmt::format("{}: a destination of {} bytes; of a transfer between two other nodes it has at most {}",
                    base::printable(grant.path, kShownPathBytes), grant.path.size(),
                    transfer::kGrantPathBytesMax)};
  transfer::SignedGrant made{.grant = encode(grant), .signature = {}, .certificate = self.certificate_pem};
  Result<std::string> signature = identity::sign(self, signed_text(made.grant));
  if (!signature) return signature.error();
  made.signature = std::move(*signature);
  if (made.bytes() <= transfer::kGrantBytesMax) return made;
  return Error{
      ErrorCode::kUsage,
      fmt::format("the grant would have {} bytes, with this node's certificate: at most {} are possible; "
                  "give a shorter path",
                  made.bytes(), transfer::kGrantBytesMax)};
}

Result<Signed> read(const transfer::SignedGrant& grant) {
  if (grant.bytes() > transfer::kGrantBytesMax) return no_grant("it is too long");
  const Result<std::string> signer = signer_of(
      {.text = signed_text(grant.grant), .signature = grant.signature, .certificate_pem = grant.certificate},
      "the grant of this transfer", no_grant);
  if (!signer) return signer.error();
  Result<Grant> is = decode(grant.grant);
  if (!is) return is.error();
  if (is->issuer != *signer)
    return Error{ErrorCode::kIntegrity, "the grant of this transfer was signed by another node than it says"};
  return Signed{.grant = std::move(*is), .certificate_pem = grant.certificate};
}

Result<transfer::Granted> check(const transfer::SignedGrant& grant, const Showing& showing,
                                const identity::Trust& trust) {
  const Result<Signed> shown = read(grant);
  if (!shown) return shown.error();
  const Result<identity::Peer> issuer = judge_issuer(*shown, trust, showing.now_unix_ns);
  if (!issuer) return issuer.error();
  if (const Status status = check_parties(shown->grant, *issuer, showing); !status) return status.error();
  if (const Status status = check_times(shown->grant, showing); !status) return status.error();
  return transfer::Granted{.grant = grant,
                           .issuer = issuer->name,
                           .path = shown->grant.path,
                           .overwrite = shown->grant.overwrite,
                           .bytes_max = shown->grant.bytes_max,
                           .end_by_unix_ns = shown->grant.end_by_unix_ns};
}

Status check_still(const transfer::Granted& granted, const identity::Trust& trust, int64_t now_unix_ns) {
  if (now_unix_ns - kClocksApartNs > granted.end_by_unix_ns)
    return refused(fmt::format("the grant of {} ended at {}: order the transfer again", granted.issuer,
                               base::utc_text(granted.end_by_unix_ns)));
  const Result<Signed> shown = read(granted.grant);
  if (!shown) return shown.error();
  const Result<identity::Peer> issuer = judge_issuer(*shown, trust, now_unix_ns);
  if (issuer) return {};
  return refused(fmt::format("{} has ordered this transfer, and {}", granted.issuer, issuer.error().message));
}

}  // namespace sluice::grant
