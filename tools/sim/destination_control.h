// The simulator's control at the destination: thin, in the order of steps that sluice-control has, around the
// production's Receiver and LossDetector.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "control/recovery/loss_detector.h"
#include "control/recovery/receiver.h"
#include "tools/sim/lanes.h"

namespace sluice::sim {

class DestinationControl final : public Control {
 public:
  explicit DestinationControl(Host& host);
  void tick() override;
  void connected() override;
  void lost() override { up_ = false; }
  void message(const Message& message) override;
  End end() const override { return end_; }

 private:
  enum class Flows : uint8_t { kNone, kFound, kLive, kClosing, kFiles, kOpening };

  void restore();
  void restore_file(uint32_t object, const FileRecord& record);
  void tell_oracle();
  void check_dataplane();
  void hello(const Message& message);
  void go_on_with_flows();
  void begin_attempt();
  void open_attempt();
  void make_files();
  void open_object(uint32_t object);
  void open_flows();
  void send_held();
  void on_event(const board::Event& event, uint32_t lane);
  void detect_losses();
  void do_out();
  void fail(End end, const char* reason);

  // destination_commit.cc
  void sync(uint32_t object);
  void synced(uint32_t object, bool good);
  void report(uint32_t object);
  void finish(uint32_t object);
  void cut_to_size(uint32_t object);
  void rename(uint32_t object);
  void sync_name(uint32_t object);
  void name_synced(uint32_t object);

  Host& host_;
  Lanes lanes_;
  recovery::Receiver receiver_;
  std::vector<FileRecord> files_;
  std::vector<recovery::LossDetector> detectors_;
  Flows flows_ = Flows::kNone;
  bool up_ = false;
  std::optional<Message> hello_;  // not yet answered
  bool held_due_ = false;         // the answer lacks what is held
  bool directory_synced_ = false;
  std::vector<uint32_t> closing_objects_;
  End end_ = End::kNone;
};

}  // namespace sluice::sim
