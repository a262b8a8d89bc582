// The receiving half of one worker: chunks are checked, put in their place, and whole extents written.
//
// One thread: the worker; no allocation, lock or blocking call outside open(). An extent takes a buffer
// when its first chunk arrives and is written once, whole, when its last one has; a chunk that finds no
// buffer is dropped before it is recorded, so the sender repeats it. What arrives twice is counted.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "dataplane/coding/zstd_frame.h"
#include "dataplane/core/chunk_map.h"
#include "dataplane/core/compressed.h"
#include "dataplane/core/drain_rate.h"
#include "dataplane/core/extent_table.h"
#include "dataplane/core/fifo.h"
#include "dataplane/core/seq_window.h"
#include "dataplane/core/slot_list.h"
#include "dataplane/core/status.h"
#include "dataplane/lane/extent_state.h"
#include "dataplane/lane/flow_channel.h"
#include "dataplane/lane/parity_store.h"
#include "dataplane/lane/worker_resources.h"
#include "dataplane/sums/summer.h"
#include "storage/digest.h"
#include "storage/extent_pool.h"

namespace sluice::lane {

// Memory for repair symbols, beside that of extents.
inline constexpr uint32_t kParityShareOfExtents = 12;  // percent

class RxSide {
 public:
  // Uses buffers [first, first + extents) of the queue, and disk slots of the same numbers.
  RxSide(WorkerResources& resources, uint32_t first, uint32_t extents);
  ~RxSide();

  // 0 or errno.
  int open(uint32_t flow_slot, const board::FlowConfig& config, const FlowSecret& secret, uint64_t now_ns);
  // Closes the flow of this slot, and answers with kFlowClosed when nothing of it is left. False: there is
  // none, or its tag is another.
  bool close(uint32_t flow_slot, uint32_t tag);
  void query_missing(const board::Command& command);
  void forget(const board::Command& command);
  void give_up(const board::Command& command);

  // A datagram whose header decoded. Counts what becomes of it.
  void on_data(const net::RxDatagram& datagram, const wire::Header& header, uint64_t now_ns);
  void on_parity(const net::RxDatagram& datagram, const wire::Header& header, uint64_t now_ns);
  void on_echo(const net::RxDatagram& datagram, const wire::Header& header, uint64_t now_ns);
  void on_probe(const net::RxDatagram& datagram, const wire::Header& header, uint64_t now_ns);
  void on_written(uint32_t slot, int error);  // the disk's answer

  // Sends the statuses that are due. True when one was sent.
  bool pump(uint64_t now_ns);
  uint64_t next_due_ns() const;
  bool has_flows() const { return !active_.empty(); }
  uint32_t writing() const { return writing_; }  // extents

 private:
  struct Flow;
  struct Extent {
    RxExtentState state = RxExtentState::kFree;
    uint8_t* data = nullptr;  // where its chunks go: a buffer, the file if that is in memory; or nowhere
    int write_error = 0;      // errno: why they go nowhere although they are wanted
    Flow* flow = nullptr;     // that opened it; this and object are nullptr while it is free
    Object* object = nullptr;
    ExtentKey key;
    uint32_t length = 0;
    uint32_t wire_bytes = 0;  // of its chunks: `length`, but for a compressed one
    // What came first of it decides how its chunks are put together, until a later one says otherwise.
    std::optional<wire::CompressedHead> compressed;
    uint64_t form_seq = 0;  // the newest tx_seq of its chunks
    ChunkMap map;
    uint64_t crc = 0;
    std::vector<uint64_t> chunk_crcs;
    sums::Mask summed = 0;  // which of `sums` it has
    sums::ExtentSums sums = {};
  };
  // Where a chunk lies, as its header says and its flow divides objects.
  struct ChunkPlace {
    uint64_t number = 0;  // of the extent
    uint32_t at = 0;      // bytes into the extent
    uint32_t chunk = 0;   // of the extent
    bool begins_chunk = false;
    uint32_t slot = ExtentTable::kNone;  // of the extent, if it is open
  };
  // nullptr: no such flow for this datagram.
  Flow* match(const net::RxDatagram& datagram, const wire::Header& header, uint64_t now_ns);
  bool follow(Flow& flow, const net::RxDatagram& datagram, const wire::Header& header, uint64_t now_ns);
  // Steps of on_data. Inline: rx_side.cc alone calls them, once for each datagram.
  inline ChunkPlace place_of(const Flow& flow, const wire::Header& header) const;
  inline uint8_t* empty_place(const Flow& flow, const ChunkPlace& place, const wire::Header& header);
  Object* wanted_object(Flow& flow, uint32_t id) const;
  inline static bool is_chunk_of(const Object& object, const Flow& flow, const ChunkPlace& place,
                                 const wire::Header& header,
                                 const std::optional<wire::CompressedHead>& compressed);
  static void store_chunk(Flow& flow, Extent& extent, const ChunkPlace& place, const wire::Header& header,
                          const seal::Opened& opened);
  void count_unopened(Flow& flow, const wire::Header& header, seal::Outcome outcome);
  static bool divides_alike(const Extent& extent, const Flow& flow);
  Extent* extent_for(Flow& flow, Object& object, const ChunkPlace& place, bool repair,
                     const std::optional<wire::CompressedHead>& compressed);
  static void note_arrival(Flow& flow, const wire::Header& header, bool overtaken, uint64_t now_ns);
  void note_peer(Flow& flow, const wire::Header& header, bool overtaken, uint64_t now_ns);
  void on_old_data(Flow& flow, const net::RxDatagram& datagram, const wire::Header& header, uint64_t now_ns);
  static void mark_received(Flow& flow, const wire::Header& header, SeqWindow::Novelty novelty);
  // Erasure codes (rx_parity.cc)
  bool prepare_codes(const board::FlowConfig& config);
  bool is_parity_of(const Object& object, const Flow& flow, const wire::Header& header) const;
  board::Counter keep_parity(Flow& flow, Object& object, const wire::Header& header,
                             const seal::Opened& opened);
  void look_at_block(Extent& extent, uint32_t block);
  void look_at_chunk(Extent& extent, uint32_t chunk);
  bool decode_next();
  void decode_block(Extent& extent, uint32_t block);
  // Compressed extents (rx_restore.cc)
  void prepare_restoring(const board::FlowConfig& config);
  static bool takes_form(const wire::Header& header, const seal::Opened& opened,
                         std::optional<wire::CompressedHead>* compressed);
  bool has_form(Flow& flow, Extent& extent, const wire::Header& header,
                const std::optional<wire::CompressedHead>& compressed);
  void begin_form(Extent& extent, const std::optional<wire::CompressedHead>& compressed);
  bool restore_next();
  void restored(Extent& extent);
  void not_restored(Extent& extent);
  void begin_restoring(uint32_t extent);
  void end_restoring(uint32_t extent);
  // Sums for digests (rx_sum.cc)
  void there(Extent& extent);
  bool sum_next();
  void leave_steps(const Extent& extent);
  void choose_place(Extent& extent);
  void complete(Extent& extent);
  void store(Extent& extent);
  void written(Extent& extent, int error);
  void finished(Extent& extent);
  void release(Extent& extent);
  void release_written_elsewhere();
  void sample_disk(uint64_t now_ns);
  static void look_at_path(Flow& flow, uint64_t now_ns);
  void send_status(Flow& flow, uint64_t now_ns);
  void list_holes(const Flow& flow, size_t room, wire::Status* status) const;
  static uint64_t next_status_after(Flow& flow, uint64_t now_ns);
  void take_gaps(Flow& flow);
  void settle_closed(uint32_t flow_slot);
  uint32_t slot_of(const Extent& e) const { return first_ + static_cast<uint32_t>(&e - extents_.data()); }

  WorkerResources& resources_;
  uint32_t first_;
  storage::ExtentPool pool_;
  std::vector<Extent> extents_;
  ExtentTable table_;
  std::vector<std::unique_ptr<Flow>> flows_;  // by flow slot; null where none
  std::vector<uint32_t> active_;              // flow slots in use
  bool starved_ = false;                      // a chunk found no free extent since the last look
  uint64_t starved_ns_ = 0;                   // when that look was
  uint32_t writing_ = 0;                      // extents that the disk has
  DrainRate drain_;
  struct Decodable {
    uint32_t extent = 0;
    uint32_t block = 0;
  };
  // The extent that is restored just now, a step a turn, and those that wait for it.
  struct Restoring {
    uint32_t extent = ExtentTable::kNone;
    uint32_t taken = 0;  // bytes of its chunks
  };
  std::unique_ptr<coding::Restorer> restorer_;  // since a flow opened that may need it
  Restoring restoring_;
  SlotList restorable_;
  uint32_t restorable_turn_ = 0;
  // The same of the extent that is summed.
  struct Summing {
    uint32_t extent = ExtentTable::kNone;
    uint32_t summed = 0;  // bytes
  };
  sums::Summer summer_;
  Summing summing_;
  SlotList summable_;
  uint32_t summable_turn_ = 0;
  ParityStore parity_;
  Fifo<Decodable> decodable_;  // blocks that miss no more than repair symbols are here
};

}  // namespace sluice::lane
