// SPDX-License-Identifier: Apache-2.0
#include "control/leg/watch.h"

namespace sluice::transfer {

void Watch::start(const Job& job, const board::FlowFigures& figures, uint64_t now_ns) {
  meter_ = leg_meter_ = {};
  meter_.sample(job.bytes_done(), now_ns);
  leg_meter_.sample(figures.plain_bytes(), now_ns);
  before_ = figures;
  waiting_for_.clear();
  moved_ns_ = looked_ns_ = now_ns;
}

bool Watch::look(const Job& job, const board::FlowFigures& figures, uint64_t now_ns) {
  if (now_ns - looked_ns_ < kIntervalNs) return false;
  meter_.sample(job.bytes_done(), now_ns);
  leg_meter_.sample(figures.plain_bytes(), now_ns);
  waiting_for_ = bottleneck_.arrival().waiting_for();
  if (waiting_for_.empty() && job.has_end())
    waiting_for_ = job.end()->waiting_for(before_, figures, now_ns - looked_ns_, now_ns);
  if (!warned_) warning_ = board::memory_wait(before_, figures, now_ns - looked_ns_);
  warned_ |= !warning_.empty();
  before_ = figures;
  looked_ns_ = now_ns;
  const uint64_t mark = figures.bytes + figures.bytes_done + figures.extra.echoes.sent +
                        figures.extra.echoes.came + (figures.extra.echoes.over ? 1 : 0) + job.steps();
  const bool moved = std::exchange(mark_, mark) != mark;
  if (moved || job.waits_for_list()) moved_ns_ = now_ns;
  return moved;
}

}  // namespace sluice::transfer
