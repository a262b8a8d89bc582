// The sending end: objects opened in order, partitions dealt to lanes, digests folded, repairs ordered.
//
// On the io_context thread, inside a Session. A lane gets its next partition when it has little left, so
// that no lane waits for the slowest. Objects are numbered as in the offer; number n may be open only
// when n - kOpenObjectsMax is done at both ends (the dataplane takes numbers modulo that).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "control/rate/fixed_rate.h"
#include "control/recovery/extent_map.h"
#include "control/session/data_end.h"
#include "control/session/session.h"
#include "control/session/source_item.h"

namespace sluice::control {

class Source final : public DataEnd {
 public:
  Source(Session& session, std::vector<SourceItem> items);

  peer::PeerMessage offer(const std::string& destination, bool overwrite) const;
  Status take_ready(const peer::TransferReady& ready);

  asio::awaitable<Status> run() override;
  void on_message(const peer::PeerMessage& message) override;
  void on_event(const board::Event& event, uint32_t lane) override;
  void on_tick(uint64_t now_ns) override;
  bool complete() const override { return done_ == objects_.size(); }
  uint64_t bytes_total() const override { return bytes_total_; }
  uint64_t bytes_done(const FlowFigures& figures) const override;
  uint64_t progress(const FlowFigures& figures) const override;
  std::string waiting_for(const FlowFigures& before, const FlowFigures& now, uint64_t interval_ns,
                          uint64_t now_ns) const override;
  void describe(api::Session* session) const override;
  asio::awaitable<void> release() override;

 private:
  struct Placed {
    uint64_t end = 0;
    uint32_t lane = 0;
  };
  struct Object {
    SourceItem item;
    recovery::ExtentMap sent;  // first pass
    uint64_t digest = 0;
    uint64_t next_offset = 0;           // of the next partition
    std::map<uint64_t, Placed> placed;  // partitions given, by offset: repairs go the same way
    std::string destination;
    uint64_t bytes_durable = 0;
    bool open = false;
    bool digest_sent = false;
    bool done = false;
    uint64_t peer_digest = 0;
  };
  struct Part {
    uint32_t object = 0;
    uint64_t offset = 0;
    uint64_t length = 0;
    uint64_t sent_end = 0;  // first passes up to here left, in order
    uint64_t reported_end = 0;
  };
  struct LaneWork {
    std::deque<Part> parts;  // given to the worker, first pass not yet ended
    uint64_t bytes = 0;
    uint64_t moved_ns = 0;  // last extent sent
    uint64_t repair_until_ns = 0;
    bool busy = false;
  };

  asio::awaitable<void> open_objects();
  asio::awaitable<Status> open_object(uint32_t index);
  void feed();
  bool wants(const LaneWork& work) const;
  std::optional<Part> next_part();
  void give(uint32_t lane, const Part& part);
  void extent_sent(const board::Event& event, uint32_t lane);
  void partition_sent(const board::Event& event, uint32_t lane);
  void extent_failed(const board::Event& event);
  void report_sent(uint32_t lane, const Part& part, uint64_t end);
  void send_digest_if_complete(uint32_t index);
  void repair(const peer::Need& need);
  void file_done(const peer::FileDone& done);
  bool has_work(uint32_t lane, uint64_t now_ns) const;
  void control_rate(uint64_t now_ns);
  void report_stuck(uint64_t now_ns);

  Session& session_;
  std::vector<Object> objects_;
  std::vector<LaneWork> lanes_;
  std::optional<rate::FixedRate> rate_;
  uint64_t part_bytes_ = 0;
  uint64_t bytes_total_ = 0;
  uint64_t now_ns_ = 0;
  uint32_t cursor_ = 0;  // object from which the next partition comes
  uint64_t done_ = 0;
  uint64_t steps_ = 0;       // for progress()
  bool peer_ended_ = false;  // SessionDone received
};

}  // namespace sluice::control
