// The paths from this node to its peers, and who shares them.
//
// Pure; one thread. Sessions that send to the same peer share a bottleneck: with `adaptive` and with `cubic`
// one law decides for all of them together, and they divide its rate (path_shares.h). A session in mode
// `fixed` has a rate of its own, which nobody else may take.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "control/rate/controller.h"
#include "control/rate/mode.h"
#include "control/rate/path_size.h"

namespace sluice::rate {

class SharedPath;

// A session's part of a path, from its first datagram to its last.
class Share {
 public:
  virtual ~Share() = default;
  // What its flows report; `busy`: it has something to send. The rate of the session from now on, bit/s.
  virtual uint64_t step(const PathReport& report, bool busy, uint64_t now_ns) = 0;
  virtual void set_cap(uint64_t cap_bps) = 0;
  // It needs so much to be in time, bit/s; 0: it takes what there is.
  virtual void reserve(uint64_t reserved_bps) = 0;
  virtual Condition condition() const = 0;
  virtual uint64_t rate_bps() const = 0;
  virtual uint64_t cap_bps() const = 0;
};

class Paths {
 public:
  std::unique_ptr<Share> join(const std::string& peer, const Terms& terms, uint64_t now_ns);

  // How long datagrams may be on them.
  PathSizes& sizes() { return sizes_; }

 private:
  PathSizes sizes_;
  std::map<std::pair<std::string, Mode>, std::weak_ptr<SharedPath>> paths_;
};

}  // namespace sluice::rate
