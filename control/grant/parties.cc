// SPDX-License-Identifier: Apache-2.0
#include "control/grant/parties.h"

#include <fmt/format.h>

#include "control/grant/grant.h"
#include "control/identity/certificate.h"
#include "control/identity/hex.h"
#include "dataplane/base/config/config.h"

namespace sluice::grant {

bool is_party(const std::string& text) {
  if (text.starts_with(kByAuthority)) return config::valid_node_name(text.substr(kByAuthority.size()));
  return identity::is_fingerprint(text);
}

bool is_party(const std::string& party, const identity::Peer& peer, const identity::Peer& signer) {
  if (party.starts_with(kByAuthority))
    return signer.by_authority && peer.by_authority && party == party_of(peer);
  return party == peer.fingerprint || party == peer.former_fingerprint;
}

bool is_self(const std::string& party, const identity::Identity& self, const identity::Peer& signer) {
  if (party.starts_with(kByAuthority))
    return signer.by_authority && party == std::string(kByAuthority) + self.name;
  return party == self.fingerprint;
}

std::string party_of(const identity::Peer& peer) {
  return peer.by_authority ? std::string(kByAuthority) + peer.name : peer.fingerprint;
}

Result<std::string> find_party(const std::string& party, const identity::Trust& trust) {
  if (party.starts_with(kByAuthority)) {
    const Result<identity::Peer> peer = trust.find(party.substr(kByAuthority.size()));
    if (!peer) return peer.error();
    if (peer->by_authority) return peer->name;
    return Error{
        ErrorCode::kPeerUntrusted,
        fmt::format("the order names {} as an authority does, and this node has pinned another node under "
                    "that name: rename one of the two",
                    peer->name)};
  }
  for (const identity::Peer& peer : trust.pinned()) {
    if (party == peer.fingerprint || party == peer.former_fingerprint) return peer.name;
  }
  return Error{
      ErrorCode::kPeerUntrusted,
      fmt::format("this node does not know the destination of the order (key {}): exchange identities of "
                  "both with 'sluice node trust'",
                  party.substr(0, 16))};
}

Result<identity::Peer> judge_certificate(const std::string& certificate_pem, const identity::Trust& trust,
                                         int64_t now_unix_ns) {
  const Result<identity::CertificatePointer> certificate = identity::parse_certificate(certificate_pem);
  if (!certificate) return certificate.error();
  return trust.judge({.certificate = certificate->get()}, now_unix_ns / kSecondNs);
}

}  // namespace sluice::grant
