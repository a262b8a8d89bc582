// What two nodes say to each other about a transfer: the messages of docs/WIRE.md, section 2, as plain data.
//
// Pure. control/peer turns them into the bytes of the control stream and back; the simulator hands them over
// as they are. What is in a message came from a peer: it passes admit() before anything else looks at it, and
// whoever uses it checks what it means.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "control/catalog/catalog.h"
#include "control/digests/named.h"
#include "control/rate/mode.h"
#include "control/rate/path_size.h"
#include "control/recovery/extent_map.h"
#include "control/selection/selection.h"
#include "control/verdict/verdict.h"
#include "control/words/abilities.h"
#include "control/words/lease.h"
#include "control/words/orders.h"
#include "dataplane/base/error.h"
#include "dataplane/base/file_time.h"
#include "dataplane/base/number.h"
#include "dataplane/base/path.h"
#include "dataplane/core/wire.h"

namespace sluice::transfer {

inline constexpr size_t kRangesPerMessage = 4096;
inline constexpr size_t kDigestsPerMessage = 4096;
using base::kNameBytesMax;                     // of a file
using base::kPathBytesMax;                     // of a source, or a destination
inline constexpr size_t kTextBytesMax = 1000;  // of a sentence for people
inline constexpr size_t kFilesPerOffer = 1024;
inline constexpr size_t kKeptBytesPerOffer =
    4U << 20;  // extended attributes and ACLs; of one file they are less

struct Hello {
  uint32_t version_min = 0;
  uint32_t version_max = 0;
  std::string software;              // for logs only
  std::string session_id;            // 32 hex digits here, 16 bytes on the wire
  bool known = false;                // files were agreed upon, as far as the sender of this knows
  std::vector<uint64_t> flow_ids;    // open and fit to go on, in the order of the lanes
  bool ended = false;                // the session has ended at that node
  bool inquires = false;             // asks only whether it is still known; opens nothing
  bool names = false;                // the call is about names (control/names), and carries no session
  bool by_map = false;               // in the answer to that: names are those of a user of that node's host
  bool paused = false;               // in the answer to an inquiry: an operator has to continue it there
  uint32_t share = 0;                // of the caller: the user for whom it calls, as a number; 0: an operator
  std::string user;                  // that user's name; empty: an operator, or it is not said
  uint32_t leg = 0;                  // of the legs between these two nodes, which one
  bool orders = false;               // the call is about an order (orders.h), and carries no session
  std::optional<SignedGrant> grant;  // of the caller: a third node has ordered the session
  bool granted = false;              // in the answer: that node goes by it
  std::optional<Lease> lease;        // of the caller: under which it writes, or reads
  bool leased = false;               // in the answer: that node keeps to it
  std::optional<SignedMove> move;    // of the caller: another node has begun the session, and hands it over
};

enum class OfferedRole : uint8_t { kUnspecified, kSource, kDestination };

struct Specification {
  OfferedRole role = OfferedRole::kUnspecified;  // of the initiator
  uint32_t lanes_max = 0;
  std::string data_ip4;  // 4 bytes or empty
  std::string data_ip6;  // 16 bytes or empty
  uint32_t chunk_bytes_max_ip4 = 0;
  uint32_t chunk_bytes_max_ip6 = 0;
  rate::SizeReason chunk_reason_ip4 = rate::SizeReason::kAgreed;  // why no more
  rate::SizeReason chunk_reason_ip6 = rate::SizeReason::kAgreed;
  bool chunk_auto = false;  // the source chooses by the path's loss
  uint32_t extent_bytes_max = 0;
  std::vector<uint32_t> crc_kinds;  // wire::CrcKind, in order of preference
  uint64_t rate_bps_max = 0;
  bool udp_checksum_needed = false;
  bool prefer_ip6 = false;
  bool discard = false;
  std::vector<uint32_t> udp_ports;
  rate::Mode rate_mode = rate::Mode::kAdaptive;  // of whichever node is the source
  uint32_t expected_loss_ppm = 0;
  bool learn_address = false;    // the initiator's, from its datagrams
  uint32_t queue_datagrams = 0;  // that may wait where a lane of it is received; 0: not told
  uint32_t protection = 0;       // wire::Protection: the least that it wants
  AbilitySet abilities;          // that the initiator wants to use
};

struct SpecificationSet {
  uint32_t lanes = 0;
  uint32_t chunk_bytes = 0;
  rate::SizeReason chunk_reason = rate::SizeReason::kAgreed;
  uint32_t extent_bytes = 0;
  uint64_t partition_bytes = 0;
  uint32_t crc_kind = 0;
  uint64_t rate_bps = 0;
  bool udp_checksum = false;
  std::string data_ip;  // of the answering node; 4 or 16 bytes
  std::vector<uint32_t> udp_ports;
  bool learns_address = false;
  uint32_t queue_datagrams = 0;
  uint32_t protection = 0;          // wire::Protection: the stricter of both
  uint32_t digests_unanswered = 0;  // of an answering source (terms.h); less than the least: the least
  AbilitySet abilities;             // of those that were wanted, the ones that both have
};

struct TransferRequest {
  std::vector<std::string> source_paths;
  selection::Selection selection;
};

struct OfferedFile {
  uint32_t number = 0;  // from 0, in order, through all parts of an offer
  std::string name;
  uint64_t size_bytes = 0;
  uint32_t mode = 0;
  base::FileTimeNs mtime_ns = 0;
  catalog::FileKind kind = catalog::FileKind::kFile;
  uint32_t members = 0;                // of a pack
  std::vector<recovery::Range> holes;  // of whole extents, in order: zeros that need not be sent
  catalog::Attributes attributes;
  digests::Values expected;  // where a list says it: what its bytes have to come to
  bool operator==(const OfferedFile&) const = default;
};

// An offer may come in several messages; all but the last say that there is more. One that grows is followed
// by others while data moves: each begins with the first file that the destination has not answered for.
struct TransferOffer {
  std::vector<OfferedFile> files;
  std::string destination;
  bool into_directory = false;
  bool overwrite = false;
  bool verify = false;
  bool mkdir = false;
  bool more = false;
  bool growing = false;
  uint32_t keep = 0;          // selection::Keep, as bits: a later version knows more of them
  selection::FilePart part;   // of the one file
  digests::Mask digests = 0;  // that the destination is to compute of each file
  bool operator==(const TransferOffer&) const = default;
};

// The answer to an offer; to one that is made while data moves without flows.
struct TransferReady {
  std::vector<uint64_t> flow_ids;
  std::vector<uint32_t> credit_extents;
  std::vector<std::string> final_paths;  // of the files of that offer
  uint32_t objects = 0;                  // that it knows now
  bool growing = false;                  // it has not heard the end of their list
  uint32_t keep = 0;                     // as it was offered
};

struct ObjectState {
  ObjectId object;
  std::vector<recovery::Range> held;
  bool done = false;
  uint64_t digest = 0;
  bool end = false;
};

struct PartitionSent {
  ObjectId object;
  recovery::Range range;
  LaneId lane;
};

struct PartitionDone {
  ObjectId object;
  std::vector<recovery::Range> ranges;
};

struct Need {
  ObjectId object;
  std::vector<recovery::Range> ranges;
  std::optional<LaneId> lane;
};

// Where Ability::kParts was agreed upon: what a destination asks for, and what it hears of it.
struct Want {
  ObjectId object;
  std::vector<recovery::Range> ranges;  // whole extents
  bool withdrawn = false;               // those of them that are not begun are not wanted any more
};

struct ExtentDigests {
  ObjectId object;
  uint64_t offset = 0;            // of the first extent
  std::vector<uint64_t> digests;  // an extent each
  bool last = false;              // after the look that DigestsWanted with `last` had asked for
};

struct DigestsWanted {
  ObjectId object;
  std::vector<recovery::Range> ranges;  // whole extents
  bool last = false;                    // once all that is wanted of the object has been read
};

// Where Ability::kDigests was agreed upon: what the destination computed of the names of an object that is
// about to be called done.
inline constexpr size_t kNamesPerDigests = 1024;
struct NameDigests {
  ObjectId object;
  uint32_t first = 0;  // number of the first of these, among the names of the object
  std::vector<digests::Named> names = {};
  bool last = false;
};

struct DigestProgress {
  ObjectId object;
  uint64_t bytes = 0;    // that the destination has read of it
  uint64_t took_ns = 0;  // since the message before
};

struct FileDigest {
  ObjectId object;
  uint64_t size_bytes = 0;
  uint64_t digest = 0;
};

struct FileDone {
  ObjectId object;
  uint64_t digest = 0;
  catalog::Shortfall missing;            // of a pack
  std::optional<uint64_t> whole_digest;  // of all of a file that was finished (docs/WIRE.md 2.17)
};

// Nothing of it stands at the destination, or will: the destination decides it, the source asks for it.
struct ObjectFailed {
  ObjectId object;
  std::vector<catalog::FailedName> names;  // the first of a pack's; of a file that one
};

struct SessionDone {
  uint64_t files = 0;
  uint64_t bytes = 0;
};

// What it carries may be left out, and is for people only.
struct Heartbeat {
  std::optional<board::Load> load;             // of a destination, since the one before
  std::optional<verdict::Verdict> bottleneck;  // of a source: of late, or
  bool whole = false;                          // of the whole session
};

struct Failure {
  uint32_t code = 0;  // sluice::ErrorCode, if it is one
  std::string message;
};

struct Pause {  // by an operator of that node, or, with a place, because it is full
  std::string node;
  uint32_t place = 0;   // in its queue: 1 is the next
  uint32_t places = 0;  // that wait there
};

struct RateLimit {        // of the destination's operator
  uint64_t rate_bps = 0;  // 0: none any more
};

using Message =
    std::variant<Hello, Specification, SpecificationSet, TransferRequest, TransferOffer, TransferReady,
                 ObjectState, PartitionSent, PartitionDone, Need, FileDigest, FileDone, SessionDone,
                 Heartbeat, Failure, Pause, RateLimit, ObjectFailed, Want, ExtentDigests, DigestsWanted,
                 NameDigests, DigestProgress, Order, OrderState, OrderWish>;

// As docs/WIRE.md calls it, for errors and logs.
std::string_view message_name(const Message& message);

// The one gate of what a peer says. Names, paths and lists that are longer than docs/WIRE.md allows, and
// ranges that no object can have, are kIncompatible. Texts that are only shown become printable and are cut.
Status admit(Message* message);
// What cannot be agreed with the peer, or it must not say.
Error incompatible(std::string message);
// About how much memory it takes.
size_t memory_bytes(const Message& message);

// What a peer's Failure means here: its code if it is a known one.
Error error_of(const std::string& peer_name, const Failure& failure);
Failure failure_of(const Error& error);

}  // namespace sluice::transfer
