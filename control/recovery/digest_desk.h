// What a source that obeys wants has read of extents and not said yet, and what it has still to read for its
// destination (docs/WIRE.md 2.1.6).
//
// Pure. It holds each extent once, until its digest is taken to be said; of what was said it keeps nothing,
// and reads again what it must repeat.
//
// What the destination demanded is apart from the rest: only a look that covers all of the object answers it,
// and such a look may have to read all again. So what is read meanwhile is gathered for one look.
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

  void note(ObjectId object, ExtentId extent, uint64_t digest);
  // It is to be read, unless it was.
  void repeat(ObjectId object, ExtentId extent);
  // The destination asks for it. It is to be read, unless it was and is not said yet. False: it had asked
  // already.
  bool demand(ObjectId object, ExtentId extent);
  // The same, once release_last() says that all that is wanted of the object was read.
  bool demand_last(ObjectId object, ExtentId extent);
  std::vector<ObjectId> waiting_for_last() const;
  void release_last(ObjectId object);
  bool last_due(ObjectId object) const;  // it was read, and is to be said
  uint64_t demanded() const;             // and not taken yet
  bool all_read(ObjectId object) const;  // that was demanded of it
  // The next extents of this object that must be read: neighbours, at most `most` of them.
  std::optional<ExtentRun> take_unread(ObjectId object, uint64_t most);

  std::vector<ObjectId> unread() const;  // objects of which something must be read
  size_t unread(ObjectId object) const;
  std::vector<ObjectId> waiting() const;  // objects of which something is to be said
  size_t waiting(ObjectId object) const;
  // `demanded`: with what was demanded.
  Batch take(ObjectId object, bool demanded = true);

  void drop(ObjectId object) { items_.erase(object); }
  void new_stream();  // what was demanded on the former one is demanded again
  void clear() { items_.clear(); }

 private:
  using Digests = std::map<ExtentId, uint64_t>;
  struct Item {
    Digests read;     // to be said
    Digests answers;  // likewise, and demanded
    std::set<ExtentId> unread;
    std::set<ExtentId> demanded;
    std::set<ExtentId> last;       // to be demanded later
    std::set<ExtentId> last_read;  // of those demanded
    bool last_due = false;         // some of these are among the answers
    bool demand(ExtentId extent);
  };
  const Item* item_of(ObjectId object) const;

  std::map<ObjectId, Item> items_;
};

}  // namespace sluice::recovery
