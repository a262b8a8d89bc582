// What a transfer wants done, as plain data. Whoever performs it answers with the event that is named beside
// it (events.h), once, however it ended; effects without one are not answered.
//
// Pure. control/runtime performs them on sockets, files and the board, tools/sim in its virtual world. They
// are performed in the order in which they come. What is asked for may be answered in any order.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "control/recovery/receiver.h"
#include "control/selection/selection.h"
#include "control/words/messages.h"
#include "control/words/records.h"
#include "dataplane/board/board.h"
#include "dataplane/sums/subtree.h"

namespace sluice::transfer {

// ---- the control stream ------------------------------------------------------------------------

struct Call {  // opens a stream to the leg's node -> CallEnded
  LegId leg;
  std::vector<Message> words;  // said there as soon as it is known to be that node
};
// Opens the connection for a Call of this leg that follows soon. Nothing is said there before the Call.
struct Dial {
  LegId leg;
};
struct TakeCall {  // the call of the peer that waits (PeerCalled) is the leg's stream from now on
  LegId leg;
};
struct RefuseCall {  // says `word` to the call that waits and ends it
  LegId leg;
  Message word;
};
struct Send {  // in order; dropped when the stream has ended
  LegId leg;
  Message message;
};
struct HangUp {  // what was sent still leaves, within a bound; nothing more is heard of this stream
  LegId leg;
};

// ---- the board ---------------------------------------------------------------------------------

struct ClaimFlows {  // of an earlier life of this control, by the leg's record -> FlowsClaimed
  LegId leg;
  LegRecord record;
  bool receives = false;
};
struct DropClaim {  // wanted no more: they end as those of nobody. ClaimFlows is answered at once
  LegId leg;
};
struct ReserveFlows {  // so many flows, and the session slot if no leg has it yet -> FlowsReserved
  LegId leg;
  board::Direction direction{};
  uint32_t lanes = 0;
  bool may_wait = false;  // in turn, until there are as many; otherwise kResources at once
};
struct ReserveBuffers {  // credit or read buffers for the reserved flows, in turn -> BuffersReserved
  LegId leg;
  board::Direction direction{};
};
struct ShrinkLanes {  // gives back the reserved flows behind the first `lanes`
  LegId leg;
  uint32_t lanes = 0;
};
// The performer fills in the session's slot, and hands over the flow's secret, which it takes from the leg's
// stream.
struct OpenFlow {  // -> FlowEvent kFlowOpened
  LegId leg;
  LaneId lane;
  board::FlowConfig config;
  wire::Protection protection{};
};
struct CloseFlow {  // -> FlowEvent kFlowClosed
  LegId leg;
  LaneId lane;
};
struct CommandLane {  // never fails; its answers are FlowEvents
  LegId leg;
  recovery::LaneCommand command;
};
struct SetRate {
  LegId leg;
  LaneId lane;
  uint64_t rate_bps = 0;
  bool ramps = false;  // it is still being found
};
struct SettleLane {  // runs of lost tx_seq for the worker's next statuses (there is room for them), and what
                     // is settled
  LegId leg;
  LaneId lane;
  std::vector<board::Gap> gaps;
  uint64_t settled_below = 0;
};
struct DrainEvents {  // every event that waits on the board comes first -> EventsDrained
  LegId leg;
};
struct ReleaseFlows {  // flows and buffers are given back -> FlowsReleased
  LegId leg;
  // Flows of other legs use the objects and the slot, or will. Otherwise these are given back, too.
  bool keep_objects = false;
};

struct OpenObject {  // at the dataplane -> ObjectOpened
  ObjectId object;
  uint32_t flags = 0;  // board::ObjectFlags; kObjectDirect is added by the performer, who knows the file
  uint64_t size_bytes = 0;
  uint32_t extent_bytes = 0;
  // That are computed of each extent; the performer leaves out what the dataplane does not have.
  sums::Mask sums = 0;
  bool may_exist = false;  // an earlier life of this control may have opened it
};
struct CloseObject {  // -> ObjectClosed
  ObjectId object;
};
struct FetchObject {  // the descriptor that the dataplane holds, for ReopenFile -> ObjectFetched
  ObjectId object;
};

// ---- files of a source -------------------------------------------------------------------------

// A long list may come in parts: then the last of its files says that the list is growing.
struct OpenSources {  // -> SourcesOpened
  std::vector<std::string> paths;
  selection::Selection selection;
  LegId of_leg;  // whose handshake asks
};
// More of a list that is growing -> ListRead, however long that takes, also when the attempt is over, and not
// after ReleaseFiles. If nothing of it is under way: all that is not in the catalog.
struct ReadList {
  uint32_t tag = 0;
  std::vector<std::string> paths;
  selection::Selection selection;
};
struct ReopenSources {  // those that are not open; each must be the file that is known -> SourcesReopened
};
struct CheckSource {  // is it still as it was, and when did anything happen to it? -> SourceChecked
  ObjectId object;
  std::optional<Error> otherwise;  // what is wrong if it is, handed back
};
struct ReadExtents {  // one after the other, at most a block -> ExtentsRead
  ObjectId object;
  ExtentId first;
  std::vector<recovery::Range> ranges;  // of each
};

// ---- files of a destination --------------------------------------------------------------------

struct CreateFiles {  // all or none, or, in part, those that can be -> FilesCreated
  std::string destination;
  bool into_directory = false;
  bool in_part = false;
  bool mkdir = false;  // directories of `destination` that are missing are made
  std::vector<catalog::File> files;
};
struct RecoverFiles {  // after a restart: which stand under their names, which can be held -> FilesRecovered
};
struct ReopenFile {  // the unfinished file, by its identity; with what FetchObject brought -> FileReopened
  ObjectId object;
};
struct RecreateFile {  // its unfinished file is gone -> FileRecreated
  ObjectId object;
};
struct SyncObject {  // what was written before now is durable, found after a loss of power -> ObjectSynced
  ObjectId object;
};
struct FinishObject {  // cut to size, mode and times set, synced -> ObjectFinished
  ObjectId object;
};
struct ReadBackObject {  // past the cache where the file system allows that -> ObjectReadBack
  ObjectId object;
  recovery::Range range;
  // After so many bytes that are no hole it may end; the answer's range ends where it did.
  uint64_t data_bytes_most = UINT64_MAX;
  // Computed as well, over pieces from byte 0 on, one behind the other; then through the cache, if it may.
  digests::Mask digests = 0;
  bool cached = false;
  // Or these sums of each of its subtrees, of which digests of the object are joined. `shape`: of the object.
  sums::Mask sums = 0;
  sums::Shape shape = {};
};
struct NameObject {  // its final name, and the directory synced -> ObjectNamed
  ObjectId object;
};
struct DropFile {  // what is unfinished of it is removed, and its directory synced -> FileDropped
  ObjectId object;
};
struct ReleaseFiles {  // of either role: lets go of every descriptor -> FilesReleased
  // Unfinished files stay, and no other transfer of this node takes them; otherwise they are removed.
  bool keep = false;
};

// ---- the journal -------------------------------------------------------------------------------

// Why something is written: what follows depends on it.
enum class Entry : uint8_t {
  kRequest,    // an operator asked for it
  kAgreed,     // files were agreed upon: from here it can go on after anything
  kGrown,      // so many files more
  kFlows,      // which flows are open, or that none is
  kHeld,       // paused, or continued
  kCancelled,  // an operator wants it to end: the attempt is still to be closed
  kLimited,    // its rate, by an operator
  kPriority,   // by an operator, too
  kJudged,     // whether its deadline can be kept
  kForgotten,  // nothing of the files was moved: the next attempt begins with a handshake
  kAnew,       // one file begins anew
  kExtents,    // CRCs of extents that were sent, or are durable
  kSuspect,    // the sync of a file failed
  kNoted,      // something of a file that nothing waits for
  kFinishing,
  kNamed,
  kFailed,    // nothing of it will have a name
  kComplete,  // every file stands at the peer, who will hear that this node knows
  kEnded,
  kCleaned,  // unfinished files of an ended transfer are gone
  kAware,    // the peer knows that it ended
};
struct WriteJournal {  // -> JournalWritten
  Entry entry{};
  ObjectId object;  // of kExtents (destination), kSuspect, kAnew, kFinishing, kNamed
  Batch batch;
  Durability durability = Durability::kProcess;
  LegId of_leg;  // of kAgreed, kComplete
};

// ---- the sessions of this node -----------------------------------------------------------------

struct AskPlace {  // to be one of those that run -> PlaceTold at once, and again when it is its turn
  uint32_t ticket = 0;
  int32_t priority = 0;  // the higher goes first
  uint32_t share = 0;    // stands for the user who has it done, of this node or of the caller's
};
struct TakePlace {};     // it runs already: its flows are open
struct LeavePlace {      // it runs no more, or does not want to
  bool for_now = false;  // when it asks again, it comes before those who came after it
};

// ---- the rest ----------------------------------------------------------------------------------

enum class LogLevel : uint8_t { kDebug, kInfo, kWarn, kError };
struct Log {
  LogLevel level{};
  std::string text;
};
struct Over {  // nothing more comes of this transfer
};

using Effect =
    std::variant<Call, Dial, TakeCall, RefuseCall, Send, HangUp, ClaimFlows, DropClaim, ReserveFlows,
                 ReserveBuffers, ShrinkLanes, OpenFlow, CloseFlow, CommandLane, SetRate, SettleLane,
                 DrainEvents, ReleaseFlows, OpenObject, CloseObject, FetchObject, OpenSources, ReadList,
                 ReopenSources, CheckSource, ReadExtents, CreateFiles, RecoverFiles, ReopenFile, RecreateFile,
                 SyncObject, FinishObject, ReadBackObject, NameObject, DropFile, ReleaseFiles, WriteJournal,
                 AskPlace, TakePlace, LeavePlace, Log, Over>;

// Where the parts of a transfer put what they want done.
class Effects {
 public:
  template <typename E>
  void add(E effect) {
    list_.emplace_back(std::move(effect));
  }
  void log(LogLevel level, std::string text) { add(Log{level, std::move(text)}); }
  std::vector<Effect> drain() { return std::exchange(list_, {}); }
  bool empty() const { return list_.empty(); }

 private:
  std::vector<Effect> list_;
};

}  // namespace sluice::transfer
