// SPDX-License-Identifier: Apache-2.0
#include "tools/fleet/plan/planner.h"

#include <algorithm>
#include <functional>
#include <tuple>

namespace sluice::fleet {
namespace {

// The smallest on top; of equal ones that which came last, so that the first stay.
constexpr auto kSmallestOnTop = [](const auto& one, const auto& other) {
  return std::tuple(other.cost, one.index) < std::tuple(one.cost, other.index);
};

}  // namespace

Planner::Planner(const PlannerOptions& options)
    : options_(options), kept_max_(static_cast<size_t>(kUnits * options.shards)), loads_(options.shards) {}

void Planner::consider(const Item& item) {
  const uint64_t cost = cost_of(item.bytes, item.names);
  const uint64_t index = considered_++;
  total_cost_ += cost;
  largest_cost_ = std::max(largest_cost_, cost);
  if (kept_.size() == kept_max_) {
    if (cost <= kept_.front().cost) return;
    std::pop_heap(kept_.begin(), kept_.end(), kSmallestOnTop);
    kept_.pop_back();
  }
  kept_.push_back(
      {.cost = cost, .index = index, .bytes = item.bytes, .names = item.names, .whole = item.whole});
  std::push_heap(kept_.begin(), kept_.end(), kSmallestOnTop);
}

void Planner::settle() {
  mean_ = total_cost_ / options_.shards + (total_cost_ % options_.shards != 0 ? 1 : 0);
  unit_ = std::max<uint64_t>(mean_ / kUnits, 1);
  least_.clear();
  for (uint32_t shard = 0; shard < options_.shards; ++shard) least_.emplace_back(0, shard);  // is a heap
  std::sort(kept_.begin(), kept_.end(), [](const Kept& one, const Kept& other) {
    return std::tuple(other.cost, one.index) < std::tuple(one.cost, other.index);
  });
  placed_.reserve(kept_.size() + options_.shards);
  for (const Kept& item : kept_) place_large(item);
  kept_.clear();
  kept_.shrink_to_fit();
  std::sort(placed_.begin(), placed_.end(), [](const Placed& one, const Placed& other) {
    return std::tuple(one.index, one.piece.offset) < std::tuple(other.index, other.piece.offset);
  });
}

void Planner::place_large(const Kept& item) {
  uint64_t offset = 0;
  bool first = true;
  while (first || offset < item.bytes) {
    const uint32_t shard = pop();
    const uint64_t left = item.bytes - offset;
    const uint64_t load = loads_[shard].cost;
    const uint64_t room = load < mean_ ? mean_ - load : 0;
    const bool fits = cost_of(left, item.names) <= room;
    const bool cut = !fits && may_be_cut(item);
    const uint64_t bytes = cut ? fitting_bytes(room, left) : left;
    // Each range costs what a name costs.
    give(item.index, {.shard = shard, .offset = offset, .bytes = bytes}, item.names);
    if (bytes != item.bytes) ++loads_[shard].pieces;
    push(shard);
    offset += bytes;
    first = false;
  }
}

// One that is smaller than a hundredth of a shard disturbs no balance, and a range is worth a session.
bool Planner::may_be_cut(const Kept& item) const {
  return !item.whole && options_.align_bytes != 0 && item.names == 1 && item.bytes > unit_ &&
         item.bytes >= 2 * options_.align_bytes;
}

// What a shard with so much room gets of so many bytes. Where the shard that has least has no room worth a
// range, all are full: it gets half of a hundredth beyond the mean.
uint64_t Planner::fitting_bytes(uint64_t room, uint64_t left) const {
  const uint64_t align = options_.align_bytes;
  const uint64_t for_bytes = room > options_.name_cost_bytes ? room - options_.name_cost_bytes : 0;
  const uint64_t least = std::max<uint64_t>(unit_ / 2 / align, 1) * align;
  const uint64_t fitting = std::max(for_bytes / align * align, least);
  return std::min(fitting, left);
}

void Planner::give(uint64_t index, const Piece& piece, uint64_t names) {
  Load& load = loads_[piece.shard];
  load.cost += cost_of(piece.bytes, names);
  load.bytes += piece.bytes;
  load.names += names;
  placed_.push_back({.index = index, .piece = piece});
}

std::span<const Piece> Planner::place(const Item& item) {
  const uint64_t index = index_++;
  answer_.clear();
  while (next_placed_ < placed_.size() && placed_[next_placed_].index == index)
    answer_.push_back(placed_[next_placed_++].piece);
  if (!answer_.empty()) return answer_;
  const uint64_t cost = cost_of(item.bytes, item.names);
  if (run_open_ && run_cost_ + cost > unit_ / 2) {
    push(run_shard_);
    run_open_ = false;
  }
  if (!run_open_) {
    run_shard_ = pop();
    run_cost_ = 0;
    run_open_ = true;
  }
  run_cost_ += cost;
  Load& load = loads_[run_shard_];
  load.cost += cost;
  load.bytes += item.bytes;
  load.names += item.names;
  answer_.push_back({.shard = run_shard_, .offset = 0, .bytes = item.bytes});
  return answer_;
}

void Planner::push(uint32_t shard) {
  least_.emplace_back(loads_[shard].cost, shard);
  std::push_heap(least_.begin(), least_.end(), std::greater<>());
}

uint32_t Planner::pop() {
  std::pop_heap(least_.begin(), least_.end(), std::greater<>());
  const uint32_t shard = least_.back().second;
  least_.pop_back();
  return shard;
}

uint64_t Planner::largest_cost() const { return largest_cost_; }

size_t Planner::memory_bytes() const {
  return kept_.capacity() * sizeof(Kept) + placed_.capacity() * sizeof(Placed) +
         loads_.capacity() * sizeof(Load) + least_.capacity() * sizeof(Entry) +
         answer_.capacity() * sizeof(Piece);
}

}  // namespace sluice::fleet
