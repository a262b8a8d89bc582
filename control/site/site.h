// The directory of whoever holds a site's authority: its key, the tokens that it has handed out, the
// certificates that it has signed and those that it has revoked.
//
//   ca.pem            certificates: the one that signs, and those above it up to the root; key.pem (0600)
//   authority.toml    domain = "dtn.example.org"
//   tokens/ID/        rules.toml; uses/FINGERPRINT.pem, what was signed by it; revoked, once it is
//   issued/NAME.pem   the newest certificate of NAME
//   revoked/*.pem     and the list that is made of them, crl.pem
//   audit.ndjson      what was done with all that
//
// First the name is taken (issued/), then the token is used up (uses/), then the newcomer hears of it: a
// crash in between never leaves a token that is good twice, and the same key may ask again at each point. One
// process enrols at a time (lock).
//
// Blocks. Not for several threads at once.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "control/identity/certificate.h"
#include "control/identity/identity.h"
#include "control/site/token.h"
#include "dataplane/base/unique_fd.h"

namespace sluice::site {

struct SiteOptions {
  std::string domain;       // of the names of nodes; may be empty
  std::string name;         // of the authority, for people
  int64_t lifetime_s = 0;   // of its certificate
  std::string ca_pem = {};  // both: of an authority that is there already
  std::string key_pem = {};
};

struct TokenRules {
  std::string public_key;     // 64 hex digits
  std::string pattern = "*";  // of the names that it is for
  int64_t made_unix_s = 0;
  int64_t until_unix_s = 0;
  int64_t uses_max = 1;
  int64_t lifetime_s = 0;  // of the certificates
  bool replaces = false;   // also a name for which another key has a certificate
};
struct TokenUse {
  std::string name;
  std::string fingerprint;
  int64_t unix_s = 0;
};
struct TokenState {
  std::string id;
  TokenRules rules;
  bool revoked = false;
  std::vector<TokenUse> uses;

  // "usable", "used", "expired", "revoked"
  std::string word(int64_t now_unix_s) const;
};

// What one newcomer asks for.
struct Asked {
  Wish wish;
  std::string signature;
  EVP_PKEY* key = nullptr;  // that it has shown, and proved to have
};
struct Enrolled {
  std::string certificate_pem;  // with those between it and the root
  std::string ca_pem;           // the root's
  std::string crl_pem;          // empty: a list would say nothing of those between
  std::string domain;
};

class Site {
 public:
  static constexpr int64_t kLifetimeSMax = 3650LL * 86'400;
  static constexpr int64_t kUsesMax = 100'000;

  // kConfiguration: something is there already, or a key that is not that of its certificate.
  static Status create(const std::filesystem::path& directory, const SiteOptions& options);
  static Result<Site> open(const std::filesystem::path& directory);

  const std::filesystem::path& directory() const { return directory_; }
  const std::string& fingerprint() const { return fingerprint_; }
  const std::string& domain() const { return domain_; }
  const std::string& subject() const { return subject_; }
  // To show it in TLS: the authority's own certificate and key.
  identity::Identity identity() const;
  // kConfiguration: another process enrols for this authority.
  Status lock();

  // `rules` without the public key, which is the token's.
  Result<std::string> add_token(const Token& token, TokenRules rules);
  // The oldest first, and so are their uses.
  Result<std::vector<TokenState>> tokens() const;
  Status revoke_token(const std::string& id);
  // kPeerUntrusted: refused, with a reason that only who has the token hears.
  Result<Enrolled> enrol(const Asked& asked, int64_t now_unix_s);
  // All certificates of that name, also those that were renewed. It may be given to another key then. kUsage:
  // no node of that name has a certificate of this one.
  Status revoke_node(const std::string& name);
  // All certificates of that key, whatever their name.
  Status revoke_key(const std::string& fingerprint);

  // One line of the audit log; a problem is told, and holds nothing up.
  Status audit(const std::string& event, const std::vector<std::pair<std::string, std::string>>& words) const;

 private:
  Site() = default;
  std::filesystem::path token_directory(const std::string& id) const { return directory_ / "tokens" / id; }
  Result<TokenState> load_token(const std::string& id) const;  // of uses the fingerprints alone
  Status check(const TokenState& token, const Asked& asked, int64_t now_unix_s) const;
  Status check_name(const TokenState& token, const Wish& wish, int64_t now_unix_s) const;
  Result<std::string> sign(const TokenState& token, const Asked& asked) const;
  Result<Enrolled> answer(const std::string& certificate_pem) const;
  // Held while a name is given or taken back; nobody holds it for long.
  Result<UniqueFd> names_lock() const;
  void forget_old_tokens(int64_t now_unix_s) const;
  Status revoke(const std::function<bool(X509*)>& chosen, const std::string& none);
  Status write_list() const;

  std::filesystem::path directory_;
  std::string ca_pem_;
  std::vector<identity::CertificatePointer> chain_;  // the one that signs first
  identity::KeyPointer key_;
  std::string fingerprint_;
  std::string domain_;
  std::string subject_;
  UniqueFd lock_;
};

}  // namespace sluice::site
