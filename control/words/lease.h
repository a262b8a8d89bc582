// Leases: what sessions run under so that no two nodes write the same at a time (docs/WIRE.md, 2.14), and
// sessions that go to another node (2.15).
//
// Pure. What came from a peer passes admit() (messages.h) before anything else looks at it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "dataplane/base/error.h"

namespace sluice::transfer {

inline constexpr size_t kLeaseNameBytesMin = 16;
inline constexpr size_t kLeaseNameBytesMax = 64;
inline constexpr uint64_t kLeaseEpochMax = INT64_MAX;
inline constexpr size_t kMoveBytesMax = 3000;  // of a SignedMove's parts: it travels in a Hello

// The highest epoch that a node has seen counts there. The name is a secret of those who may take it.
struct Lease {
  std::string name;
  uint64_t epoch = 0;

  bool operator==(const Lease&) const = default;
};

// kUsage names what is wrong with a name, or an epoch.
Status check_lease(const Lease& lease);
// Of "NAME:EPOCH".
Result<Lease> parse_lease(std::string_view text);
// What a node keeps of one.
struct LeaseRow {
  Lease lease;               // its highest epoch
  std::string holder;        // the node that has taken it; empty: this one
  int64_t used_unix_ns = 0;  // when it was named last, within an hour

  bool operator==(const LeaseRow&) const = default;
};

// For logs and errors: whoever reads one could not take it.
std::string shown_lease(const Lease& lease);

// As it came, or was signed: nobody encodes it anew.
struct SignedMove {
  std::string move;
  std::string signature;
  std::string certificate;

  size_t bytes() const { return move.size() + signature.size() + certificate.size(); }
  bool operator==(const SignedMove&) const = default;
};

// The last time that a session went to another node.
struct Moved {
  SignedMove move;
  std::string from;  // names at this node; empty: this one
  std::string to;
  uint64_t epoch = 0;

  bool operator==(const Moved&) const = default;
};

}  // namespace sluice::transfer
