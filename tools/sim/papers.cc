// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/papers.h"

#include <memory>
#include <vector>

#include "control/identity/certificate.h"
#include "control/identity/signature.h"
#include "dataplane/base/check.h"

namespace sluice::sim {
namespace {

struct Keys {
  identity::KeyPair pair;
  std::string fingerprint;
};

Keys make_keys(const std::string& name) {
  Result<identity::KeyPair> pair = identity::make_key_pair({.name = name});
  CHECK(pair, "a key can be made");
  const Result<std::string> fingerprint = identity::fingerprint_of_pem(pair->certificate_pem);
  CHECK(fingerprint, "its certificate can be read");
  return {.pair = std::move(*pair), .fingerprint = *fingerprint};
}

// Of the nodes, and of who orders, the last.
const std::vector<Keys>& all_keys() {
  static const std::vector<Keys> keys = [] {
    std::vector<Keys> made;
    for (const char* const name : kNodeNames) made.push_back(make_keys(name));
    made.push_back(make_keys("home"));
    return made;
  }();
  return keys;
}

identity::Peer peer_of(const std::string& name, const Keys& keys) {
  return {.name = name,
          .address = name + ":7400",
          .fingerprint = keys.fingerprint,
          .certificate_pem = keys.pair.certificate_pem};
}

}  // namespace

Papers make_papers(const std::string& session, const std::string& destination, int64_t unix_ns) {
  const std::vector<Keys>& keys = all_keys();
  Papers papers;
  std::vector<identity::Peer> all;
  for (uint32_t node = 0; node < kNodesMax; ++node) {
    papers.peers[node] = peer_of(node_name(node), keys[node]);
    all.push_back(papers.peers[node]);
  }
  all.push_back(peer_of("home", keys.back()));
  const auto trust = std::make_shared<const identity::Trust>(all);
  for (uint32_t node = 0; node < kNodesMax; ++node) {
    papers.standing[node] = {.self = std::make_shared<const identity::Identity>(
                                 identity::Identity{.name = node_name(node),
                                                    .certificate_pem = keys[node].pair.certificate_pem,
                                                    .fingerprint = keys[node].fingerprint}),
                             .trust = trust};
  }
  papers.grant = {.id = session,
                  .issuer = keys.back().fingerprint,
                  .holder = keys[kSource].fingerprint,
                  .destination = keys[kDestination].fingerprint,
                  .sources_sha256 = grant::digest_of({"f"}),
                  .path = destination,
                  .not_before_unix_ns = unix_ns,
                  .start_by_unix_ns = unix_ns + grant::kStartWithinNs,
                  .end_by_unix_ns = unix_ns + Papers::kEndsAfterNs};
  transfer::SignedGrant made{
      .grant = grant::encode(papers.grant), .signature = {}, .certificate = keys.back().pair.certificate_pem};
  const Result<identity::KeyPointer> key = identity::parse_key(keys.back().pair.key_pem);
  CHECK(key, "a key that was made can be read");
  const Result<std::string> signature =
      identity::sign_with(key->get(), std::string(grant::kPurpose) + made.grant);
  CHECK(signature, "a grant can be signed");
  made.signature = *signature;
  papers.granted = {.grant = std::move(made),
                    .issuer = "home",
                    .path = destination,
                    .end_by_unix_ns = papers.grant.end_by_unix_ns};
  return papers;
}

}  // namespace sluice::sim
