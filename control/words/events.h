// What a transfer is told: by the operator, by its peers, by the board, and by whoever performs its effects
// (effects.h). An event that answers an effect comes exactly once for each, in any order.
//
// Pure. No event may be dropped for the phase that a transfer is in: what has happened has happened.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <variant>
#include <vector>

#include "control/words/effects.h"

namespace sluice::transfer {

// ---- the operator, and this control itself -----------------------------------------------------

struct Begin {           // first, once
  bool at_once = false;  // nobody waits for a place of this node: it calls as soon as the journal knows
};
struct Cancel {
  std::optional<Error> reason = {};  // nothing: an operator of this node
};
struct GrantRenewed {  // who ordered it has signed another one, with later times
  Granted granted;
};
struct PauseAsked {
  std::optional<Error> reason = {};  // nothing: an operator of this node
};
struct ContinueAsked {};
struct LimitAsked {        // from now on, but never above what was agreed upon
  uint64_t limit_bps = 0;  // 0: as agreed upon
};
struct CeilingTold {      // by a quota of this node: no operator's limit raises it
  uint64_t rate_bps = 0;  // 0: there is none
};
struct PriorityAsked {   // of those that wait for a place at this node, the higher goes first
  int32_t priority = 0;  // -kPriorityMax to kPriorityMax
};
struct HandOver {  // as Detach, and no flow stays: another node goes on with it
  Error reason;
};
struct Detach {};  // this control stops: flows, unfinished files and journal stay for the next one

// ---- the control stream ------------------------------------------------------------------------

struct CallEnded {  // answers Call; on success the stream is open
  LegId leg;
  Status status;
  uint64_t rtt_ns = 0;  // of the connection; 0: not known
  bool said = false;    // the peer may have heard the words of a call that failed
};
struct PeerCalled {  // the peer opened a stream and said hello; one that waited before is gone
  LegId leg;
  Hello hello;
};
struct PeerInquires {  // it asked whether this node still knows the transfer, and was told so
  LegId leg;
};
struct CallLost {  // the call that waits has ended
  LegId leg;
};
struct Received {
  LegId leg;
  Message message;
};
struct StreamEnded {  // not after HangUp
  LegId leg;
  std::string reason;
};

// ---- the board ---------------------------------------------------------------------------------

struct BoardAttached {
  Dataplane dataplane;
};
struct BoardLost {};  // with all flows, objects, buffers and the slot; what was asked of it is still answered
struct FlowsClaimed {  // answers ClaimFlows, once a dataplane is attached, or the claim is dropped
  LegId leg;
  bool adopted = false;
  uint32_t random = 0;  // tells answers to this control from those to another
};
struct Grant {
  FlowSlotId slot;
  uint16_t local_port = 0;
  uint64_t random = 0;  // for the flow's id, which datagrams of a former life must not know
};
struct FlowsReserved {  // answers ReserveFlows
  LegId leg;
  Status status;
  SessionSlotId session;
  std::vector<Grant> grants;
};
struct BuffersReserved {  // answers ReserveBuffers
  LegId leg;
  Status status;
  std::vector<uint32_t> credit_extents;  // of each lane, when receiving
};
struct FlowEvent {  // of a flow of this leg; `state` is valid during the call
  LegId leg;
  LaneId lane;
  board::Event event;
  const board::FlowState* state = nullptr;
};
struct EventsDrained {  // answers DrainEvents
  LegId leg;
};
struct FlowsReleased {  // answers ReleaseFlows
  LegId leg;
};
struct Tick {  // about once a millisecond while there are flows; the slots are valid during the call
  LegId leg;
  std::span<const board::FlowSlot* const> lanes;
  size_t command_backlog = 0;                         // commands of this node that the workers have not taken
  std::span<const board::WorkerSlot* const> workers;  // of these lanes, each once, in a constant order
};

struct ObjectOpened {
  ObjectId object;
  Status status;
};
struct ObjectClosed {
  ObjectId object;
};
struct ObjectFetched {
  ObjectId object;
  bool found = false;
};

// ---- files -------------------------------------------------------------------------------------

struct SourcesOpened {
  Result<std::vector<catalog::File>> files;
  LegId of_leg = {};
};
// Answers ReadList, with its tag: what was found since, and whether that was all.
struct ListRead {
  uint32_t tag = 0;
  Result<std::vector<catalog::File>> files;
  bool ended = false;
};
struct SourcesReopened {  // which are not the files that are known, and why; kIntegrity: another file now
  std::vector<std::pair<ObjectId, Error>> failed;
};
struct SourceChecked {  // kIntegrity: its size or mtime changed
  ObjectId object;
  Status status;
  std::optional<Error> otherwise;
  int64_t ctime_ns = 0;  // of now
  // With `otherwise`, of a pack: the first of its names, and why each does not arrive.
  std::vector<catalog::FailedName> names = {};
};
struct ExtentsRead {
  ObjectId object;
  ExtentId first;
  Result<std::vector<uint64_t>> crcs;  // of each that was to be read
};

// Where they will stand, and which they are; in the order of the offer. FileState::kFailed: that one cannot.
struct FilesCreated {
  Result<std::vector<catalog::File>> files;
};
enum class Recovered : uint8_t {
  kNamed,  // under its final name, and that is durable
  kHeld,   // the unfinished file is open and locked
  kAway,   // not found, or somebody else holds it: the dataplane may
};
struct FilesRecovered {
  Indexed<ObjectId, Recovered> objects;
};
struct FileReopened {  // false: it is gone, or another file
  ObjectId object;
  Result<bool> found;
};
struct FileRecreated {
  ObjectId object;
  Result<catalog::FileIdentity> identity;
  catalog::Failure failure = catalog::Failure::kNone;  // what the peer is told of an error; kNone: its code
};
struct ObjectSynced {
  ObjectId object;
  Status status;
};
struct ObjectFinished {
  ObjectId object;
  Status status;
};
struct ObjectReadBack {
  ObjectId object;
  recovery::Range range;  // that was read: from the asked one's begin
  Result<uint64_t> crc;
  digests::Values digests = {};         // with the last piece
  std::vector<sums::Summed> sums = {};  // of its bytes, if they were asked for
  uint64_t took_ns = 0;
};
struct ObjectNamed {
  ObjectId object;
  Status status;
  bool given = false;          // it has its name, even if something was wrong after that
  bool away = false;           // its unfinished file was removed, or the path leads elsewhere
  catalog::Shortfall missing;  // names of a pack that were not given
  // The file that has the name, if it is not the one that was received: one of the same bytes stood there.
  std::optional<catalog::FileIdentity> identity = {};
  catalog::Failure failure = catalog::Failure::kNone;  // as of FileRecreated
  std::optional<uint64_t> whole_digest = {};           // of a file that was finished: of all of it
  std::vector<digests::Named> digests = {};            // of a pack's names that were given
};
struct FileDropped {
  ObjectId object;
  Status status;
};
struct FilesReleased {
  uint32_t left = 0;  // unfinished files that were to be removed and could not be
};

struct JournalWritten {
  Entry entry{};
  ObjectId object;
  Status status;
  LegId of_leg = {};
};

struct PlaceTold {  // answers AskPlace: at once, and once more when its turn has come
  uint32_t ticket = 0;
  uint32_t place = 0;   // 1 is the next; 0: it runs
  uint32_t places = 0;  // that wait
};

// The time that Transfer::due_ns() named has come.
struct TimerDue {};

using Event =
    std::variant<Begin, Cancel, GrantRenewed, HandOver, PauseAsked, ContinueAsked, LimitAsked, CeilingTold,
                 PriorityAsked, Detach, CallEnded, PeerCalled, PeerInquires, CallLost, Received, StreamEnded,
                 BoardAttached, BoardLost, FlowsClaimed, FlowsReserved, BuffersReserved, FlowEvent,
                 EventsDrained, FlowsReleased, Tick, ObjectOpened, ObjectClosed, ObjectFetched, SourcesOpened,
                 ListRead, SourcesReopened, SourceChecked, ExtentsRead, FilesCreated, FilesRecovered,
                 FileReopened, FileRecreated, ObjectSynced, ObjectFinished, ObjectReadBack, ObjectNamed,
                 FileDropped, FilesReleased, JournalWritten, PlaceTold, TimerDue>;

}  // namespace sluice::transfer
