// The files of an identity and of trust. Every call reads the directory anew, so that a peer that an operator
// has just pinned is known at the next handshake. Kept in memory is only which fingerprint a certificate has.
// SPDX-License-Identifier: Apache-2.0
#include "control/identity/identity.h"

#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "control/identity/certificate.h"
#include "control/identity/node_files.h"
#include "control/identity/rotation.h"
#include "control/identity/successor.h"
#include "control/identity/trust.h"
#include "dataplane/base/config/config.h"
#include "dataplane/base/config/toml_text.h"

namespace sluice::identity {
namespace {

namespace fs = std::filesystem;

fs::path key_file_of(const fs::path& node) { return node / "identity" / "key.pem"; }
fs::path certificate_file_of(const fs::path& node) { return node / "identity" / "cert.pem"; }

Status check_name(const std::string& name) {
  if (config::valid_node_name(name)) return {};
  return configuration(
      "'" + name.substr(0, 80) +
      "' is not a node name: use 1 to 63 of a-z, 0-9, '_' and '-', beginning with a letter or digit");
}

bool is_there(const fs::path& file) {
  std::error_code ignored;
  return fs::symlink_status(file, ignored).type() != fs::file_type::not_found;
}

// Users who may write the directory may replace these files, whatever the modes of the files are.
Status check_place(const fs::path& node) {
  const fs::path key = key_file_of(node);
  struct stat info {};
  if (::stat(key.c_str(), &info) == 0 && (info.st_mode & 077) != 0)
    return configuration(key.string() + ": others can read the private key; run: chmod 600 " + key.string());
  if (Status status = check_guarded(key.parent_path(), Guard::kGroupAndOthers); !status) return status;
  if (Status status = check_guarded(node, Guard::kOthers); !status) return status;
  return check_guarded(node / "node.toml", Guard::kOthers);
}

bool belongs(X509* certificate, EVP_PKEY* key) {
  const bool good = X509_check_private_key(certificate, key) == 1;
  openssl_reason();
  return good;
}

// The certificate of this key: cert.pem, or what is to become it where a change of keys was interrupted
// between its two renames (rotation.cc).
Result<std::string> certificate_of(const fs::path& node, EVP_PKEY* key) {
  const fs::path file = certificate_file_of(node);
  for (const fs::path& each : {file, next_certificate_file(node)}) {
    bool not_found = false;
    const Result<std::string> text = read_small_file(each, &not_found);
    if (!text && not_found && each == file)
      return configuration(file.string() + ": this node has no identity; run: sluice node init");
    if (!text && not_found) continue;
    if (!text) return text.error();
    const auto certificate = parse_certificate(*text);
    if (!certificate && each == file)
      return configuration(file.string() + ": not a certificate; restore it from a backup");
    if (certificate && belongs(certificate->get(), key)) return text;
  }
  return configuration(key_file_of(node).string() +
                       ": does not belong to cert.pem beside it; restore both from one backup");
}

}  // namespace

Result<std::string> read_address(const fs::path& node_directory, const std::string& name) {
  const fs::path file = node_directory / "trusted" / (name + ".toml");
  bool not_found = false;
  const auto text = read_small_file(file, &not_found);
  if (!text && not_found) return std::string();
  if (!text) return text.error();
  const auto table = config::parse_toml(*text, file.string());
  if (!table) return table.error();
  for (const auto& [key, value] : *table) {
    if (key.str() != "address" || !value.is_string())
      return configuration(file.string() + ":" + std::to_string(key.source().begin.line) +
                           ": only address = \"host:port\" belongs here");
  }
  std::string address = (*table)["address"].value_or(std::string());
  if (address.empty()) return address;
  const auto split = config::parse_host_port(address);
  if (!split) return configuration(file.string() + ": " + split.error().message);
  return address;
}

Status write_address(const fs::path& node_directory, const std::string& name, const std::string& address) {
  const fs::path trusted = node_directory / "trusted";
  if (auto status = make_directory(trusted, 0755); !status) return status.error();
  const std::string toml = address.empty() ? "" : "address = \"" + address + "\"\n";
  return write_small_file(trusted / (name + ".toml"), toml, 0644, Replace::kYes);
}

namespace {

// What a pinned certificate says, without name and address. To parse it takes half a millisecond, and each
// call of a peer asks for all.
Result<Peer> remembered_pin(const std::string& certificate_pem) {
  constexpr size_t kRememberedMax = 4096;
  static std::mutex mutex;
  static std::map<std::string, Peer> remembered;
  const std::scoped_lock lock(mutex);
  if (const auto known = remembered.find(certificate_pem); known != remembered.end()) return known->second;
  const auto certificate = parse_certificate(certificate_pem);
  if (!certificate) return certificate.error();
  const Result<std::string> fingerprint = fingerprint_of(certificate->get());
  if (!fingerprint) return fingerprint.error();
  Peer peer{.name = "", .address = "", .fingerprint = *fingerprint, .certificate_pem = certificate_pem};
  peer.expires_unix_s = expires_unix_s(certificate->get());
  // Nobody has checked it yet.
  if (const auto statement = statement_in(certificate->get())) {
    peer.former_fingerprint = statement->former_fingerprint;
    peer.former_until_unix_s = statement->until_unix_s;
  }
  if (remembered.size() >= kRememberedMax) remembered.clear();
  remembered[certificate_pem] = peer;
  return peer;
}

// Whether the key that this one says it follows was pinned under the name, and signed that. Remembered, as
// pins are: each call of a peer asks for all.
bool followed_a_pin(const fs::path& node, const Peer& peer) {
  constexpr size_t kRememberedMax = 4096;
  static std::mutex mutex;
  static std::map<std::string, bool> remembered;
  const fs::path file = node / "trusted" / "former" / (peer.name + "." + peer.former_fingerprint + ".pem");
  const Result<std::string> former = read_small_file(file);
  if (!former) return false;
  const std::string pair = peer.certificate_pem + '\0' + *former;
  const std::scoped_lock lock(mutex);
  if (const auto known = remembered.find(pair); known != remembered.end()) return known->second;
  const auto certificate = parse_certificate(peer.certificate_pem);
  if (remembered.size() >= kRememberedMax) remembered.clear();
  return remembered[pair] = certificate && follows(certificate->get(), *former);
}

Result<Peer> load_peer(const fs::path& node, const std::string& name) {
  const fs::path file = node / "trusted" / (name + ".pem");
  if (const Status status = check_guarded(file, Guard::kOthers); !status) return status.error();
  const auto text = read_small_file(file);
  if (!text) return text.error();
  Result<Peer> peer = remembered_pin(*text);
  if (!peer) return configuration(file.string() + ": " + peer.error().message);
  const auto address = read_address(node, name);
  if (!address) return address.error();
  peer->name = name;
  peer->address = *address;
  if (!peer->former_fingerprint.empty() && !followed_a_pin(node, *peer)) peer->former_fingerprint.clear();
  return peer;
}

// May `fingerprint` be pinned as `name`? On return `known` is what was pinned under the name.
Status check_pin(const fs::path& node, const std::string& name, X509* certificate,
                 const std::string& fingerprint, bool replace, std::optional<Peer>* known) {
  const auto barred = load_barred(node);
  if (!barred) return barred.error();
  if (barred->contains(fingerprint))
    return configuration(
        "this key was distrusted here; if it is to be trusted again, first run: sluice node "
        "allow " +
        fingerprint);
  if (const auto self = load(node); self && self->fingerprint == fingerprint)
    return configuration("this is the certificate of this node itself (" + self->name +
                         "); take the identity/cert.pem of the peer");
  const auto peers = load_peers(node);
  if (!peers) return peers.error();
  for (const Peer& peer : *peers) {
    if (peer.name == name) *known = peer;
    if (peer.name != name && peer.fingerprint == fingerprint)
      return configuration("this key is already trusted as " + peer.name +
                           "; use that name, or remove trusted/" + peer.name + ".pem first");
  }
  if (*known && (*known)->fingerprint != fingerprint && !replace &&
      !follows(certificate, (*known)->certificate_pem))
    return configuration(name + " is already trusted with another key (" + (*known)->fingerprint + ", now " +
                         fingerprint + "); compare both with its owner, then use --replace");
  return {};
}

}  // namespace

Status create(const fs::path& node_directory, const std::string& name) {
  if (auto status = check_name(name); !status) return status;
  const fs::path key_file = key_file_of(node_directory);
  const fs::path certificate_file = certificate_file_of(node_directory);
  for (const fs::path& file : {key_file, certificate_file}) {
    if (is_there(file))
      return configuration(file.string() +
                           " exists: this node has an identity, which is never overwritten; choose "
                           "another directory, or remove the old identity yourself");
  }
  std::error_code failure;
  fs::create_directories(node_directory.parent_path(), failure);
  if (failure)
    return configuration(node_directory.string() + ": " + failure.message() + "; choose a writable place");
  if (auto status = make_directory(node_directory, 0755); !status) return status;
  if (auto status = make_directory(key_file.parent_path(), 0700); !status) return status;
  const auto pair = make_key_pair({.name = name});
  if (!pair) return pair.error();
  if (auto status = write_small_file(key_file, pair->key_pem, 0600, Replace::kNo); !status) return status;
  auto status = write_small_file(certificate_file, pair->certificate_pem, 0644, Replace::kNo);
  if (!status) fs::remove(key_file, failure);  // ours, made just now: half an identity helps nobody
  return status;
}

namespace {

// What the two files say, without their places. The last pair is remembered: to parse it takes a millisecond,
// and each call of a peer asks.
Result<Identity> read_pair(const fs::path& node_directory, const std::string& key_text) {
  static struct {
    std::mutex mutex;
    std::string key_text;
    Identity self;
  } known;
  const std::scoped_lock lock(known.mutex);
  if (!key_text.empty() && key_text == known.key_text) {
    const auto same = read_small_file(certificate_file_of(node_directory));
    if (same && *same == known.self.certificate_pem) return known.self;
  }
  const auto key = parse_key(key_text);
  if (!key) return configuration(key_file_of(node_directory).string() + ": " + key.error().message);
  const auto text = certificate_of(node_directory, key->get());
  if (!text) return text.error();
  const auto certificate = parse_certificate(*text);
  if (!certificate) return certificate.error();
  const auto fingerprint = fingerprint_of(certificate->get());
  if (!fingerprint) return fingerprint.error();
  Identity self{
      .name = common_name(certificate->get()), .certificate_pem = *text, .fingerprint = *fingerprint};
  self.expires_unix_s = expires_unix_s(certificate->get());
  known.key_text = key_text;
  known.self = self;
  return self;
}

Result<Identity> load_once(const fs::path& node_directory) {
  const fs::path key_file = key_file_of(node_directory);
  const fs::path certificate_file = certificate_file_of(node_directory);
  const fs::path next_file = next_certificate_file(node_directory);
  if (!is_there(certificate_file) && !is_there(next_file))
    return configuration(certificate_file.string() + ": this node has no identity; run: sluice node init");
  const auto key_text = read_small_file(key_file);
  if (!key_text) return key_text.error();
  if (auto status = check_place(node_directory); !status) return status.error();
  Result<Identity> self = read_pair(node_directory, *key_text);
  if (!self) return self;
  self->certificate_file = certificate_file;
  self->key_file = key_file;
  if (const auto next = read_small_file(next_file); next && *next != self->certificate_pem)
    self->next_certificate_pem = *next;
  return self;
}

}  // namespace

// Again, where the key was changed between its being read and its certificate's.
Result<Identity> load(const fs::path& node_directory) {
  Result<Identity> self = load_once(node_directory);
  return self ? self : load_once(node_directory);
}

Result<Identity> load_of(const fs::path& node_directory, const std::string& node_name,
                         const std::string& domain) {
  Result<Identity> self = load(node_directory);
  if (!self || self->name == node_name) return self;
  const auto certificate = parse_certificate(self->certificate_pem);
  if (!certificate) return certificate.error();
  const std::string as_dns = domain.empty() ? node_name : node_name + "." + domain;
  for (const std::string& name : dns_names(certificate->get())) {
    if (name != as_dns) continue;
    self->name = node_name;
    return self;
  }
  return configuration((node_directory / "node.toml").string() + ": [node] name is " + node_name +
                       ", and the identity beside it is that of " + self->name +
                       ": peers know the node by its key, so set the name to " + self->name +
                       " again, or make another node with 'sluice node init'");
}

Result<UsablePeers> load_usable_peers(const fs::path& node_directory) {
  const fs::path trusted = node_directory / "trusted";
  UsablePeers found;
  std::error_code failure;
  fs::directory_iterator entries(trusted, failure);
  if (failure == std::errc::no_such_file_or_directory) return found;
  if (const Status status = check_guarded(trusted, Guard::kOthers); !status) return status.error();
  for (; !failure && entries != fs::directory_iterator(); entries.increment(failure)) {
    const fs::path& file = entries->path();
    const std::string name = file.stem().string();
    if (file.extension() != ".pem" || name.front() == '.') continue;
    if (!config::valid_node_name(name)) {
      found.problems.push_back(
          configuration(file.string() + ": its name is not a node name; rename or remove it"));
      continue;
    }
    auto peer = load_peer(node_directory, name);
    if (!peer && peer.error().code != ErrorCode::kConfiguration) return peer.error();
    if (peer) {
      found.peers.push_back(std::move(*peer));
    } else {
      found.problems.push_back(peer.error());
      found.broken.insert(name);
    }
  }
  if (failure && is_shortage(failure.value())) return shortage(trusted, failure.value());
  if (failure) return configuration(trusted.string() + ": " + failure.message() + "; check its permissions");
  std::sort(found.peers.begin(), found.peers.end(),
            [](const Peer& a, const Peer& b) { return a.name < b.name; });
  return found;
}

Result<std::vector<Peer>> load_peers(const fs::path& node_directory) {
  Result<UsablePeers> found = load_usable_peers(node_directory);
  if (!found) return found.error();
  if (!found->problems.empty()) return found->problems.front();
  return std::move(found->peers);
}

Result<Peer> find_peer(const fs::path& node_directory, const std::string& name) {
  const fs::path trusted = node_directory / "trusted";
  if (config::valid_node_name(name) && is_there(trusted / (name + ".pem")))
    return load_peer(node_directory, name);
  return Error{ErrorCode::kPeerUntrusted,
               "node \"" + name + "\" is not trusted here: use 'sluice node trust' first"};
}

Result<Peer> trust(const fs::path& node_directory, const std::string& name, const std::string& address,
                   const std::string& certificate_pem, bool replace) {
  if (auto status = check_name(name); !status) return status.error();
  if (!address.empty()) {
    const auto split = config::parse_host_port(address);
    if (!split) return split.error();
    if (split->port == 0)
      return configuration("'" + address + "': port 0 cannot be called; name the peer's real port");
  }
  const auto certificate = parse_certificate(certificate_pem);
  if (!certificate) return certificate.error();
  const auto fingerprint = fingerprint_of(certificate->get());
  if (!fingerprint) return fingerprint.error();
  // Encoded anew: only the certificate is kept, whatever else the file held.
  const auto pem = to_pem(certificate->get());
  if (!pem) return pem.error();

  std::optional<Peer> known;
  if (auto status = check_pin(node_directory, name, certificate->get(), *fingerprint, replace, &known);
      !status)
    return status.error();
  const bool same_key = known && known->fingerprint == *fingerprint;
  // Whoever follows the key that is known is where that one was.
  const bool keeps_address = same_key || (known && follows(certificate->get(), known->certificate_pem));
  Peer peer{name, address.empty() && keeps_address ? known->address : address, *fingerprint, *pem};
  peer.expires_unix_s = expires_unix_s(certificate->get());
  const fs::path trusted = node_directory / "trusted";
  // The certificate comes last: it is what makes the peer trusted.
  if (auto status = write_address(node_directory, name, peer.address); !status) return status.error();
  if (known && !same_key) {
    if (auto status = keep_former(trusted, name + "." + known->fingerprint, trusted / (name + ".pem"));
        !status)
      return status.error();
  }
  if (auto status = write_small_file(trusted / (name + ".pem"), *pem, 0644, Replace::kYes); !status)
    return status.error();
  return peer;
}

Status distrust(const fs::path& node_directory, const std::string& name) {
  if (auto status = check_name(name); !status) return status;
  const fs::path trusted = node_directory / "trusted";
  // The certificate first: without it the address means nothing.
  const Result<bool> gone = remove_small_file(trusted / (name + ".pem"));
  if (!gone) return gone.error();
  const Result<bool> address_gone = remove_small_file(trusted / (name + ".toml"));
  if (!address_gone) return address_gone.error();
  if (*gone || *address_gone) return {};
  return Error{ErrorCode::kPeerUntrusted, name + " is not trusted; 'sluice node show' lists who is"};
}

Result<std::string> fingerprint_of_pem(std::string_view certificate_pem) {
  const auto certificate = parse_certificate(certificate_pem);
  if (!certificate) return certificate.error();
  return fingerprint_of(certificate->get());
}

}  // namespace sluice::identity
