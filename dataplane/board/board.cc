// SPDX-License-Identifier: Apache-2.0
#include "dataplane/board/board.h"

namespace sluice::board {

const CounterInfo* counter_table() {
  static constexpr CounterInfo kTable[] = {
#define SLUICE_COUNTER(name, unit, help) {#name, unit, help},
#include "dataplane/board/counters.def"
#undef SLUICE_COUNTER
  };
  static_assert(sizeof kTable / sizeof kTable[0] == kCounters);
  return kTable;
}

}  // namespace sluice::board
