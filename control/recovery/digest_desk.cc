// SPDX-License-Identifier: Apache-2.0
#include "control/recovery/digest_desk.h"

#include <utility>

namespace sluice::recovery {

const DigestDesk::Item* DigestDesk::item_of(ObjectId object) const {
  const auto item = items_.find(object);
  return item == items_.end() ? nullptr : &item->second;
}

void DigestDesk::note(ObjectId object, ExtentId extent, uint64_t digest) {
  Item& item = items_[object];
  if (!item.demanded.contains(extent)) {
    item.read[extent] = digest;
    return;
  }
  item.unread.erase(extent);  // it was demanded before it was read, to be sent
  item.answers[extent] = digest;
  item.last_due |= item.last_read.contains(extent);
}

void DigestDesk::repeat(ObjectId object, ExtentId extent) {
  Item& item = items_[object];
  if (!item.read.contains(extent) && !item.answers.contains(extent)) item.unread.insert(extent);
}

bool DigestDesk::demand(ObjectId object, ExtentId extent) { return items_[object].demand(extent); }

// What was just read, and is not said yet, need not be read again.
bool DigestDesk::Item::demand(ExtentId extent) {
  if (!demanded.insert(extent).second) return false;
  if (read.contains(extent)) {
    answers.insert(read.extract(extent));
  } else {
    unread.insert(extent);
  }
  return true;
}

bool DigestDesk::demand_last(ObjectId object, ExtentId extent) {
  return items_[object].last.insert(extent).second;
}

std::vector<ObjectId> DigestDesk::waiting_for_last() const {
  std::vector<ObjectId> objects;
  for (const auto& [object, item] : items_) {
    if (!item.last.empty()) objects.push_back(object);
  }
  return objects;
}

void DigestDesk::release_last(ObjectId object) {
  Item& item = items_[object];
  for (const ExtentId extent : std::exchange(item.last, {})) {
    item.last_read.insert(extent);
    item.demand(extent);
    item.last_due |= item.answers.contains(extent);
  }
}

bool DigestDesk::last_due(ObjectId object) const {
  const Item* const item = item_of(object);
  return item != nullptr && item->last_due;
}

uint64_t DigestDesk::demanded() const {
  uint64_t extents = 0;
  for (const auto& [object, item] : items_) extents += item.demanded.size() + item.last.size();
  return extents;
}

bool DigestDesk::all_read(ObjectId object) const {
  const Item* const item = item_of(object);
  return item == nullptr || item->answers.size() == item->demanded.size();
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

size_t DigestDesk::unread(ObjectId object) const {
  const Item* const item = item_of(object);
  return item == nullptr ? 0 : item->unread.size();
}

std::vector<ObjectId> DigestDesk::waiting() const {
  std::vector<ObjectId> objects;
  for (const auto& [object, item] : items_) {
    if (!item.read.empty() || !item.answers.empty()) objects.push_back(object);
  }
  return objects;
}

size_t DigestDesk::waiting(ObjectId object) const {
  const Item* const item = item_of(object);
  return item == nullptr ? 0 : item->read.size() + item->answers.size();
}

DigestDesk::Batch DigestDesk::take(ObjectId object, bool demanded) {
  Batch batch;
  const auto found = items_.find(object);
  if (found == items_.end()) return batch;
  Item& item = found->second;
  Digests said;
  if (demanded) {
    batch.demanded = !item.answers.empty();
    batch.last = std::exchange(item.last_due, false);
    for (const auto& [extent, digest] : item.answers) {
      item.demanded.erase(extent);
      item.last_read.erase(extent);
    }
    said = std::exchange(item.answers, {});
  }
  said.merge(std::exchange(item.read, {}));
  for (const auto& [extent, digest] : said) {
    const bool joins =
        !batch.runs.empty() && batch.runs.back().first.plus(batch.runs.back().digests.size()) == extent;
    if (!joins) batch.runs.push_back({.first = extent, .digests = {}});
    batch.runs.back().digests.push_back(digest);
  }
  if (item.unread.empty() && item.demanded.empty() && item.last.empty()) items_.erase(found);
  return batch;
}

void DigestDesk::new_stream() {
  for (auto& [object, item] : items_) {
    item.answers.merge(std::exchange(item.read, {}));
    item.read = std::exchange(item.answers, {});
    item.unread.clear();
    item.demanded.clear();
    item.last.clear();
    item.last_read.clear();
    item.last_due = false;
  }
  std::erase_if(items_, [](const auto& each) { return each.second.read.empty(); });
}

}  // namespace sluice::recovery
