// SPDX-License-Identifier: Apache-2.0
#include "control/recovery/digest_desk.h"

#include <algorithm>
#include <utility>

namespace sluice::recovery {

void DigestDesk::repeat(ObjectId object, ExtentId extent) {
  Item& item = items_[object];
  if (!item.read.contains(extent)) item.unread.insert(extent);
}

void DigestDesk::demand(ObjectId object, ExtentId extent) {
  Item& item = items_[object];
  if (item.demanded.insert(extent).second) item.unread.insert(extent);
}

void DigestDesk::demand_last(ObjectId object, ExtentId extent) { items_[object].last.insert(extent); }

std::vector<ObjectId> DigestDesk::waiting_for_last() const {
  std::vector<ObjectId> objects;
  for (const auto& [object, item] : items_) {
    if (!item.last.empty()) objects.push_back(object);
  }
  return objects;
}

// What was just read, and is not said yet, need not be read again.
void DigestDesk::release_last(ObjectId object) {
  Item& item = items_[object];
  for (const ExtentId extent : std::exchange(item.last, {})) {
    item.last_read.insert(extent);
    if (item.demanded.insert(extent).second && !item.read.contains(extent)) item.unread.insert(extent);
  }
}

bool DigestDesk::last_due(ObjectId object) const {
  const auto item = items_.find(object);
  return item != items_.end() && std::ranges::any_of(item->second.last_read, [&](ExtentId extent) {
           return item->second.read.contains(extent);
         });
}

uint64_t DigestDesk::demanded() const {
  uint64_t extents = 0;
  for (const auto& [object, item] : items_) extents += item.demanded.size() + item.last.size();
  return extents;
}

std::optional<ExtentRun> DigestDesk::take_unread(ObjectId object, uint64_t most) {
  const auto item = items_.find(object);
  if (item == items_.end() || item->second.unread.empty()) return std::nullopt;
  std::set<ExtentId>& unread = item->second.unread;
  ExtentRun run{*unread.begin(), *unread.begin()};
  while (most-- != 0 && unread.erase(run.end) != 0) ++run.end;
  return run;
}

std::vector<ObjectId> DigestDesk::unread() const {
  std::vector<ObjectId> objects;
  for (const auto& [object, item] : items_) {
    if (!item.unread.empty()) objects.push_back(object);
  }
  return objects;
}

std::vector<ObjectId> DigestDesk::waiting() const {
  std::vector<ObjectId> objects;
  for (const auto& [object, item] : items_) {
    if (!item.read.empty()) objects.push_back(object);
  }
  return objects;
}

size_t DigestDesk::waiting(ObjectId object) const {
  const auto item = items_.find(object);
  return item == items_.end() ? 0 : item->second.read.size();
}

DigestDesk::Batch DigestDesk::take(ObjectId object) {
  Batch batch;
  const auto item = items_.find(object);
  if (item == items_.end()) return batch;
  for (const auto& [extent, digest] : item->second.read) {
    batch.demanded |= item->second.demanded.erase(extent) != 0;
    batch.last |= item->second.last_read.erase(extent) != 0;
    const bool joins =
        !batch.runs.empty() && batch.runs.back().first.plus(batch.runs.back().digests.size()) == extent;
    if (!joins) batch.runs.push_back({.first = extent, .digests = {}});
    batch.runs.back().digests.push_back(digest);
  }
  item->second.read.clear();
  const Item& left = item->second;
  if (left.unread.empty() && left.demanded.empty() && left.last.empty()) items_.erase(item);
  return batch;
}

void DigestDesk::new_stream() {
  for (auto& [object, item] : items_) {
    item.unread.clear();
    item.demanded.clear();
    item.last.clear();
    item.last_read.clear();
  }
  std::erase_if(items_, [](const auto& each) { return each.second.read.empty(); });
}

}  // namespace sluice::recovery
