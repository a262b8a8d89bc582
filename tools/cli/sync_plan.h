// What `--sync` does about the differences of two directories: which names are sent, in lists of which each
// is a session, which names are removed, and which cannot be sent, for nothing replaces what stands there.
//
// Pure. It keeps what differs, and nothing of what is the same.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "control/proto/api.pb.h"

namespace sluice::cli {

class SyncPlan {
 public:
  struct Limits {  // of a list
    size_t names;
    size_t bytes;
    size_t large_files;         // each is an object of its own
    uint64_t large_file_bytes;  // from so many on
  };
  static Limits limits_of_a_session();

  struct Removal {
    std::string path;
    bool is_directory = false;  // goes with all that is in it
  };
  struct Refusal {
    std::string path;
    std::string reason;  // with the remedy
  };
  using List = std::vector<std::string>;

  explicit SyncPlan(bool removes, Limits limits = limits_of_a_session())
      : removes_(removes), limits_(limits) {}

  // In the order of the comparison. Problems are none of its business.
  void add(const api::NameDifference& difference);

  // Of the names that are sent. A directory comes after all that is in it: what comes into it later would
  // change its time.
  std::vector<List> lists() const;
  uint64_t bytes() const { return bytes_; }
  size_t names() const { return files_.size() + directories_.size(); }
  size_t differences() const { return names() + removals_.size() + refusals_.size(); }
  const std::vector<Removal>& removals() const { return removals_; }
  // Of another kind at the destination, or in a directory that is.
  const std::vector<Refusal>& refusals() const { return refusals_; }
  // Names that the destination lacked, by the directory that they are in ("" is the one that is compared):
  // of those from which something is removed.
  std::map<std::string, std::set<std::string>> made_beside_removals() const;
  // Directories of the source from which something is removed: they are sent once that is done, and not
  // before.
  std::vector<List> lists_after_removal() const;
  // Those among them that differ. The others get back the time that a removal changes.
  List directories_after_removal() const;

 private:
  struct Name {
    std::string path;
    bool large = false;
    bool missing = false;  // at the destination
  };
  bool refuse(const api::NameDifference& difference);
  bool in_the_way(const api::NameDifference& difference) const;
  void add_extra(const api::NameDifference& difference);
  std::set<std::string> parents() const;
  std::vector<List> cut(const std::vector<const Name*>& names) const;

  const bool removes_;
  const Limits limits_;
  std::vector<Name> files_;        // and links
  std::vector<Name> directories_;  // from the comparison: each before what is in it
  std::vector<Removal> removals_;
  std::vector<Refusal> refusals_;
  std::string refused_directory_;  // the last one; what is in it comes next
  std::set<std::string> kept_;     // directories that the source lacks
  uint64_t bytes_ = 0;
};

}  // namespace sluice::cli
