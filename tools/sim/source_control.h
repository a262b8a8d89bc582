// The simulator's control at the source: thin, in the order of steps that sluice-control has, around the
// production's Sender and FixedRate.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "control/rate/fixed_rate.h"
#include "control/recovery/sender.h"
#include "tools/sim/lanes.h"

namespace sluice::sim {

class SourceControl final : public Control {
 public:
  explicit SourceControl(Host& host);
  ~SourceControl() override;
  void tick() override;
  void connected() override;
  void lost() override;
  void message(const Message& message) override;
  End end() const override { return end_; }

 private:
  enum class Flows : uint8_t { kNone, kAsking, kFound, kOpening, kLive, kClosing };
  enum class Call : uint8_t { kDown, kCalling, kUp };

  recovery::Sender::Options options() const;
  void check_dataplane();
  void found_flows();
  void on_event(const board::Event& event, uint32_t lane);
  void ready(const Message& message);
  void open_flows();
  void go_on();
  void do_out();
  void set_rates();
  void reread();
  void journal_crcs();
  void fail(End end, const char* reason);
  void finish();
  bool source_is_unchanged() const;
  Host& host_;
  Lanes lanes_;
  recovery::Sender sender_;
  std::optional<rate::FixedRate> rate_;
  Flows flows_ = Flows::kNone;
  Call call_ = Call::kDown;
  uint64_t next_call_ns_ = 0;
  uint32_t query_tag_ = 0;
  uint32_t queries_ = 0;
  bool went_ = false;  // peer_said_all() was called, of this connection
  bool held_end_ = false;
  bool same_ = false;
  std::optional<Message> ready_;  // new flows, waiting until the old ones are closed
  bool rereading_ = false;
  bool committing_ = false;
  uint64_t committed_ns_ = 0;
  End end_ = End::kNone;
};

// The inode of each of the source's files.
uint64_t source_inode(const Host& host, uint32_t object);

}  // namespace sluice::sim
