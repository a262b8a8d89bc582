// When a node that fell from its device to sockets goes back, so that a device which comes and goes does not
// take the node with it: each change of the port costs every session what was in flight.
//
// Pure: moments and what is there -> a decision. docs/decisions/0021-the-port-changes-by-a-restart.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace sluice::keeper {

class FallbackPlan {
 public:
  static constexpr uint64_t kGoodNs = 600'000'000'000;  // a device that served for so long is trusted again
  static constexpr uint64_t kLongest = 16;              // times the first wait

  explicit FallbackPlan(uint64_t return_ns) : return_ns_(return_ns), wait_ns_(return_ns) {}

  void served(uint64_t now_ns);  // the device carries data from now on
  void fell(uint64_t now_ns);    // it does not, or it did not start
  // On sockets, again and again: whether to try the device now. It must have been there at every look for
  // wait_ns().
  bool may_return(bool there, uint64_t now_ns);
  uint64_t wait_ns() const { return wait_ns_; }

 private:
  uint64_t return_ns_;
  uint64_t wait_ns_;
  bool fell_before_ = false;
  uint64_t served_ns_ = 0;  // since when; 0: not
  uint64_t there_ns_ = 0;   // since when it has been there, on sockets; 0: it is not
};

}  // namespace sluice::keeper
