// The list of a source and that of a destination, in one pass: what is to be sent, and what only the
// destination has?
//
// Pure. Both lists are in order (compare_paths), as Listing makes them and ListCheck demands. It keeps a page
// of each, and the directories above the name at hand, however long the lists are. Whoever asks takes what
// was found before it puts the next page.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "control/names/words.h"

namespace sluice::names {

struct Difference {
  enum class Kind : uint8_t {
    kMissing,    // only at the source
    kDifferent,  // at both, but not the same
    kExtra,      // only at the destination; a directory comes after what is in it, and may go with that
    kKept,  // a directory only at the destination with something in it that rules leave out, or nobody knows
    kSourceProblem,       // the source's list does not tell what is there, or what is in it
    kDestinationProblem,  // nor does the destination's
  };
  Kind kind = Kind::kMissing;
  Type type = Type::kUnknown;              // of the source where it has the name
  Type destination_type = Type::kUnknown;  // where it differs: what stands there
  uint64_t size_bytes = 0;
  std::string path;
  uint32_t error_code = 0;  // of a problem, with its text
  std::string error;
};

struct ComparisonTotals {
  uint64_t source = 0;       // names that the rules leave in
  uint64_t destination = 0;  // likewise
  uint64_t same = 0;
  uint64_t missing = 0;
  uint64_t different = 0;
  uint64_t extra = 0;
  uint64_t kept = 0;  // directories that only the destination has, with something in them that is not told
  uint64_t left_out = 0;  // devices, pipes and sockets of the source, which are not sent
  uint64_t source_problems = 0;
  uint64_t destination_problems = 0;
};

class Comparison {
 public:
  enum class Side : uint8_t { kSource, kDestination };
  // Is a name part of this? What is in a directory that is not, is neither.
  using Takes = std::function<bool(const std::string& path, bool is_directory)>;

  // `by_digest`: files are the same if what they hold is, whatever their times say; both lists have digests.
  explicit Comparison(Takes takes, bool by_digest = false)
      : takes_(std::move(takes)), by_digest_(by_digest) {}

  // Whose next page, or end, is needed. Nothing: all is compared.
  std::optional<Side> wants() const;
  void put(Side side, Page page);
  void end(Side side);

  std::vector<Difference> take();  // what was found since
  const ComparisonTotals& totals() const { return totals_; }

 private:
  struct Name {
    Entry entry;
    bool left_out = false;  // by the rules
  };
  struct List {
    std::deque<Name> names;
    std::string skipped;  // the directory that was left out last; none: empty
    bool ended = false;
  };
  struct ExtraDirectory {
    std::string path;
    bool stays = false;
  };

  List& list(Side side) { return lists_[static_cast<size_t>(side)]; }
  const List& list(Side side) const { return lists_[static_cast<size_t>(side)]; }
  void advance();
  void only_source(const Entry& entry);
  void only_destination(const Name& name);
  void both(const Entry& source, const Name& destination);
  void leave_extra_directories(std::string_view next);
  bool problem(const Entry& entry, Difference::Kind kind);
  void found(Difference::Kind kind, const Entry& entry, Type there = Type::kUnknown);

  const Takes takes_;
  const bool by_digest_;
  std::array<List, 2> lists_;
  std::string
      shielded_;  // a directory of the destination where the source has something else, or nobody knows what
  std::vector<ExtraDirectory> extra_directories_;  // each in the one before it
  std::vector<Difference> found_;
  ComparisonTotals totals_;
};

}  // namespace sluice::names
