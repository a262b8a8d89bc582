// Grants: what a node signs so that two others move data for it (docs/WIRE.md, 2.13; decision 19).
//
// A grant is no bearer token: it names the one node that may show it, which proves by the key of its
// connection that it is that node. Nobody makes its bytes anew: they are checked and handed on as they were
// signed. Cold; any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "control/identity/trust.h"
#include "control/words/orders.h"
#include "dataplane/base/error.h"

namespace sluice::grant {

inline constexpr std::string_view kPurpose = "sluice grant v1\n";  // before the grant, in what is signed
inline constexpr int64_t kSecondNs = 1'000'000'000;
inline constexpr int64_t kStartWithinNs =
    300 * kSecondNs;  // a session begins within this, or asks for a new grant
inline constexpr int64_t kClocksApartNs = 60 * kSecondNs;  // two nodes' clocks may differ by so much
inline constexpr int64_t kEndWithinNs = 30LL * 86400 * kSecondNs;

struct Grant {
  std::string id;      // 32 hex digits: the session's
  std::string issuer;  // a fingerprint, as identity::Peer has it
  std::string holder;  // the source, by party_of()
  std::string destination;
  std::string sources_sha256;  // 32 bytes
  std::string path;
  bool overwrite = false;
  uint64_t bytes_max = 0;  // 0: no bound
  int64_t not_before_unix_ns = 0;
  int64_t start_by_unix_ns = 0;
  int64_t end_by_unix_ns = 0;
};

// What a grant says of the paths at the source.
std::string digest_of(const std::vector<std::string>& source_paths);

// The bytes that are signed, and what they mean. kIncompatible: they are no grant, or one of times that
// cannot be.
std::string encode(const Grant& grant);
Result<Grant> decode(const std::string& bytes);

// kUsage: a path that is too long for a grant.
Result<transfer::SignedGrant> sign(const identity::Identity& self, const Grant& grant);

// Reads the signer and the grant, and checks nothing else. kIncompatible: it is no grant. kIntegrity: it was
// not signed so.
struct Signed {
  Grant grant;
  std::string certificate_pem;
};
Result<Signed> read(const transfer::SignedGrant& grant);

// What a node has found out of a call before it believes a grant.
struct Showing {
  std::string session_id;
  identity::Peer shown_by;  // whom the connection is to
  // At the source: who orders, which must be the issuer itself. At the destination: the holder.
  bool by_issuer = false;
  const identity::Identity& self;
  bool known = false;  // the session is: it may have been longer ago that it began
  int64_t now_unix_ns = 0;
};
// kPeerUntrusted: the issuer is nobody whom this node trusts, the grant is for others, or its time is over;
// with the remedy.
Result<transfer::Granted> check(const transfer::SignedGrant& grant, const Showing& showing,
                                const identity::Trust& trust);

// Of one that was found good: may it move data still? kPeerUntrusted: its end has come, or its issuer is
// trusted no more.
Status check_still(const transfer::Granted& granted, const identity::Trust& trust, int64_t now_unix_ns);

// Whom this node knows under that name. kPeerUntrusted: nobody.
Result<std::string> find_party(const std::string& party, const identity::Trust& trust);

// How a grant names a node: by its key, or, where an authority stands for it, by its name there.
std::string party_of(const identity::Peer& peer);

}  // namespace sluice::grant
