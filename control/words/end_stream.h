// The stream to one peer as an end of a transfer uses it: what it says there in an attempt, and whether the
// peer has ended.
//
// Pure. SourceLeg and DestinationLeg are made on it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "control/words/peer_stream.h"

namespace sluice::transfer {

class EndStream {
 public:
  bool begun() const { return stream_ != nullptr; }  // an attempt is under way
  bool up() const { return begun() && stream_->up(); }
  uint64_t heard_ns() const { return begun() ? stream_->heard_ns() : 0; }
  LegId id() const { return stream_->leg(); }
  void say(Message message, Effects& out) const {
    if (begun()) stream_->say(std::move(message), out);
  }
  void hear_end() { peer_ended_ = true; }
  bool peer_ended() const { return peer_ended_; }  // in this attempt, or the last one

 protected:
  EndStream() = default;
  ~EndStream() = default;
  EndStream(const EndStream&) = default;
  EndStream& operator=(const EndStream&) = default;
  void open(PeerStream& stream) {
    stream_ = &stream;
    peer_ended_ = false;
  }
  void close() { stream_ = nullptr; }

 private:
  PeerStream* stream_ = nullptr;  // of the attempt
  bool peer_ended_ = false;
};

}  // namespace sluice::transfer
