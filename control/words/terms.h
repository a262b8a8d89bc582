// What a transfer was asked to do, what both nodes agreed upon, and what this node allows.
//
// Pure. Rates are bit/s, times nanoseconds of a monotonic clock.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "control/catalog/asked_names.h"
#include "control/deadline/forecast.h"
#include "control/deadline/outlook.h"
#include "control/digests/named.h"
#include "control/rate/mode.h"
#include "control/rate/paths.h"
#include "control/recovery/flow_ref.h"
#include "control/selection/selection.h"
#include "control/words/abilities.h"
#include "control/words/reflecting.h"
#include "dataplane/base/number.h"
#include "dataplane/base/options/options.h"
#include "dataplane/board/board.h"
#include "dataplane/core/wire.h"

namespace sluice::transfer {

inline constexpr uint32_t kProtocolVersion = 5;  // of docs/WIRE.md
inline constexpr std::string_view kNullDestination = "null:";
using catalog::kMemoryPrefix;
inline constexpr uint64_t kExtentsMax = 1ULL
                                        << 28;  // of one transfer: each costs some bits, if it is no hole
inline constexpr uint64_t kSessionBytesMax = kExtentsMax * wire::kExtentBytesMax;  // in the longest extents
inline constexpr uint32_t kExpectedLossPpmMax = 950'000;
// Extents of DigestsWanted that may be without an answer on one stream (docs/WIRE.md 2.1.6): what each source
// takes, and what this node takes as a source, and uses as a destination. In extents of 1 MiB the latter are
// 100 Gbit/s for a round trip of 200 ms and the 50 ms for which a source gathers answers. At the source each
// costs about 150 bytes.
inline constexpr uint32_t kDigestsUnansweredMin = 64;
inline constexpr uint32_t kDigestsUnansweredMax = 4096;
inline constexpr uint64_t kSecondNs = 1'000'000'000;
inline constexpr uint64_t kMillisecondNs = 1'000'000;

using recovery::FlowRef;
using recovery::LegId;
inline constexpr uint32_t kLegsMax = 8;

enum class Role : uint8_t { kUnknown, kSource, kDestination };  // unknown: the caller has not said yet
using options::IpFamily;

inline constexpr int32_t kPriorityMax = 100;  // and the least is its negative

// What an operator chose, with the node's defaults filled in (dataplane/base/options/options.def).
using options::Options;

// A user of this host who asked for a session as themselves: its files are opened as that user.
struct User {
  uint32_t uid = 0;
  std::string name;

  bool operator==(const User&) const = default;
};

// Who of a peer asked for a session, and which user of this host that is here by this node's map: its files
// are opened as that user.
struct Mapped {
  User user;
  std::string peer_user;  // as the peer names it; empty: its operators

  bool operator==(const Mapped&) const = default;
};
inline constexpr size_t kUserBytesMax = 256;  // of a user's name, in a Hello
// "alice of node alpha", "an operator of node alpha".
std::string peer_user_text(std::string_view peer, std::string_view peer_user);
// "asmith (alice at alpha)".
std::string mapped_text(const Mapped& mapped, std::string_view peer);
// Without zeros and other control bytes, and not too long to be said. Not empty.
bool good_user_name(std::string_view name);

// Files that stand outside the exports, which a process of the caller's own opens (control/users/callers.h).
struct LocalFiles {
  uint32_t uid = 0;                // whose process it is
  std::string token;               // that joins the process and the session
  std::vector<std::string> names;  // what it may open: absolute paths

  bool operator==(const LocalFiles&) const = default;
};

// What an operator of this node, or a user, asked for. The other node has none.
struct Request {
  Options options;
  std::vector<std::string> source_paths;
  selection::Selection selection;  // what of them
  std::string destination;
  uint64_t source_bytes = 0;              // as they were when it was asked for; 0: not known, or nothing
  std::optional<User> user;               // nothing: an operator asked
  std::optional<LocalFiles> local_files;  // nothing: what it names lies in exports
  std::shared_ptr<const digests::Expected> expected = {};  // of names that arrive; nothing: no list says it

  bool discards() const { return destination == kNullDestination; }
  bool into_directory() const {
    return destination.ends_with('/') || source_paths.size() > 1 || !selection.names.empty();
  }
};

// What both ends of a leg use, from the specification handshake (MCDTP, section 3.1.1).
struct Agreement {
  uint32_t lanes = 0;
  uint32_t chunk_bytes = 0;
  uint32_t extent_bytes = 0;
  uint64_t partition_bytes = 0;
  wire::CrcKind crc_kind = wire::CrcKind::kCrc64Ecma;
  uint64_t rate_bps = 0;
  bool udp_checksum = false;
  bool discard = false;
  std::array<uint8_t, 16> local_ip{};  // IPv4 as ::ffff:a.b.c.d
  std::array<uint8_t, 16> peer_ip{};
  std::vector<uint16_t> peer_ports;  // one per lane
  board::Reach reach = board::Reach::kAgreed;
  rate::Mode mode = rate::Mode::kAdaptive;
  uint32_t expected_loss_ppm = 0;
  rate::SizeReason chunk_reason = rate::SizeReason::kAgreed;
  bool chunk_auto = false;  // the source measures which size brings most
  wire::Protection protection = wire::Protection::kCrc;
  AbilitySet abilities;  // that both have
  uint32_t peer_queue_datagrams =
      0;  // of a lane that it receives, all lanes together at the worst; 0: not told
  uint32_t digests_unanswered = kDigestsUnansweredMin;

  bool ip4() const { return peer_ip[10] == 0xFF && peer_ip[11] == 0xFF; }
  rate::Terms rate_terms() const {
    return {
        .mode = mode, .cap_bps = rate_bps, .expected_loss = static_cast<double>(expected_loss_ppm) * 1e-6};
  }
};

// What this node is set to, as far as a transfer needs to know it: constant while control runs.
struct Settings {
  std::string node_name;
  bool udp_checksum_always = false;
  wire::Protection protection = wire::Protection::kAes128Gcm;  // the least for data
  bool calls_only = false;  // it does not listen: a NAT or a firewall is before it
  uint64_t partition_bytes = 64U << 20;
  uint64_t sync_lag_bytes = 64U << 20;
  uint64_t sync_lag_ns = kSecondNs;
  uint64_t connect_timeout_ns = 0;  // nothing of the data ever arrived: it fails; 0: it does not
  uint64_t stall_timeout_ns = 30 * kSecondNs;
  uint64_t resume_timeout_ns = 86400 * kSecondNs;       // for a peer that this node called
  uint64_t keep_ns = 7 * 86400 * kSecondNs;             // for one that called, and has not since
  digests::Mask digests_known = digests::kAllKinds;     // that this node can compute
  uint32_t digests_unanswered = kDigestsUnansweredMax;  // as a source; 0: it says nothing, as an older node
  bool trust_journal = false;  // what it says of unfinished files is not read again after an interruption
  // Objects that are open at the dataplane at a time, and objects of a source opened before their turn. The
  // simulator takes small ones, so that few files reach what thousands do.
  uint32_t open_objects_max = board::kOpenObjectsMax;
  uint32_t open_ahead = 16;
  // Objects up to this, such as packs of any size, do not wait for a longer one (recovery/sender.h).
  uint64_t short_bytes = 64U << 20;
};

// This node, as its transfers have it: its settings, and what they learn together while control runs.
struct ThisNode : Settings {
  std::shared_ptr<rate::Paths> paths = std::make_shared<rate::Paths>();
  std::shared_ptr<deadline::Outlook> outlook = std::make_shared<deadline::Outlook>();
  std::shared_ptr<Reflecting> reflecting = std::make_shared<Reflecting>();
};

// The dataplane that control is attached to.
struct Dataplane {
  board::PortInfo port{};
  uint64_t generation = 0;    // another at every start of it
  uint32_t tx_lanes_max = 0;  // that a transfer can have when it is alone on the node
  uint32_t rx_lanes_max = 0;
};

}  // namespace sluice::transfer
