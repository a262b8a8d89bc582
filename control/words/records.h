// What a node's journal keeps of a transfer, as plain data: all that a restarted control knows of it at
// first.
//
// Pure. control/journal turns these into rows and back; the simulator keeps them as they are. A Batch is one
// transaction: whole or absent after any crash.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "control/catalog/catalog.h"
#include "control/recovery/extent_ledger.h"
#include "control/verdict/history.h"
#include "control/verdict/tally.h"
#include "control/words/lease.h"
#include "control/words/orders.h"
#include "control/words/terms.h"
#include "dataplane/base/error.h"

namespace sluice::transfer {

// kProcess survives the death of the process, kPower a loss of power as well, with all that came before it.
enum class Durability : uint8_t { kProcess, kPower };

enum class RecordState : uint8_t { kActive, kPaused, kSucceeded, kFailed, kCancelled };

// Was the session admitted with its deadline?
enum class DeadlineAdmission : uint8_t {
  kNone,      // not judged yet, or there is none
  kAdmitted,  // the deadline will be kept, as far as could be known
  kDoubtful,  // it cannot be kept; the session goes on, as its operator wanted
};

inline bool has_ended(RecordState state) { return state >= RecordState::kSucceeded; }

// A flow that is open, by which the next control finds it on the board.
struct FlowRecord {
  FlowSlotId slot;
  uint64_t flow_id = 0;
  uint32_t credit_extents = 0;
  uint16_t local_port = 0;
};

struct LegRecord {
  std::string peer;                    // name of the other node
  std::optional<Agreement> agreement;  // once files were agreed upon
  std::vector<FlowRecord> flows;
  uint64_t board_generation = 0;  // of the board on which they are
  SessionSlotId board_session;
  bool peer_unaware = false;  // the transfer ended here, and that node may still wait for it
  std::string left_out;       // why others went on without it for good; empty: they did not
};

// What an operator saw last; figures of all attempts together.
struct Summary {
  uint64_t bytes_done = 0;
  uint64_t bytes_sent = 0;
  uint64_t chunks = 0;
  uint64_t retransmits = 0;
  uint64_t duplicates = 0;
  uint64_t crc_errors = 0;  // datagrams that came damaged
  uint64_t lost = 0;        // datagrams that the network lost
  uint64_t no_room = 0;     // chunks that the destination dropped for want of a buffer
  uint64_t rtt_ns = 0;
  uint64_t elapsed_ns = 0;
  uint64_t data_elapsed_ns = 0;
  uint64_t attempts = 0;
  uint64_t bytes_resent = 0;
  std::string device;
  uint64_t parity = 0;                      // repair symbols that were sent, or that came
  uint64_t compressed_bytes = 0;            // that travelled compressed, at a source: were sent so
  uint64_t compressed_wire_bytes = 0;       // and as how many
  uint64_t decoded_chunks = 0;              // of `chunks`, at a destination: lost ones that were made of them
  std::vector<verdict::Tally::Row> causes;  // what held it, and for how long
  std::vector<verdict::Point> history;
  uint64_t digest_ns = 0;  // that the destination read files for their digests
};

// What this node has ordered of others, and takes no part in: the record's first leg is the source.
struct Ordered {
  std::string destination;  // the node's name
  bool taken = false;       // the source has it
  std::string options;      // that were asked for: an api.TransferOptions' bytes
  std::string state;        // as the source said it last: an OrderState's bytes
};

struct Record {
  std::string id;  // 32 hex digits
  bool initiator = false;
  Role role = Role::kUnknown;
  RecordState state = RecordState::kActive;
  std::optional<Error> error;  // why it ended, or what holds it
  int64_t started_unix_ns = 0;
  // It ended, and its unfinished files may still be there: whoever finds this removes them.
  bool files_left = false;
  // Of the initiator. Only Entry::kRequest carries it: a record without one leaves what the journal has.
  std::optional<Request> request;
  std::vector<LegRecord> legs;
  Summary summary;
  uint64_t limit_bps = 0;  // that an operator of this node set; 0: none
  int32_t priority = 0;    // in the node's queue
  DeadlineAdmission deadline_admission = DeadlineAdmission::kNone;
  std::optional<Granted> granted;  // a third node has ordered it
  std::optional<Ordered> ordered;
  std::optional<Lease> lease;
  std::optional<Moved> moved;    // the last time that it went to another node
  std::optional<Mapped> mapped;  // of a peer: whom its user is here
};

// Of any leg: a peer may still wait for a transfer that has ended here.
inline bool peer_unaware(const Record& record) {
  return std::ranges::any_of(record.legs, &LegRecord::peer_unaware);
}
// The first of a leg; all legs agree upon how the data is cut and checked. nullptr: files were not agreed
// upon.
inline const Agreement* agreement_of(const Record& record) {
  const auto leg =
      std::ranges::find_if(record.legs, [](const LegRecord& each) { return each.agreement.has_value(); });
  return leg == record.legs.end() ? nullptr : &*leg->agreement;
}
// The names of its peers, each once.
std::string peers_of(const std::vector<LegRecord>& legs);

struct FileRow {
  catalog::FileId file;
  catalog::File record;
};

struct BlockRows {
  ObjectId object;
  std::vector<recovery::Block> blocks;
};

// One transaction, of one transfer.
struct Batch {
  std::optional<Record> record;   // added or replaced
  std::vector<FileRow> files;     // added or replaced
  std::vector<BlockRows> blocks;  // added or replaced
  std::vector<ObjectId> restart;  // drop all blocks of these objects
  bool drop_blocks = false;       // of every object: it has ended
  bool drop_files = false;        // and the files as well: none were agreed upon
};

// All that the journal has of one transfer.
struct Saved {
  Record record;
  std::vector<catalog::File> files;
  Indexed<ObjectId, std::vector<recovery::Block>> blocks;
};

}  // namespace sluice::transfer
