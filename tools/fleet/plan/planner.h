// Divides the files of a dataset among shards of equal cost. What a file costs is its bytes, and for each
// name as many bytes as could be moved in the time that a name takes.
//
// The list is read twice in the same order. At the first reading the planner adds up all costs and keeps the
// largest 100 items of a shard (kUnits). Between the readings it places these, the largest first, each at the
// shard that has least. Where one that is larger than a hundredth of a shard does not fit beneath the mean,
// and may be cut, the shard gets what fits and the next shards the rest: ranges are contiguous, as long as
// they can be, and begin at multiples of `align_bytes`, so that no two shards write one stripe. At the second
// reading all that is left is dealt out in the order of the list: a run of names, of a hundredth of a shard
// at most, goes to the shard that has least. So what lies together mostly stays together.
//
// None of the rest is larger than a hundredth of a shard, since a hundred items of each shard are at least as
// large. So no shard exceeds the mean by more than 1 %, if items may be cut and `align_bytes` is not larger
// than half of that hundredth. Memory is that of 100 items a shard, whatever the length of the list. Equal
// lists give equal plans.
//
// Pure. One thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace sluice::fleet {

inline constexpr uint64_t kUnits = 100;
inline constexpr uint32_t kShardsMax = 1'000'000;

struct Item {
  uint64_t bytes = 0;
  uint64_t names = 1;  // of hard links all that lead to the file
  bool whole = false;  // never cut
};

// Of an item, what one shard gets.
struct Piece {
  uint32_t shard = 0;
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

struct PlannerOptions {
  uint32_t shards = 1;           // at least 1
  uint64_t name_cost_bytes = 0;  // t_file * rate
  uint64_t align_bytes = 0;      // where an item may be cut; 0: nowhere
};

class Planner {
 public:
  explicit Planner(const PlannerOptions& options);

  // The first reading.
  void consider(const Item& item);
  // Between the two.
  void settle();
  // The second reading: the pieces of the item that comes next, in the order of their offsets. They hold
  // until the next call.
  std::span<const Piece> place(const Item& item);

  struct Load {
    uint64_t cost = 0;
    uint64_t bytes = 0;
    uint64_t names = 0;
    uint64_t pieces = 0;  // of items that were cut
  };
  const std::vector<Load>& loads() const { return loads_; }
  uint64_t total_cost() const { return total_cost_; }
  uint64_t items() const { return considered_; }
  // The largest of all, for whoever cannot cut it.
  uint64_t largest_cost() const;
  // What the planner's own tables take.
  size_t memory_bytes() const;

 private:
  struct Kept {
    uint64_t cost = 0;
    uint64_t index = 0;  // in the list
    uint64_t bytes = 0;
    uint64_t names = 0;
    bool whole = false;
  };
  struct Placed {
    uint64_t index = 0;
    Piece piece;
  };
  using Entry = std::pair<uint64_t, uint32_t>;  // load, shard: the least first, of equal ones the first shard

  uint64_t cost_of(uint64_t bytes, uint64_t names) const { return bytes + names * options_.name_cost_bytes; }
  void place_large(const Kept& item);
  bool may_be_cut(const Kept& item) const;
  void give(uint64_t index, const Piece& piece, uint64_t names);
  uint64_t fitting_bytes(uint64_t room, uint64_t left) const;
  void push(uint32_t shard);
  uint32_t pop();

  const PlannerOptions options_;
  const size_t kept_max_;
  std::vector<Kept> kept_;      // a heap: the smallest on top
  std::vector<Placed> placed_;  // by index, then offset
  std::vector<Load> loads_;
  std::vector<Entry> least_;  // a heap
  std::vector<Piece> answer_;
  uint64_t considered_ = 0;
  uint64_t total_cost_ = 0;
  uint64_t largest_cost_ = 0;
  uint64_t mean_ = 0;
  uint64_t unit_ = 0;
  // The second reading.
  uint64_t index_ = 0;
  size_t next_placed_ = 0;
  uint32_t run_shard_ = 0;
  uint64_t run_cost_ = 0;
  bool run_open_ = false;
};

}  // namespace sluice::fleet
