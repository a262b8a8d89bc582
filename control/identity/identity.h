// Who this node is, and whom it trusts: a key pair with a self-signed certificate, and one file per
// pinned peer. Trust is the SHA-256 of the peer's public key; there is no certificate authority.
//
// Layout beneath the node directory: identity/key.pem (0600), identity/cert.pem,
// trusted/NAME.pem (the peer's certificate) and trusted/NAME.toml (address = "host:port").
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/base/error.h"

namespace sluice::identity {

struct Identity {
  std::string name;
  std::string certificate_pem;
  std::filesystem::path certificate_file;
  std::filesystem::path key_file;
  std::string fingerprint;  // SHA-256 of the public key (SPKI, DER), 64 hex digits
};

struct Peer {
  std::string name;
  std::string address;  // "host:port" of its control daemon; may be empty: it only calls us
  std::string fingerprint;
  std::string certificate_pem;
};

// A new key pair and certificate. kConfiguration when the directory already has an identity: it is never
// overwritten.
Status create(const std::filesystem::path& node_directory, const std::string& name);
Result<Identity> load(const std::filesystem::path& node_directory);
// The same for the node that node.toml names so; kConfiguration when the identity is another one's.
Result<Identity> load_of(const std::filesystem::path& node_directory, const std::string& node_name);
// Sorted by name; empty when nobody is trusted yet. Any file in trusted/ that is wrong is an error.
Result<std::vector<Peer>> load_peers(const std::filesystem::path& node_directory);
// The same for a daemon that runs: a file that has become wrong takes the trust of its own peer only, and is
// told of in `problems`.
struct UsablePeers {
  std::vector<Peer> peers;
  std::vector<Error> problems;
};
Result<UsablePeers> load_usable_peers(const std::filesystem::path& node_directory);
// kPeerUntrusted when there is none of that name. Reads the files of no other.
Result<Peer> find_peer(const std::filesystem::path& node_directory, const std::string& name);
// Pins a peer. kConfiguration when the name is taken by another key (unless `replace`), when the
// key is already trusted under another name, or is this node's own. Pinning the same key again changes
// its address; an empty address keeps the known one.
Result<Peer> trust(const std::filesystem::path& node_directory, const std::string& name,
                   const std::string& address, const std::string& certificate_pem, bool replace);
// Forgets a peer, whatever its files hold; durable when it returns. kPeerUntrusted when there is none of that
// name. What is open with it is not touched.
Status distrust(const std::filesystem::path& node_directory, const std::string& name);
// kPeerUntrusted: it is not pinned any more, or with another key.
Status check_still_trusted(const std::filesystem::path& node_directory, const Peer& peer);
Result<std::string> fingerprint_of_pem(std::string_view certificate_pem);

}  // namespace sluice::identity
