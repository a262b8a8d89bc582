// What nodes say of a transfer that a third one orders (docs/WIRE.md, 2.13): the words of
// control/proto/orders.proto, as plain data.
//
// Pure. What came from a peer passes admit() (messages.h) before anything else looks at it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "control/catalog/catalog.h"
#include "control/selection/selection.h"
#include "control/verdict/verdict.h"
#include "dataplane/base/error.h"
#include "dataplane/base/options/options.h"

namespace sluice::transfer {

inline constexpr size_t kGrantBytesMax = 3000;      // of a SignedGrant's parts: it travels in a Hello
inline constexpr size_t kGrantPathBytesMax = 2048;  // of the destination that it names
inline constexpr size_t kOrderedFilesTold = 100;

// As it came, or was signed: nobody encodes it anew. control/grant reads it.
struct SignedGrant {
  std::string grant;
  std::string signature;
  std::string certificate;

  size_t bytes() const { return grant.size() + signature.size() + certificate.size(); }
  bool operator==(const SignedGrant&) const = default;
};

// By whose grant a session moves data, and what that allows: what a node has found good, and keeps of it.
struct Granted {
  SignedGrant grant;
  std::string issuer;  // whose rights count here, by the name that this node has for it
  std::string path;    // at the destination
  bool overwrite = false;
  uint64_t bytes_max = 0;  // 0: no bound
  int64_t end_by_unix_ns = 0;

  bool operator==(const Granted&) const = default;
};

struct Order {
  SignedGrant grant;
  std::vector<std::string> source_paths;
  selection::Selection selection;
  std::string destination;
  options::Wish options;
  std::optional<Error> problem;  // an option that cannot be
};

struct OrderedFile {
  std::string source;
  std::string destination;
  uint64_t size_bytes = 0;
  uint64_t bytes_done = 0;
  bool done = false;
  std::string digest_source;
  std::string digest_destination;
};

struct OrderNames {
  uint64_t total = 0;
  uint64_t done = 0;
  uint64_t failed = 0;
  uint64_t left_out = 0;
  bool listing = false;  // the list has not ended
  std::vector<catalog::FailedName> failures;
};

struct OrderFigures {
  uint64_t bytes_sent = 0;
  uint64_t chunks = 0;
  uint64_t retransmits = 0;
  uint64_t lost = 0;
  uint64_t rtt_ns = 0;
  uint64_t elapsed_ns = 0;
  uint64_t data_elapsed_ns = 0;
  uint32_t attempts = 0;
};

// How it stands at the source. `state`: as State of the API's Session (control/proto/api.proto).
struct OrderState {
  uint32_t state = 0;
  uint64_t bytes_total = 0;
  uint64_t bytes_done = 0;
  OrderNames names;
  uint64_t rate_bps = 0;  // 0: there is no figure
  uint64_t rate_limit_bps = 0;
  std::string waiting_for;
  uint32_t error_code = 0;
  std::string error;
  OrderFigures figures;
  uint32_t lanes = 0;
  uint32_t chunk_bytes = 0;
  std::string crc;
  std::string protection;
  uint32_t queue_place = 0;
  uint32_t queue_length = 0;
  verdict::Verdict verdict;
  std::vector<OrderedFile> files;
};

// As numbered on the wire.
enum class OrderWishKind : uint8_t { kNothing, kCancel, kPause, kContinue, kLimit, kRenew };

struct OrderWish {
  OrderWishKind kind = OrderWishKind::kNothing;
  uint64_t rate_bps = 0;  // of kLimit
  SignedGrant grant;      // of kRenew
};

}  // namespace sluice::transfer
