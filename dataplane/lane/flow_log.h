// The network log of one flow: what happened to it, noted on the board for whoever looks into its session.
//
// One thread: the worker. Hot: a look at the level is all that it costs while nothing is to be noted.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "dataplane/core/wire.h"
#include "dataplane/lane/worker_resources.h"

namespace sluice::lane {

class FlowLog {
 public:
  FlowLog(const WorkerResources& resources, board::FlowSlot& slot) : resources_(resources), slot_(slot) {}

  bool notes(board::LogLevel level) const {
    return slot_.control.log_level.load(std::memory_order_relaxed) >= static_cast<uint64_t>(level);
  }
  void event(board::LogEvent event) const {
    if (notes(board::LogLevel::kEvents)) put(event);
  }
  // A datagram with data that left or came.
  void packet(board::LogKind kind, const wire::Header& header) const {
    if (notes(board::LogLevel::kPackets))
      put({.tx_seq = header.tx_seq,
           .offset = header.offset,
           .length = header.length,
           .object = header.object,
           .kind = kind});
  }
  // Of bytes: which of an object.
  void bytes(board::LogKind kind, uint32_t object, uint64_t offset, uint64_t length) const {
    event({.offset = offset, .length = length, .object = object, .kind = kind});
  }
  // The rate at which a flow is paced now; small steps are not told.
  void rate(uint64_t rate_bps) {
    const uint64_t step_bps = rate_bps_ / kRateSteps;
    if (rate_bps <= rate_bps_ + step_bps && rate_bps + step_bps >= rate_bps_) return;
    if (!notes(board::LogLevel::kEvents)) return;
    rate_bps_ = rate_bps;
    put({.value = rate_bps, .kind = board::LogKind::kRate});
  }
  // Whether a status that says nothing of losses is to be told: at this level only some are.
  bool report_is_due(bool names_gaps) {
    if (!names_gaps && !notes(board::LogLevel::kPackets) &&
        resources_.turn_ns - reported_ns_ < kReportIntervalNs)
      return false;
    reported_ns_ = resources_.turn_ns;
    return true;
  }

 private:
  static constexpr uint64_t kRateSteps = 64;
  static constexpr uint64_t kReportIntervalNs = 100'000'000;

  void put(board::LogEvent event) const {
    event.time_ns = resources_.turn_ns;
    if (!slot_.log.push(event)) add(slot_.state.log_dropped, 1);
  }

  const WorkerResources& resources_;
  board::FlowSlot& slot_;
  uint64_t rate_bps_ = 0;
  uint64_t reported_ns_ = 0;
};

}  // namespace sluice::lane
