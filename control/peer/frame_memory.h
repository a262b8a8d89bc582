// How much memory the messages of all control connections of a node may take, on their way in and out.
//
// Pure; on control's loop. A small frame is read as it comes. Whoever is to read a big one asks first, and is
// granted it in turn: one at a time for each peer, so that a peer waits for nobody but itself, and of all
// peers together no more than there is memory for.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <set>
#include <string>

namespace sluice::peer {

class FrameMemory {
 public:
  static constexpr size_t kSmallFrameBytes = 64U << 10;
  static constexpr size_t kInBytesMax = 128U << 20;
  static constexpr size_t kOutBytesMax = 256U << 20;
  static constexpr size_t kSmallQueueBytes = 1U << 20;

  explicit FrameMemory(size_t in_bytes_max = kInBytesMax, size_t out_bytes_max = kOutBytesMax)
      : in_bytes_max_(in_bytes_max), out_bytes_max_(out_bytes_max) {}

  // The right to read one frame; gives it back, or gives up its turn.
  class Lease {
   public:
    ~Lease() { memory_->end(this); }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    bool granted() const { return granted_; }

   private:
    friend class FrameMemory;
    Lease(std::shared_ptr<FrameMemory> memory, std::string peer, size_t bytes, std::function<void()> wake)
        : memory_(std::move(memory)), peer_(std::move(peer)), bytes_(bytes), wake_(std::move(wake)) {}
    const std::shared_ptr<FrameMemory> memory_;
    const std::string peer_;
    const size_t bytes_;
    const std::function<void()> wake_;
    bool granted_ = false;
  };
  // `wake` is called when the lease is granted, maybe at once; it must not ask or give back itself.
  static std::unique_ptr<Lease> lease(const std::shared_ptr<FrameMemory>& memory, std::string peer,
                                      size_t bytes, std::function<void()> wake);

  // What waits to be written. While all connections together have too much of it, one that has more than
  // kSmallQueueBytes itself gets no more.
  bool may_queue(size_t own_bytes, size_t more_bytes) const {
    return own_bytes + more_bytes <= kSmallQueueBytes || out_bytes_ + more_bytes <= out_bytes_max_;
  }
  void queued(size_t bytes) { out_bytes_ += bytes; }
  void left(size_t bytes) { out_bytes_ -= bytes; }

  size_t in_bytes() const { return in_bytes_; }
  size_t out_bytes() const { return out_bytes_; }

 private:
  void end(const Lease* lease);
  void grant();

  const size_t in_bytes_max_;
  const size_t out_bytes_max_;
  size_t in_bytes_ = 0;
  size_t out_bytes_ = 0;
  std::set<std::string> reading_;  // peers with a big frame under way
  std::list<Lease*> waiting_;
};

}  // namespace sluice::peer
