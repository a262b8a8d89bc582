// What an auditor is told: who moved what, and who changed which names. Each a line of JSON.
//
// Pure. docs/REFERENCE.md, "Audit log", has the keys; they are added to, and never change their meaning.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "control/names/words.h"
#include "control/transfer/view.h"

namespace sluice::audit {

inline constexpr size_t kFilesTold = 100;  // of a session that has ended

// `user`: of this host, who asked as themselves; nothing: an operator, or a peer. `mapped`: of a peer, whom
// its user is here.
std::string session_begun(std::string_view id, transfer::Role role, bool initiator, std::string_view peer,
                          const std::optional<transfer::User>& user, int64_t now_unix_ns,
                          std::string_view ordered_by = {},
                          const std::optional<transfer::Mapped>& mapped = {});
// A user of `peer` may not use this node. `peer_user` empty: an operator.
std::string user_refused(std::string_view id, std::string_view peer, std::string_view peer_user,
                         const Error& error, int64_t now_unix_ns);
// This node has ordered a transfer of two others.
std::string order_begun(std::string_view id, std::string_view source, std::string_view destination,
                        int64_t now_unix_ns);
// `peer` showed a grant, or gave an order, that this node does not believe.
std::string grant_refused(std::string_view id, std::string_view peer, const Error& error,
                          int64_t now_unix_ns);
// It went from one node to another; empty: this node.
std::string session_moved(std::string_view id, std::string_view from, std::string_view to, uint64_t epoch,
                          int64_t now_unix_ns);
// `peer` showed a move that this node does not believe.
std::string move_refused(std::string_view id, std::string_view peer, const Error& error, int64_t now_unix_ns);
std::string session_ended(const transfer::View& view, int64_t now_unix_ns);
// `peer` empty: asked for by `user` of this host, or by an operator. Also of what was refused.
std::string names_changed(std::string_view peer, const names::Request& asked,
                          const Result<names::Done>& outcome, int64_t now_unix_ns,
                          const std::optional<transfer::User>& user = {});

}  // namespace sluice::audit
