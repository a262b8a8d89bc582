// How long control's loop is held up at a time, and by what.
//
// One thread carries all transfers: a turn that takes long delays every other. Each kind of turn has a name;
// the longest so far is told to operators (sluice node show), and a line is logged whenever it was beyond
// what anybody should notice and longer than any before.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <spdlog/spdlog.h>

#include <chrono>
#include <cstdint>
#include <string>

namespace sluice::async {

class TurnMeter {
 public:
  static constexpr uint64_t kNoticedNs = 20'000'000;
  using Clock = std::chrono::steady_clock::time_point (*)();

  explicit TurnMeter(Clock now = &std::chrono::steady_clock::now) : now_(now) {}

  // A turn, from here to the end of the block. Within another it counts for that one.
  class Scope {
   public:
    Scope(TurnMeter& meter, const char* name) : meter_(meter), name_(name) {
      outermost_ = meter_.depth_++ == 0;
      if (outermost_) begin_ = meter_.now_();
    }
    ~Scope() {
      --meter_.depth_;
      if (!outermost_) return;
      const auto took = std::chrono::duration_cast<std::chrono::nanoseconds>(meter_.now_() - begin_);
      meter_.ended(name_, static_cast<uint64_t>(took.count()));
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    TurnMeter& meter_;
    const char* name_;
    bool outermost_ = false;
    std::chrono::steady_clock::time_point begin_;
  };

  uint64_t longest_ns() const { return longest_ns_; }
  const std::string& longest_name() const { return longest_name_; }
  uint64_t turns() const { return turns_; }

 private:
  void ended(const char* name, uint64_t took_ns) {
    ++turns_;
    if (took_ns <= longest_ns_) return;
    longest_ns_ = took_ns;
    longest_name_ = name;
    if (took_ns >= kNoticedNs)
      spdlog::warn("control's loop was held up for {} ms by {}", took_ns / 1'000'000, name);
  }

  const Clock now_;
  uint32_t depth_ = 0;
  uint64_t turns_ = 0;
  uint64_t longest_ns_ = 0;
  std::string longest_name_;
};

}  // namespace sluice::async
