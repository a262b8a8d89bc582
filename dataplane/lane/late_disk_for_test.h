// A disk of which some operations take as long as the test wants.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "storage/ring.h"

namespace sluice::lane::testing {

class LateDisk final : public storage::Disk {
 public:
  // What is started between hold() and hold_no_more() ends only after let_go().
  void hold() { hold_ = true; }
  void hold_no_more() { hold_ = false; }
  void let_go() { held_.clear(); }
  void let_go(uint32_t count) {
    for (; count > 0 && !held_.empty(); --count) held_.erase(held_.begin());
  }
  // That have not ended because of it.
  uint32_t held() const { return static_cast<uint32_t>(held_.size()); }

  Status open(uint32_t slots, std::span<uint8_t> memory, std::span<const int> helper_cpus,
              const std::function<void(const std::string&)>& warn) override {
    return ring_.open(slots, memory, helper_cpus, warn);
  }
  void start(uint32_t slot, const storage::Operation& operation) override {
    EXPECT_TRUE(busy_.insert(slot).second) << "the disk still moves the bytes of this slot's buffer";
    if (hold_) held_.insert(slot);
    ring_.start(slot, operation);
  }
  void submit() override { ring_.submit(); }
  uint32_t poll(std::span<storage::Completion> out) override {
    const uint32_t count = ring_.poll(out);
    late_.insert(late_.end(), out.begin(), out.begin() + count);
    uint32_t given = 0;
    std::erase_if(late_, [&](const storage::Completion& done) {
      if (held_.contains(done.slot) || given == out.size()) return false;
      busy_.erase(done.slot);
      out[given++] = done;
      return true;
    });
    return given;
  }
  uint32_t in_flight() const override { return static_cast<uint32_t>(busy_.size()); }
  uint64_t short_operations() const override { return ring_.short_operations(); }

 private:
  storage::Ring ring_;
  bool hold_ = false;
  std::set<uint32_t> held_;
  std::set<uint32_t> busy_;
  std::vector<storage::Completion> late_;
};

}  // namespace sluice::lane::testing
