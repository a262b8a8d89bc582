// Requests to a node, as messages of its API, the sources and destinations that are no files, and what a
// session's figures sum up to.
//
// Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "control/proto/api.pb.h"

namespace sluice::api {

using TransferRequest = std::variant<SendRequest, GetRequest>;

// Sources and destinations that are no files.
inline constexpr std::string_view kMemorySource = "memory:";  // then the number of bytes
inline constexpr std::string_view kNullDestination = "null:";
inline bool is_memory_source(std::string_view text) { return text.starts_with(kMemorySource); }
inline bool is_null_destination(std::string_view text) { return text == kNullDestination; }

inline SessionRef reference(const std::string& id) {
  SessionRef ref;
  ref.set_id(id);
  return ref;
}

inline LimitRequest limit_of(const std::string& id, uint64_t rate_bps) {
  LimitRequest request;
  request.set_id(id);
  request.set_rate_bps(rate_bps);
  return request;
}

inline PriorityRequest priority_of(const std::string& id, int32_t priority) {
  PriorityRequest request;
  request.set_id(id);
  request.set_priority(priority);
  return request;
}

// One that it has pinned.
inline bool knows_peer(const NodeReply& node, std::string_view name) {
  return std::any_of(node.peers().begin(), node.peers().end(),
                     [name](const Peer& peer) { return peer.name() == name; });
}

// That were sent with a number of their own: chunks, chunks again, and repair symbols.
inline uint64_t datagrams_sent(const Session& session) {
  return session.chunks() + session.retransmits() + session.parity();
}

}  // namespace sluice::api
