// Who this node is, and whose keys it has pinned: a key pair with its certificate, and one file per pinned
// peer. A pin is the SHA-256 of the peer's public key. Whom else it trusts says trust.h.
//
// Layout beneath the node directory: identity/key.pem (0600), identity/cert.pem, while the key is changed
// identity/next-key.pem and next-cert.pem (rotation.h), trusted/NAME.pem (the peer's certificate) and
// trusted/NAME.toml (address = "host:port"); certificates of keys that are not used any more in
// identity/former and trusted/former.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "control/identity/certificate.h"
#include "dataplane/base/error.h"

namespace sluice::identity {

struct Identity {
  std::string name;
  std::string certificate_pem;
  std::filesystem::path certificate_file = {};
  std::filesystem::path key_file = {};
  std::string fingerprint;                // SHA-256 of the public key (SPKI, DER), 64 hex digits
  std::string next_certificate_pem = {};  // of the key that is to follow; empty: none is
  int64_t expires_unix_s = kNoEnd;
};

struct Peer {
  std::string name;
  std::string address;  // "host:port" of its control daemon; may be empty: it only calls us
  std::string fingerprint;
  std::string certificate_pem;
  int64_t expires_unix_s = kNoEnd;
  // Of the key that the pinned one follows, and until when it counts as well. Empty: it follows none.
  std::string former_fingerprint = {};
  int64_t former_until_unix_s = 0;
  bool by_authority = false;  // it is not pinned: an authority stands for it
};

// A new key pair and certificate. kConfiguration when the directory already has an identity: it is never
// overwritten.
Status create(const std::filesystem::path& node_directory, const std::string& name);
Result<Identity> load(const std::filesystem::path& node_directory);
// The same for the node that node.toml names so; kConfiguration when the identity is another one's. Of an
// authority it has the name as a DNS name, in `domain` if there is one.
Result<Identity> load_of(const std::filesystem::path& node_directory, const std::string& node_name,
                         const std::string& domain = "");
// Sorted by name; empty when nobody is trusted yet. Any file in trusted/ that is wrong is an error.
Result<std::vector<Peer>> load_peers(const std::filesystem::path& node_directory);
// The same for a daemon that runs: a file that has become wrong takes the trust of its own peer only, and is
// told of in `problems`.
struct UsablePeers {
  std::vector<Peer> peers;
  std::vector<Error> problems;
  std::set<std::string> broken;  // the names that they are of
};
Result<UsablePeers> load_usable_peers(const std::filesystem::path& node_directory);
// kPeerUntrusted when there is none of that name. Reads the files of no other.
Result<Peer> find_peer(const std::filesystem::path& node_directory, const std::string& name);
// Pins a peer. kConfiguration when the name is taken by another key (unless `replace`, or that key signed
// that this one follows it), when the key is already trusted under another name, was distrusted, or is this
// node's own. Pinning the same key again changes its address; an empty address keeps the known one.
Result<Peer> trust(const std::filesystem::path& node_directory, const std::string& name,
                   const std::string& address, const std::string& certificate_pem, bool replace);
// Forgets a peer, whatever its files hold; durable when it returns. kPeerUntrusted when there is none of that
// name. What is open with it is not touched.
Status distrust(const std::filesystem::path& node_directory, const std::string& name);
// "address" of trusted/NAME.toml; empty when the file is not there.
Result<std::string> read_address(const std::filesystem::path& node_directory, const std::string& name);
Status write_address(const std::filesystem::path& node_directory, const std::string& name,
                     const std::string& address);
Result<std::string> fingerprint_of_pem(std::string_view certificate_pem);

}  // namespace sluice::identity
