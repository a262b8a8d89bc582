// A certificate authority whom an operator has named: whoever shows a certificate of it is the peer that the
// certificate names.
//
// A name is one DNS name of subjectAltName: LABEL, or with a domain LABEL.DOMAIN; the label is the peer.
// Common names count for nothing, since no name constraint holds them; nor do URIs, which DNS constraints do
// not hold.
//
// Immutable; any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "control/identity/certificate.h"

namespace sluice::identity {

// What the other side of a handshake showed.
struct Shown {
  X509* certificate = nullptr;
  STACK_OF(X509) * others = nullptr;  // what it sent with it, in no certain order
  int purpose = 0;                    // X509_PURPOSE_*: what it does here; 0: any
  bool dates = true;                  // ends of validity count
};

inline constexpr int64_t kWarningS = 30 * 86'400;  // so long before an end operators are told of it

// For how long something holds.
struct Expiry {
  std::string kind;  // "own", "peer", "ca", "crl"
  std::string name;
  int64_t unix_s = kNoEnd;
};

// "the certificate of peer beta"
std::string name_of(const Expiry& expiry);

class Authority {
 public:
  static constexpr size_t kCertificatesMax = 4;  // for the time in which one follows the other

  // kConfiguration: no file, an empty one, one that others may write, more than that many, or one that is no
  // CA. `crl_file` may be empty: nothing is revoked by a list.
  static Result<std::shared_ptr<const Authority>> load(const std::filesystem::path& ca_file,
                                                       const std::filesystem::path& crl_file,
                                                       const std::string& domain);
  // The name of the peer. kPeerUntrusted, with the reason: not of this authority, out of date, revoked, not
  // within its name constraints, or without a name that can be one of a peer.
  Result<std::string> judge(const Shown& shown) const;
  const std::vector<Expiry>& expiries() const { return expiries_; }

 private:
  Authority() = default;
  Status take(const std::string& text, const std::filesystem::path& file);
  Status take_list(const std::string& text, const std::filesystem::path& file);
  Result<std::string> name_in(X509* certificate) const;

  std::unique_ptr<X509_STORE, OpensslDeleter> store_;
  std::string domain_;
  unsigned long flags_ = 0;
  std::vector<Expiry> expiries_;
};

}  // namespace sluice::identity
