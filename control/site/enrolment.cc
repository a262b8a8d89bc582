// Who is enrolled, and as whom.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "control/identity/hex.h"
#include "control/identity/node_files.h"
#include "control/site/issue.h"
#include "control/site/parts.h"
#include "control/site/site.h"
#include "dataplane/base/config/config.h"
#include "dataplane/base/text.h"

namespace sluice::site {

namespace fs = std::filesystem;
using identity::untrusted;

Status Site::check_name(const TokenState& token, const Wish& wish, int64_t now_unix_s) const {
  const std::string& name = wish.name;
  if (!config::valid_node_name(name) || name == "memory" || name == "null")
    return untrusted("'" + base::printable(name.substr(0, 64)) +
                     "' cannot name a node; use a-z, 0-9, _ and -, and neither 'memory' nor 'null'");
  const identity::CertificatePointer there = read_certificate(directory_ / "issued" / (name + ".pem"));
  if (!there || identity::expires_unix_s(there.get()) <= now_unix_s) return {};
  const auto its = identity::fingerprint_of(there.get());
  if (token.rules.replaces || (its && *its == wish.fingerprint)) return {};
  return untrusted("the name " + name + " is taken: another key has a certificate for it until " +
                   date_of(identity::expires_unix_s(there.get())) +
                   "; choose another --name, or have the authority's holder give it up: sluice authority "
                   "revoke DIR " +
                   name);
}

Status Site::check(const TokenState& token, const Asked& asked, int64_t now_unix_s) const {
  if (token.revoked) return untrusted("this token was revoked; ask the authority's holder for another");
  const auto found = std::ranges::find(token.uses, asked.wish.fingerprint, &TokenUse::fingerprint);
  if (found != token.uses.end()) {
    TokenUse same = *found;
    read_use(token_directory(token.id), same);
    if (same.name == asked.wish.name) return {};
    return untrusted("this key was enrolled as " + same.name + " by this token, not as " +
                     base::printable(asked.wish.name.substr(0, 64)));
  }
  if (now_unix_s >= token.rules.until_unix_s)
    return untrusted("this token counted until " + date_of(token.rules.until_unix_s) +
                     "; ask the authority's holder for another");
  if (std::cmp_greater_equal(token.uses.size(), token.rules.uses_max)) {
    TokenUse last = token.uses.back();
    read_use(token_directory(token.id), last);
    const std::string by = token.uses.size() == 1 ? "by " + last.name + " on " + date_of(last.unix_s)
                                                  : std::to_string(token.uses.size()) + " times";
    return untrusted("this token was used already, " + by +
                     "; if that was not you, tell the authority's holder; else ask for another");
  }
  if (!matches(token.rules.pattern, asked.wish.name))
    return untrusted("this token is for the name " + token.rules.pattern + ", not for " +
                     base::printable(asked.wish.name.substr(0, 64)));
  return check_name(token, asked.wish, now_unix_s);
}

Result<std::string> Site::sign(const TokenState& token, const Asked& asked) const {
  const std::string& name = asked.wish.name;
  const auto made = issue({.certificate = chain_.front().get(), .key = key_.get()},
                          {.key = asked.key,
                           .name = name,
                           .dns_name = domain_.empty() ? name : name + "." + domain_,
                           .lifetime_s = token.rules.lifetime_s});
  if (!made) return made.error();
  if (Status status = identity::write_small_file(directory_ / "issued" / (name + ".pem"), *made, 0644,
                                                 identity::Replace::kYes);
      !status)
    return status.error();
  const fs::path use = token_directory(token.id) / "uses" / (asked.wish.fingerprint + ".pem");
  if (Status status = identity::write_small_file(use, *made, 0600, identity::Replace::kNo); !status)
    return status.error();
  if (Status status =
          audit("enrolled", {{"token", token.id}, {"name", name}, {"fingerprint", asked.wish.fingerprint}});
      !status)
    return status.error();
  return *made;
}

Result<Enrolled> Site::answer(const std::string& certificate_pem) const {
  Enrolled all{.certificate_pem = certificate_pem, .ca_pem = {}, .crl_pem = {}, .domain = domain_};
  for (size_t i = 0; i < chain_.size(); ++i) {
    const auto pem = identity::to_pem(chain_[i].get());
    if (!pem) return pem.error();
    (i + 1 == chain_.size() ? all.ca_pem : all.certificate_pem) += *pem;
  }
  if (chain_.size() > 1) return all;
  const auto list = identity::read_small_file(directory_ / "crl.pem");
  if (!list) return list.error();
  all.crl_pem = *list;
  return all;
}

Result<Enrolled> Site::enrol(const Asked& asked, int64_t now_unix_s) {
  const Error unknown = untrusted("this token is not known to the authority " + base::printable(subject_) +
                                  ", or was not signed with; ask its holder for another");
  if (!valid_token_id(asked.wish.token) || !identity::is_fingerprint(asked.wish.fingerprint)) return unknown;
  const auto token = load_token(asked.wish.token);
  if (!token && token.error().code == ErrorCode::kUsage) return unknown;
  if (!token) return token.error();
  const auto alone = names_lock();
  if (!alone) return alone.error();
  // What else is known of a token is for those who have it.
  if (!wish_is_signed(token->rules.public_key, asked.wish, asked.signature)) return unknown;
  if (Status status = check(*token, asked, now_unix_s); !status) return status.error();
  // Asked again, as by one who has not heard the answer: the same.
  const fs::path use = token_directory(token->id) / "uses" / (asked.wish.fingerprint + ".pem");
  bool not_found = false;
  const auto known = identity::read_small_file(use, &not_found);
  if (known) return answer(*known);
  if (!not_found) return known.error();
  const auto made = sign(*token, asked);
  if (!made) return made.error();
  return answer(*made);
}

}  // namespace sluice::site
