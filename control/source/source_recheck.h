// Objects that a source reads again before it says their digest, since their bytes may have changed while
// they were sent: their ctime did, or their times would not tell.
//
// A ctime changes with a link or other rights as well, so it says that something happened, and not to what.
// What was sent is right when all of it stood in the file at one moment. All of it was read before this
// reading begins; if this finds the same bytes, they all stood there in between. Of an object that the peer
// wants in parts that is what was read of it by then.
//
// Pure. It outlives attempts, so that a large file is read to its end however often the stream is lost.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <optional>

#include "control/recovery/extent_ledger.h"
#include "control/words/effects.h"

namespace sluice::transfer {

class SourceRecheck {
 public:
  // False: it is under way already. `sent`: what is known of the bytes that were sent, some at least.
  // `ctime_ns`: before the reading.
  bool add(ObjectId object, const recovery::ExtentLedger& sent, int64_t ctime_ns);

  // What is to be read next: a block, or what was sent of it without a gap, or blocks of zeros, which a
  // source knows as holes, so that they take no time. One at a time; each is answered by read() or failed().
  std::optional<ReadExtents> next();
  bool reading() const { return reading_; }
  void failed() { reading_ = false; }
  void drop(ObjectId object);                                  // not while it is read
  enum class Found : uint8_t { kSameSoFar, kSame, kChanged };  // kSame: all of it; then take()
  Found read(uint64_t crc);
  int64_t take();  // the object is through: the ctime before it was read

  bool idle() const { return objects_.empty(); }
  ObjectId object() const { return objects_.front().object; }
  uint64_t steps() const { return steps_; }

 private:
  struct Again {
    ObjectId object;
    int64_t ctime_ns = 0;
    recovery::ExtentLedger sent;  // as of the beginning
    ExtentId next;
  };
  std::deque<Again> objects_;  // the first is being read
  bool reading_ = false;
  recovery::ExtentLedger::Piece piece_;  // that is being read
  uint64_t steps_ = 0;
};

}  // namespace sluice::transfer
