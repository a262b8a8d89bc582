// How what a node signs names nodes: by their keys, or, where an authority stands for one, by its name there.
//
// Cold; any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "control/identity/trust.h"

namespace sluice::grant {

inline constexpr std::string_view kByAuthority = "node ";  // no fingerprint begins so

// Is it a name of either kind?
bool is_party(const std::string& text);
// Also by the key that its key follows, as long as that counts. A name counts where one authority stands for
// who has signed as well: another one may have given it to somebody else.
bool is_party(const std::string& party, const identity::Peer& peer, const identity::Peer& signer);
bool is_self(const std::string& party, const identity::Identity& self, const identity::Peer& signer);
// By a certificate it is known who a node is, as if it had called with it.
Result<identity::Peer> judge_certificate(const std::string& certificate_pem, const identity::Trust& trust,
                                         int64_t now_unix_ns);

}  // namespace sluice::grant
