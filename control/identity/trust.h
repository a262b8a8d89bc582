// Whom a node trusts at one moment: the keys that its operator has pinned, and those for whom the authority
// stands that the operator has named; less those whom the operator has barred.
//
// A name that is pinned belongs to its pin: no authority can give it to another key. Immutable once it is
// loaded; any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include "control/identity/addresses.h"
#include "control/identity/authority.h"
#include "control/identity/identity.h"
#include "control/identity/user_map.h"
#include "dataplane/base/config/config.h"

namespace sluice::identity {

// A key that the owner of a pinned one offers in its place, and proves by it.
struct Offer {
  std::string peer;
  std::string fingerprint;
  std::string certificate_pem;
};

class Trust {
 public:
  Trust() = default;
  explicit Trust(std::vector<Peer> pinned) : pinned_(std::move(pinned)) {}
  // Blocks. An error: nobody can be judged now. What concerns one file only is in problems().
  static Result<Trust> load(const config::Node& node);

  // Who it is. kPeerUntrusted, with the reason.
  Result<Peer> judge(const Shown& shown, int64_t now_unix_s) const;
  // Nothing: it offers none.
  std::optional<Offer> offer_in(const Shown& shown) const;
  // For a connection that is there: it ends when a key is barred or revoked, not when it grows old. What was
  // found good once costs a look-up from then on.
  Status check_still(const Peer& peer) const;
  size_t found_good() const;  // so many connections by an authority
  // To call it. kPeerUntrusted: nobody here knows it.
  Result<Peer> find(const std::string& name) const;
  const std::vector<Peer>& pinned() const { return pinned_; }
  const std::vector<Error>& problems() const { return problems_; }
  // Where peers listen by [control] addresses_file; null: there is none, or it cannot be read.
  const Addresses* addresses() const { return addresses_.get(); }
  std::vector<Expiry> expiries() const;

 private:
  // Whose pinned key signed that this one follows it; null: nobody's.
  const Peer* followed_by(X509* certificate) const;
  Result<Peer> judge_pinned(const Peer& pinned, int64_t now_unix_s) const;
  Result<Peer> judge_by_authority(const Shown& shown, const std::string& fingerprint) const;
  Status check_still_by_authority(const Peer& peer) const;
  Status take_authority();
  Status take_addresses();

  std::vector<Peer> pinned_;
  std::set<std::string> broken_;  // names whose pin cannot be read: nobody else gets them
  std::set<std::string> barred_;  // names, as authorities give them, and fingerprints
  std::shared_ptr<const Authority> authority_;
  std::shared_ptr<const Addresses> addresses_;
  std::vector<Error> problems_;
  config::Node node_;
  // What check_still() has found good. Nothing else here changes, so it stays good.
  struct Good {
    std::mutex mutex;
    std::unordered_set<std::string> connections;
  };
  std::shared_ptr<Good> good_ = std::make_shared<Good>();
};

// This node and whom it trusts, as the files say it now. Blocks.
struct Standing {
  std::shared_ptr<const Identity> self;
  std::shared_ptr<const Trust> trust;
  // Of StandingFiles alone: whom peers' users are here. null: there is no [control] users_map_file.
  std::shared_ptr<const UserMap> users = {};
  std::optional<Error> users_problem = {};  // why `users` is one that was read before
};
Result<Standing> load_standing(const config::Node& node);
// Of this node's own certificate, those that it pinned, and its authority.
std::vector<Expiry> expiries_of(const Standing& standing);

// As find_peer(), with whom the authority stands for.
Result<Peer> find_peer(const config::Node& node, const std::string& name);
// Where a peer that an authority stands for listens; durable when it returns.
Status set_address(const config::Node& node, const std::string& name, const std::string& address);

// A name that an authority gave, or a fingerprint: barred until allow(). kUsage: it is neither.
Status bar(const config::Node& node, const std::string& what);
// False: it was not barred.
Result<bool> allow(const config::Node& node, const std::string& what);
Result<std::set<std::string>> load_barred(const std::filesystem::path& node_directory);

}  // namespace sluice::identity
