// The sending half of one worker: partitions become extents read ahead, extents become paced chunks,
// and reports of loss become retransmissions inside the same paced budget.
//
// One thread: the worker; no allocation, lock or blocking call outside open(). An extent's buffer goes from
// the pool through the states of extent_state.h and back, once the peer has completed it and the device has
// let go of it. TxSide::Work (tx_flow.h) lists what a flow may send, in order.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "dataplane/coding/compress_choice.h"
#include "dataplane/coding/parity_choice.h"
#include "dataplane/core/done_lists.h"
#include "dataplane/core/extent_table.h"
#include "dataplane/core/fifo.h"
#include "dataplane/core/hole_map.h"
#include "dataplane/core/pacer.h"
#include "dataplane/core/sent_ring.h"
#include "dataplane/core/status.h"
#include "dataplane/lane/extent_state.h"
#include "dataplane/lane/flow_channel.h"
#include "dataplane/lane/work_order.h"
#include "dataplane/lane/worker_resources.h"
#include "storage/digest.h"
#include "storage/extent_pool.h"

namespace sluice::lane {

struct Partition {
  uint32_t object = 0;
  uint64_t offset = 0;
  uint64_t length = 0;
  uint64_t read = 0;  // bytes for which reads were started
};
struct Repair {
  uint32_t object = 0;
  uint64_t offset = 0;
  uint64_t length = 0;
};

// How an extent travels.
enum class TxForm : uint8_t {
  kUndecided,  // not before its first chunk
  kPlain,
  kCompressing,  // nothing of it may leave
  kCompressed,
};

// What a sender knows of the repair symbols of one extent's blocks.
struct ParityOfExtent {
  static constexpr uint32_t kBlocksMax = 64;

  bool coded = false;    // a lost symbol is made good by another one, not by the chunk itself
  bool waiting = false;  // some are to be sent
  coding::Scheme scheme = coding::Scheme::kReedSolomon;
  uint16_t blocks = 0;
  uint16_t ahead = 0;                // of each block of K chunks, as was chosen
  uint16_t next = 0;                 // the block whose turn it is
  uint32_t pending = 0;              // to be sent, of all blocks
  uint16_t sent[kBlocksMax] = {};    // and the number of the next one
  uint16_t wanted[kBlocksMax] = {};  // to be sent
  uint16_t lost[kBlocksMax] = {};    // chunks and repair symbols
};

class TxSide {
 public:
  // Uses buffers [0, extents) of the queue, and disk slots of the same numbers. `pattern` is what
  // kObjectGenerate sends, and the padding of probes.
  TxSide(WorkerResources& resources, uint32_t extents, const net::Buffer* pattern);
  ~TxSide();

  // Commands of control.
  // 0 or errno.
  int open(uint32_t flow_slot, const board::FlowConfig& config, const FlowSecret& secret, uint64_t now_ns);
  // Closes the flow of this slot, and answers with kFlowClosed when nothing of it is left. False: there is
  // none, or its tag is another.
  bool close(uint32_t flow_slot, uint32_t tag);
  bool add_partition(const board::Command& command);
  bool add_repair(const board::Command& command);
  bool peer_has(const board::Command& command);
  bool add_padded(const board::Command& command);
  void query_work(const board::Command& command);  // answered by kQueued, kHeld, kWorkEnd

  // A datagram whose header says that it is a status. Counts what becomes of it.
  void on_status(const net::RxDatagram& datagram, const wire::Header& header, uint64_t now_ns);
  // One that says that it is an echo on its way back.
  void on_echo(const net::RxDatagram& datagram, const wire::Header& header, uint64_t now_ns);
  void on_read(uint32_t slot, int error);  // the disk's answer

  // Reads ahead and sends what the pacers allow. True when anything was done.
  bool pump(uint64_t now_ns);
  // In that turn a flow sent all that was due by its rate.
  bool on_pace() const { return on_pace_; }
  // When something is next due (pacing, probe), for the idle sleep.
  uint64_t next_due_ns(uint64_t now_ns) const;
  bool has_flows() const { return !flows_.empty(); }

 private:
  struct Flow;
  struct Work;
  using State = TxExtentState;
  struct Extent {
    State state = State::kFree;
    bool repair = false;
    bool ends_partition = false;
    bool listed_early = false;      // the peer has it, by repairs, before its first pass has ended
    bool never_listed = false;      // the peer has it, and will not list it for this flow
    bool retire_when_read = false;  // nobody wants it any more, but the disk has not finished
    // In which its holes were sent without being asked for, since when, and where this one goes on.
    uint8_t passes = 0;
    uint64_t passes_since_ns = 0;
    uint32_t repeat_at = 0;
    Flow* flow = nullptr;
    Object* object = nullptr;
    const net::Buffer* buffer = nullptr;
    net::Buffer mapped;  // `buffer` of a source that is sent from where it lies
    ExtentKey key;
    uint64_t offset = 0;
    uint32_t length = 0;
    uint32_t wire_bytes = 0;  // of its chunks: `length`, but for a compressed one
    TxForm form = TxForm::kPlain;
    uint32_t sent = 0;  // of wire_bytes, in the first pass
    uint64_t crc = 0;   // of the extent as it lies in its file: of the bytes sent in the first pass
    uint64_t partition_offset = 0;
    uint64_t partition_length = 0;
    HoleMap holes;  // what the peer may still miss
    ParityOfExtent parity;

    // In chunks: of the next pass and those before.
    uint32_t repeat_cost() const { return holes.count() * (passes + 1U); }
  };

  Flow* find(uint32_t flow_slot);
  // nullptr: no such flow for this datagram.
  Flow* match(const net::RxDatagram& datagram, uint64_t flow_id, uint64_t now_ns);
  bool follow(Flow& flow, const net::RxDatagram& datagram, const wire::Status& status, uint64_t now_ns);
  void take_status(Flow& flow, uint64_t status_seq, const wire::Status& status, uint64_t now_ns);
  static void note_losses(Flow& flow, const wire::Status& status, uint64_t now_ns);
  void take_levels(Flow& flow, const wire::Status& status);
  static void take_padded(Flow& flow, const wire::Status& status);
  static uint32_t extent_on_wire(const Flow& flow);
  void take_done(Flow& flow, const wire::Status& status, bool newest);
  void take_holes(Flow& flow, const wire::Status& status, uint64_t now_ns);
  bool take_done_entry(Flow& flow, uint32_t number, const wire::DoneExtent& extent);
  void take_gaps(Flow& flow, const wire::Status& status);
  void read_ahead(Flow& flow, uint64_t now_ns);
  bool start_read(Flow& flow, Object& object, uint64_t number, bool repair, uint32_t* slot);
  void take_mapped(uint32_t slot);
  void read_ended(uint32_t slot, int error);
  uint64_t ahead_ns() const;
  bool pump_flow(Flow& flow, uint64_t now_ns);
  Sent send_retransmission(Flow& flow, uint64_t now_ns);
  Sent send_repair(Flow& flow, uint64_t now_ns);
  Sent send_new(Flow& flow, uint64_t now_ns);
  void skip_unreadable(Flow& flow);
  bool is_sent_plain(const Flow& flow, const Repair& asked, uint32_t slot) const;
  Sent send_padded(Flow& flow, uint64_t leaves_ns);
  // Echoes (tx_echo.cc)
  static void look_at_echoes(Flow& flow, uint64_t now_ns);
  Sent send_echo(Flow& flow, uint64_t leaves_ns);
  void compare_echo(Flow& flow, uint64_t number, std::span<const uint8_t> came);
  uint64_t send_time_ns(const Flow& flow, uint64_t leaves_ns) const;
  void count_blocked(Flow& flow, uint64_t ns) const;
  Sent send_repeat(Flow& flow, uint64_t now_ns);
  // Erasure codes (tx_parity.cc)
  bool prepare_codes(const board::FlowConfig& config);
  static coding::PathState path_of(const Flow& flow, bool at_end);
  coding::ParityChoice choose_parity(const Flow& flow, const coding::PathState& path, bool at_end) const;
  void begin_parity(Flow& flow, uint32_t slot);
  void send_ahead(Flow& flow, uint32_t slot, const coding::ParityChoice& choice);
  void want_parity(Flow& flow, uint32_t slot, uint32_t block, uint32_t symbols);
  bool is_made_good_by_parity(Flow& flow, const SentChunk& lost);
  bool encode_block(const Flow& flow, uint32_t slot, uint32_t block);
  Sent send_parity(Flow& flow, uint64_t now_ns);
  Sent send_parity_at_end(Flow& flow, uint64_t now_ns);
  // Compression (tx_compress.cc)
  void prepare_compression(const board::FlowConfig& config);
  bool compress_next(uint64_t now_ns);
  bool begin_compressing();
  bool begin_compressing_of(Flow& flow);
  void compressed(uint32_t slot);
  static void stay_plain(Extent& extent);
  void forget_compressing(uint32_t slot);
  static bool holds_back(const Flow& flow, Extent& extent);
  void unreadable(uint32_t slot, int error);
  bool send_chunk(Flow& flow, const Extent& extent, uint32_t at, uint32_t bytes, uint8_t flags,
                  uint64_t leaves_ns, uint64_t* digest);
  void send_probe(Flow& flow, uint64_t now_ns);
  static wire::Header probe_header(const Flow& flow, uint64_t send_time_ns, uint32_t padding_bytes);
  static uint64_t probe_due_ns(const Flow& flow, uint64_t now_ns);
  Extent* find_repeat(Flow& flow);
  void finish_first_pass(Flow& flow, uint32_t slot);
  DoneEffect complete(Flow& flow, const wire::DoneExtent& done);
  void take_back(Flow& flow, const DoneTaken& wrong);
  void give_credit_back(Flow& flow, uint32_t slot);
  void end_partition(Flow& flow, const Partition& partition);
  void tell_partition_sent(const Flow& flow, uint32_t object, uint64_t offset, uint64_t length);
  void retire(uint32_t slot);          // to the pool as soon as the device lets go
  static void let_go(Extent& extent);  // neither its flow nor its object waits for it any more
  void drain();
  void settle_closed();

  WorkerResources& resources_;
  const net::Buffer* pattern_;
  storage::ExtentPool pool_;
  std::vector<Extent> extents_;
  ExtentTable table_;
  Fifo<uint32_t> draining_;
  std::vector<std::unique_ptr<Flow>> flows_;
  // What was encoded last, and has not left.
  struct Encoded {
    uint32_t slot = ExtentTable::kNone;
    uint32_t block = 0;
    uint32_t first_id = 0;
    uint32_t symbols = 0;
    uint64_t digest = 0;
    uint32_t generation = 0;  // of the coder's memory
  };
  Encoded encoded_;
  // What is compressed just now, a step a turn.
  struct Compressing {
    uint32_t slot = ExtentTable::kNone;
    coding::Effort effort = coding::Effort::kFast;
    uint32_t taken = 0;  // bytes
    uint64_t crc = 0;    // of these
  };
  // The last step, whose time the next turn tells.
  struct TimedStep {
    uint32_t bytes = 0;
    coding::Effort effort = coding::Effort::kFast;
    uint64_t began_ns = 0;
  };
  std::unique_ptr<coding::Compressor> compressor_;  // since a flow opened that may use it
  Compressing compressing_;
  TimedStep timed_step_;
  coding::CompressSpeed compress_speed_;
  bool on_pace_ = false;
  uint32_t first_flow_ = 0;  // goes round, so that each flow is the first one now and then
};

}  // namespace sluice::lane
