// What a peer says in answer to a List: is it such a list, and does it come as it was let come?
//
// Pure. Bounded: it keeps the last path, however long the list. A list is in order (compare_paths), has no
// name twice, holds only what was asked for, and comes in no more pages than were granted.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "control/names/glob.h"
#include "control/names/words.h"

namespace sluice::names {

class ListCheck {
 public:
  explicit ListCheck(const List& asked);

  // kIncompatible names the lie. The page was admitted.
  Status take(const Page& page);
  Status end(const Done& done);

  // How many pages may come, from the first on; grows as they are taken: says so in a More.
  uint64_t granted() const { return granted_; }
  // One more page was used up here. True: tell the peer, so that it goes on.
  bool used();

 private:
  Status check(const Entry& entry) const;
  bool asked_for(const std::string& path) const;

  const List asked_;
  Pattern pattern_;
  std::string last_;
  bool alone_ = false;  // what was asked for itself has come
  uint64_t entries_ = 0;
  uint64_t failed_ = 0;
  uint64_t pages_ = 0;
  uint64_t used_ = 0;
  uint64_t granted_ = 0;
};

}  // namespace sluice::names
