// A NAT before one node: it shows that node's UDP ports under others, lets in nothing but answers, and
// forgets all of that now and then.
//
// Pure. Control connections do not pass it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <vector>

namespace sluice::sim {

class Nat {
 public:
  // When it forgets: in order.
  explicit Nat(const std::vector<uint64_t>& forgets_ns) : forgets_ns_(forgets_ns) {}

  // A frame leaves the node, or comes to it; its ports are changed. False: it does not get through.
  void leaves(std::span<uint8_t> frame, uint64_t now_ns);
  bool comes(std::span<uint8_t> frame, uint64_t now_ns);
  uint64_t kept_out() const { return kept_out_; }

 private:
  uint16_t shown(uint16_t port) const;
  void pass_time(uint64_t now_ns);

  const std::vector<uint64_t>& forgets_ns_;
  size_t forgot_ = 0;          // how often so far
  std::set<uint16_t> opened_;  // ports of the node from which something left since then
  uint64_t kept_out_ = 0;
};

}  // namespace sluice::sim
