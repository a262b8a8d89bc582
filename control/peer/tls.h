// TLS as Sluice uses it: version 1.3 only, both sides show a certificate, and the decision about the other
// side is one function of what it shows (control/identity/trust.h). No host name, no resumption.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/error_code.hpp>
#include <asio/ssl/context.hpp>
#include <functional>
#include <memory>
#include <string>

#include "control/identity/authority.h"
#include "control/identity/identity.h"
#include "dataplane/base/error.h"

namespace sluice::peer {

// One handshake's question, and what came of it.
struct PeerCheck {
  std::function<Status(const identity::Shown& shown)> accept;
  std::string fingerprint;    // of the key that the other side showed; empty when it showed none
  std::string refusal;        // shown, and not accepted: why
  bool cannot_judge = false;  // whom this node trusts is not known just now: neither accepted nor refused
};

// For both roles. Reads the private key. Shown are the certificate, what stands behind it in its file, and
// the one of the key that is to follow.
Result<std::shared_ptr<asio::ssl::context>> make_tls_context(const identity::Identity& self);
// `check` must live as long as the handshake. Without one every certificate is refused.
void set_peer_check(SSL* ssl, PeerCheck* check);
// Did the other side end the handshake because of our certificate?
bool refused_by_peer(const asio::error_code& failure);
// Or because it could not judge it just now?
bool not_judged_by_peer(const asio::error_code& failure);

}  // namespace sluice::peer
