// The life of an extent's buffer on either side, as a table of what may follow what.
//
// Pure. Who holds a buffer follows from its state alone: the disk may write into a kReading one, the device
// may read a kReady, kHeld or kDraining one, the disk reads a kWriting one, and only a kFree one may be
// another extent's. So a change that is not in the table would let two of them have the same memory.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "dataplane/base/check.h"

namespace sluice::lane {

enum class TxExtentState : uint8_t {
  kFree,
  kReading,   // the disk fills it
  kReady,     // its bytes may be sent; the first pass is to come or under way
  kHeld,      // the first pass is over: kept for what is lost, until the peer has all of it
  kDraining,  // nobody needs it any more but the device, which may hold frames that point into it
};

constexpr bool may_become(TxExtentState from, TxExtentState to) {
  using enum TxExtentState;
  switch (from) {
    case kFree:
      return to == kReading || to == kReady;  // ready at once: generated, or mapped
    case kReading:
      return to == kReady;  // also after an error, and when nobody wants it any more
    case kReady:
      return to == kHeld || to == kDraining;
    case kHeld:
      return to == kDraining;
    case kDraining:
      return to == kFree;
  }
  return false;
}

enum class RxExtentState : uint8_t {
  kFree,
  kFilling,    // chunks are put into it
  kRestoring,  // all of them are there, compressed
  kSumming,    // its bytes are there, and are summed for digests of the object
  kWriting,    // its bytes are there, and the disk has the buffer
};

constexpr bool may_become(RxExtentState from, RxExtentState to) {
  using enum RxExtentState;
  switch (from) {
    case kFree:
      return to == kFilling;
    case kFilling:
      // free at once: given up, or nothing for a disk to write
      return to == kRestoring || to == kSumming || to == kWriting || to == kFree;
    case kRestoring:  // free at once: the same, and what could not be restored
      return to == kSumming || to == kWriting || to == kFree;
    case kSumming:
      return to == kWriting || to == kFree;
    case kWriting:
      return to == kFree;
  }
  return false;
}

template <typename State>
void change(State* state, State to) {
  CHECK(may_become(*state, to), "an extent's buffer belongs to one at a time");
  *state = to;
}

}  // namespace sluice::lane
