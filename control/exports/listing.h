// A list of names beneath the exports, page by page: what a peer is told of a directory, of what is in it, or
// of what fits a pattern.
//
// Symbolic links are told of, with their text, and never followed. What cannot be read is an entry with an
// error and does not end the list. Where another export begins, its rights count. Cold; blocking; one thread
// at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "control/exports/exports.h"
#include "control/exports/walk.h"
#include "control/names/glob.h"
#include "control/names/words.h"

namespace sluice::exports {

class Listing {
 public:
  // The next entries, at least one; none: the list is complete. A page is given out sooner when entries come
  // slowly. An error: kCancelled, or the list cannot be completed.
  Result<names::Page> next();
  uint64_t entries() const { return entries_; }
  uint64_t failed() const { return failed_; }

 private:
  friend class Exports;
  Listing(const Exports& exports, const names::List& asked, Pulse& pulse, Asker asker);

  // Ready to walk through this directory.
  Status open(UniqueFd directory, const std::string& absolute);
  void put(names::Entry entry);
  Status step(Walk::Step step);
  void look_at_name();
  bool wanted(const std::string& name) const;
  bool goes_deeper() const;
  std::string shown() const;  // absolute path of the name at hand, for people

  const Exports exports_;
  const names::List asked_;
  const Asker asker_;
  Pulse& pulse_;
  names::Pattern pattern_;
  std::string absolute_;  // of the directory that is walked through, in bytes
  std::optional<Walk> walk_;
  bool over_ = false;
  names::Page page_;
  size_t page_bytes_ = 0;
  uint64_t entries_ = 0;
  uint64_t failed_ = 0;
};

}  // namespace sluice::exports
