// SPDX-License-Identifier: Apache-2.0
#include "control/identity/trust.h"

#include <algorithm>
#include <ctime>

#include "control/identity/hex.h"
#include "control/identity/node_files.h"
#include "control/identity/successor.h"
#include "dataplane/base/utc.h"

namespace sluice::identity {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kSecondNs = 1'000'000'000;
constexpr size_t kChainMax = 8;     // that a peer of an authority is remembered with
constexpr size_t kGoodMax = 8'192;  // more than a node can have of connections

fs::path bars_of(const fs::path& node_directory) { return node_directory / "distrusted"; }

std::string date_of(int64_t unix_s) { return base::utc_text(unix_s * kSecondNs); }

// The certificate and what came with it, to judge it again.
std::string chain_pem(const Shown& shown) {
  const auto add = [](std::string* text, X509* certificate) {
    if (const Result<std::string> pem = to_pem(certificate)) *text += *pem;
  };
  std::string text;
  add(&text, shown.certificate);
  const int count = shown.others == nullptr ? 0 : sk_X509_num(shown.others);
  for (int i = 0; i < std::min<int>(count, kChainMax); ++i) {
    X509* const other = sk_X509_value(shown.others, i);
    if (X509_cmp(other, shown.certificate) != 0) add(&text, other);
  }
  return text;
}

struct StackDeleter {
  void operator()(STACK_OF(X509) * p) const { sk_X509_free(p); }
};

}  // namespace

Result<Trust> Trust::load(const config::Node& node) {
  Result<UsablePeers> pinned = load_usable_peers(node.directory);
  if (!pinned) return pinned.error();
  Result<std::set<std::string>> barred = load_barred(node.directory);
  if (!barred) return barred.error();
  Trust trust(std::move(pinned->peers));
  trust.node_ = node;
  trust.barred_ = std::move(*barred);
  trust.problems_ = std::move(pinned->problems);
  trust.broken_ = std::move(pinned->broken);
  if (Status status = trust.take_authority(); !status) return status.error();
  if (Status status = trust.take_addresses(); !status) return status.error();
  return trust;
}

Status Trust::take_authority() {
  if (node_.ca_file.empty()) return {};
  auto authority = Authority::load(node_.ca_file, node_.crl_file, node_.ca_domain);
  if (authority) {
    authority_ = std::move(*authority);
  } else if (authority.error().code == ErrorCode::kConfiguration) {
    problems_.push_back(authority.error());
  } else {
    return authority.error();
  }
  return {};
}

Status Trust::take_addresses() {
  if (node_.addresses_file.empty()) return {};
  auto addresses = Addresses::load(node_.addresses_file);
  if (addresses) {
    addresses_ = std::move(*addresses);
    problems_.insert(problems_.end(), addresses_->problems().begin(), addresses_->problems().end());
  } else if (addresses.error().code == ErrorCode::kConfiguration) {
    problems_.push_back(addresses.error());
  } else {
    return addresses.error();
  }
  for (Peer& peer : pinned_) {
    if (addresses_ && peer.address.empty()) peer.address = addresses_->find(peer.name);
  }
  return {};
}

Result<Peer> Trust::judge_pinned(const Peer& pinned, int64_t now_unix_s) const {
  if (now_unix_s < pinned.expires_unix_s || node_.expired_pins == "accept") return pinned;
  return untrusted("the certificate that is pinned as " + pinned.name + " has expired on " +
                   date_of(pinned.expires_unix_s) + "; take its new one with 'sluice node trust " +
                   pinned.name + " CERT.pem', or look at the clock of this host");
}

Result<Peer> Trust::judge(const Shown& shown, int64_t now_unix_s) const {
  const Result<std::string> fingerprint = fingerprint_of(shown.certificate);
  if (!fingerprint) return fingerprint.error();
  if (barred_.contains(*fingerprint))
    return untrusted("its key was distrusted here; 'sluice node allow' undoes it");
  for (const Peer& one : pinned_) {
    if (one.fingerprint == *fingerprint) return judge_pinned(one, now_unix_s);
  }
  for (const Peer& one : pinned_) {
    if (one.former_fingerprint != *fingerprint) continue;
    if (now_unix_s >= one.former_until_unix_s)
      return untrusted("it shows the former key of " + one.name + ", which counted until " +
                       date_of(one.former_until_unix_s));
    Result<Peer> peer = judge_pinned(one, now_unix_s);
    if (peer) peer->fingerprint = *fingerprint;
    return peer;
  }
  if (const Peer* const one = followed_by(shown.certificate)) {
    const int64_t until = statement_in(shown.certificate)->until_unix_s;
    if (node_.successors != "accept" || now_unix_s >= until)
      return untrusted("it shows a new key of " + one->name + ", " + *fingerprint +
                       ", signed by the one that is pinned; to take it: sluice node trust " + one->name +
                       " --successor");
    Peer peer = *one;
    peer.fingerprint = *fingerprint;
    return peer;
  }
  return judge_by_authority(shown, *fingerprint);
}

Result<Peer> Trust::judge_by_authority(const Shown& shown, const std::string& fingerprint) const {
  if (!authority_) return untrusted("its key is not pinned");
  const Result<std::string> name = authority_->judge(shown);
  if (!name) return name.error();
  const auto is_it = [&name](const Peer& one) { return one.name == *name; };
  if (*name == node_.name) return untrusted("its certificate gives it the name of this node, " + *name);
  if (broken_.contains(*name) || std::ranges::any_of(pinned_, is_it))
    return untrusted("its certificate gives it the name " + *name +
                     ", which is pinned to another key; 'sluice node distrust " + *name + "' gives it up");
  if (barred_.contains(*name))
    return untrusted(*name + " was distrusted here; 'sluice node allow' undoes it");
  Peer peer;
  if (Result<Peer> known = find(*name)) peer = std::move(*known);
  peer.fingerprint = fingerprint;
  peer.certificate_pem = chain_pem(shown);
  peer.expires_unix_s = identity::expires_unix_s(shown.certificate);
  return peer;
}

// Anybody may show a statement: no more is done for one than to check it once.
const Peer* Trust::followed_by(X509* certificate) const {
  const std::optional<Statement> statement = statement_in(certificate);
  if (!statement) return nullptr;
  for (const Peer& one : pinned_) {
    if (one.fingerprint == statement->former_fingerprint)
      return follows(certificate, one.certificate_pem) ? &one : nullptr;
  }
  return nullptr;
}

std::optional<Offer> Trust::offer_in(const Shown& shown) const {
  const auto look = [this](X509* certificate) -> std::optional<Offer> {
    const Peer* const one = followed_by(certificate);
    if (one == nullptr) return std::nullopt;
    const Result<std::string> fingerprint = fingerprint_of(certificate);
    const Result<std::string> pem = to_pem(certificate);
    if (!fingerprint || !pem || barred_.contains(*fingerprint)) return std::nullopt;
    return Offer{one->name, *fingerprint, *pem};
  };
  if (std::optional<Offer> offer = look(shown.certificate)) return offer;
  const int count = shown.others == nullptr ? 0 : sk_X509_num(shown.others);
  for (int i = 0; i < std::min<int>(count, kChainMax); ++i) {
    if (std::optional<Offer> offer = look(sk_X509_value(shown.others, i))) return offer;
  }
  return std::nullopt;
}

Status Trust::check_still(const Peer& peer) const {
  const auto problem = [](std::string reason) { return untrusted(std::move(reason)); };
  if (barred_.contains(peer.fingerprint)) return problem("this key is not trusted any more");
  if (!peer.by_authority) {
    for (const Peer& one : pinned_) {
      const bool same = one.fingerprint == peer.fingerprint || one.former_fingerprint == peer.fingerprint ||
                        (one.certificate_pem == peer.certificate_pem && !peer.certificate_pem.empty());
      if (one.name == peer.name && same) return {};
    }
    return problem("this key is not trusted any more");
  }
  const std::string connection = peer.name + '\0' + peer.fingerprint + '\0' + peer.certificate_pem;
  {
    const std::scoped_lock lock(good_->mutex);
    if (good_->connections.contains(connection)) return {};
  }
  if (Status status = check_still_by_authority(peer); !status) return status;
  const std::scoped_lock lock(good_->mutex);
  if (good_->connections.size() >= kGoodMax) good_->connections.clear();
  good_->connections.insert(connection);
  return {};
}

size_t Trust::found_good() const {
  const std::scoped_lock lock(good_->mutex);
  return good_->connections.size();
}

// Parses and verifies a chain: most of a millisecond.
Status Trust::check_still_by_authority(const Peer& peer) const {
  const auto chain = parse_certificates(peer.certificate_pem, kChainMax + 1);
  if (!chain) return chain.error();
  const std::unique_ptr<STACK_OF(X509), StackDeleter> others(sk_X509_new_null());
  for (size_t i = 1; others && i < chain->size(); ++i) sk_X509_push(others.get(), (*chain)[i].get());
  const Shown shown{
      .certificate = chain->front().get(), .others = others.get(), .purpose = 0, .dates = false};
  const Result<Peer> now = judge_by_authority(shown, peer.fingerprint);
  if (!now) return now.error();
  return now->name == peer.name ? Status() : Status(untrusted("this key is of another peer now"));
}

Result<Peer> Trust::find(const std::string& name) const {
  for (const Peer& one : pinned_) {
    if (one.name == name) return one;
  }
  if (!authority_ || broken_.contains(name) || !config::valid_node_name(name) || name == node_.name)
    return find_peer(node_.directory, name);  // which says why not
  if (barred_.contains(name)) return untrusted(name + " was distrusted here; 'sluice node allow' undoes it");
  Result<std::string> address = read_address(node_.directory, name);
  if (!address) return address.error();
  if (address->empty() && addresses_) *address = addresses_->find(name);
  if (address->empty() && !node_.ca_domain.empty())
    *address = name + "." + node_.ca_domain + ":" + std::to_string(config::kControlPort);
  Peer peer;
  peer.name = name;
  peer.address = std::move(*address);
  peer.by_authority = true;
  return peer;
}

std::vector<Expiry> Trust::expiries() const {
  std::vector<Expiry> all;
  for (const Peer& one : pinned_)
    all.push_back({.kind = "peer", .name = one.name, .unix_s = one.expires_unix_s});
  if (authority_) all.insert(all.end(), authority_->expiries().begin(), authority_->expiries().end());
  return all;
}

Result<Standing> load_standing(const config::Node& node) {
  Result<Identity> self = load_of(node.directory, node.name, node.ca_domain);
  if (!self) return self.error();
  Result<Trust> trust = Trust::load(node);
  if (!trust) return trust.error();
  return Standing{std::make_shared<const Identity>(std::move(*self)),
                  std::make_shared<const Trust>(std::move(*trust))};
}

std::vector<Expiry> expiries_of(const Standing& standing) {
  std::vector<Expiry> all{
      {.kind = "own", .name = standing.self->name, .unix_s = standing.self->expires_unix_s}};
  const std::vector<Expiry> others = standing.trust->expiries();
  all.insert(all.end(), others.begin(), others.end());
  return all;
}

Result<Peer> find_peer(const config::Node& node, const std::string& name) {
  if (name == node.name)
    return Error{ErrorCode::kPeerUntrusted, "node \"" + name + "\" is this node itself: name another one"};
  if (node.ca_file.empty() && node.addresses_file.empty()) return find_peer(node.directory, name);
  const Result<Trust> trust = Trust::load(node);
  if (!trust) return trust.error();
  return trust->find(name);
}

Status set_address(const config::Node& node, const std::string& name, const std::string& address) {
  const Result<Peer> peer = find_peer(node, name);
  if (!peer) return peer.error();
  return write_address(node.directory, name, address);
}

Status bar(const config::Node& node, const std::string& what) {
  if (!is_fingerprint(what) && !config::valid_node_name(what))
    return Error{ErrorCode::kUsage, "this is neither the name of a node nor the fingerprint of a key"};
  const fs::path directory = bars_of(node.directory);
  if (Status status = make_directory(directory, 0755); !status) return status;
  return write_small_file(directory / what, "", 0644, Replace::kYes);
}

Result<bool> allow(const config::Node& node, const std::string& what) {
  if (!is_fingerprint(what) && !config::valid_node_name(what)) return false;
  return remove_small_file(bars_of(node.directory) / what);
}

Result<std::set<std::string>> load_barred(const fs::path& node_directory) {
  std::set<std::string> barred;
  const fs::path directory = bars_of(node_directory);
  std::error_code failure;
  fs::directory_iterator entries(directory, failure);
  if (failure == std::errc::no_such_file_or_directory) return barred;
  if (const Status status = check_guarded(directory, Guard::kOthers); !failure && !status)
    return status.error();
  for (; !failure && entries != fs::directory_iterator(); entries.increment(failure))
    barred.insert(entries->path().filename().string());
  if (failure && is_shortage(failure.value())) return shortage(directory, failure.value());
  if (failure)
    return Error{ErrorCode::kConfiguration,
                 directory.string() + ": " + failure.message() + "; check its permissions"};
  return barred;
}

}  // namespace sluice::identity
