// The receiving end: files on their way, loss detection, digests, group commit, NEED, the final names.
//
// On the io_context thread, inside a Session; what blocks (sync, commit) runs on the pool. A file gets
// its name only when every extent is written, its digest equals the source's, and it is durable.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "control/recovery/extent_map.h"
#include "control/recovery/loss_detector.h"
#include "control/recovery/need_planner.h"
#include "control/session/data_end.h"
#include "control/session/session.h"

namespace sluice::control {

class Destination final : public DataEnd {
 public:
  explicit Destination(Session& session);

  // Creates every file and opens the first objects; an error means that nothing may be sent.
  asio::awaitable<Status> prepare(const peer::TransferOffer& offer);
  peer::PeerMessage ready() const;

  asio::awaitable<Status> run() override;
  void on_message(const peer::PeerMessage& message) override;
  void on_event(const board::Event& event, uint32_t lane) override;
  void on_tick(uint64_t now_ns) override;
  bool complete() const override { return prepared_ && done_ == objects_.size(); }
  uint64_t bytes_total() const override { return bytes_total_; }
  uint64_t bytes_done(const FlowFigures& figures) const override;
  uint64_t progress(const FlowFigures& figures) const override;
  std::string waiting_for(const FlowFigures& before, const FlowFigures& now, uint64_t interval_ns,
                          uint64_t now_ns) const override;
  void describe(api::Session* session) const override;
  asio::awaitable<void> release() override;

 private:
  using Unsynced = std::unordered_map<uint64_t, uint64_t>;  // extent -> CRC, written but not durable

  struct Object {
    peer::File meta;
    std::string final_path;
    std::shared_ptr<exports::DestinationFile> file;  // nothing: discarded
    recovery::ExtentMap written;
    recovery::NeedPlanner planner;
    Unsynced unsynced;
    uint64_t unsynced_bytes = 0;
    uint64_t unsynced_since_ns = 0;
    uint64_t digest = 0;
    std::optional<peer::FileDigest> source_digest;
    std::vector<recovery::Range> need;  // collected from kMissing
    uint32_t query_tag = 0;
    uint32_t queries = 0;  // unanswered
    bool open = false;
    bool syncing = false;
    bool sync_failed = false;  // once: a second time ends the session
    bool finishing = false;
    bool done = false;
  };

  Status check_offer(const peer::TransferOffer& offer) const;
  asio::awaitable<Status> open_object(uint32_t index);
  void extent_written(const board::Event& event);
  void extent_failed(const board::Event& event);
  void missing(const board::Event& event);
  void partition_sent(const peer::PartitionSent& sent);
  void file_digest(const peer::FileDigest& digest);
  void fold(Object& object, uint64_t extent, uint64_t crc);  // in, or out again
  void detect_losses(uint64_t now_ns);
  void plan_needs(uint64_t now_ns);
  void send_need(uint32_t index, const std::vector<recovery::Range>& ranges);
  void start_due_syncs(uint64_t now_ns);
  void start_sync(uint32_t index);
  asio::awaitable<void> sync(uint32_t index);
  void sync_failed(uint32_t index, const Unsynced& taken, const Status& status);
  void finish_if_complete(uint32_t index);
  asio::awaitable<void> finish(uint32_t index);
  asio::awaitable<Status> make_final(uint32_t index);

  Session& session_;
  std::vector<Object> objects_;
  std::vector<uint32_t> active_;                   // open or opening, not done
  std::vector<recovery::LossDetector> detectors_;  // per lane
  std::vector<board::Gap> gaps_;
  std::string destination_;
  uint64_t bytes_total_ = 0;
  uint64_t bytes_written_ = 0;
  uint64_t unsynced_bytes_ = 0;
  uint64_t now_ns_ = 0;
  uint64_t planned_ns_ = 0;
  uint64_t done_ = 0;
  uint64_t steps_ = 0;
  uint32_t blocking_ = 0;  // syncs and commits under way
  bool prepared_ = false;
  bool peer_ended_ = false;
};

}  // namespace sluice::control
