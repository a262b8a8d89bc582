// What a source that obeys wants has read of extents and not said yet, and what it has still to read for its
// destination (docs/WIRE.md 2.1.6).
//
// Pure. It holds each extent once, until its digest is taken to be said; of what was said it keeps nothing,
// and reads again what it must repeat.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "control/recovery/extent_map.h"
#include "dataplane/base/number.h"

namespace sluice::recovery {

class DigestDesk {
 public:
  struct Run {  // of neighbours
    ExtentId first;
    std::vector<uint64_t> digests;
  };
  struct Batch {
    std::vector<Run> runs;
    bool demanded = false;  // the destination asked to have some of them read
    bool last = false;      // once all that it wants of the object was read, and it was
  };

  void note(ObjectId object, ExtentId extent, uint64_t digest) { items_[object].read[extent] = digest; }
  // It is to be read, unless it was.
  void repeat(ObjectId object, ExtentId extent);
  // The destination asks to have it read, whether or not it was.
  void demand(ObjectId object, ExtentId extent);
  // The same, once release_last() says that all that is wanted of the object was read.
  void demand_last(ObjectId object, ExtentId extent);
  std::vector<ObjectId> waiting_for_last() const;
  void release_last(ObjectId object);
  bool last_due(ObjectId object) const;  // it was read, and is to be said
  uint64_t demanded() const;             // and not taken yet
  // The next extents of this object that must be read: neighbours, at most `most` of them.
  std::optional<ExtentRun> take_unread(ObjectId object, uint64_t most);

  std::vector<ObjectId> unread() const;   // objects of which something must be read
  std::vector<ObjectId> waiting() const;  // objects of which something is to be said
  size_t waiting(ObjectId object) const;
  Batch take(ObjectId object);

  void drop(ObjectId object) { items_.erase(object); }
  void new_stream();  // what was demanded on the former one is demanded again
  void clear() { items_.clear(); }

 private:
  struct Item {
    std::map<ExtentId, uint64_t> read;
    std::set<ExtentId> unread;
    std::set<ExtentId> demanded;
    std::set<ExtentId> last;       // to be demanded later
    std::set<ExtentId> last_read;  // of those demanded
  };
  std::map<ObjectId, Item> items_;
};

}  // namespace sluice::recovery
