// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/file_system.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace sluice::sim {

void FileSystem::apply(const Change& change, std::map<std::string, uint64_t>* names) {
  if (!change.from.empty()) names->erase(change.from);
  if (change.inode == 0) {
    names->erase(change.name);
  } else {
    (*names)[change.name] = change.inode;
  }
}

uint64_t FileSystem::create(const std::string& name) {
  if (names_.contains(name)) return 0;
  const uint64_t number = next_inode_++;
  inodes_[number].number = number;
  changes_.push_back({.name = name, .from = "", .inode = number});
  apply(changes_.back(), &names_);
  return number;
}

uint64_t FileSystem::find(const std::string& name) const {
  const auto at = names_.find(name);
  return at == names_.end() ? 0 : at->second;
}

uint64_t FileSystem::find_durable(const std::string& name) const {
  const auto at = durable_names_.find(name);
  return at == durable_names_.end() ? 0 : at->second;
}

bool FileSystem::rename(const std::string& from, const std::string& to) {
  const uint64_t number = find(from);
  if (number == 0 || names_.contains(to)) return false;
  changes_.push_back({.name = to, .from = from, .inode = number});
  apply(changes_.back(), &names_);
  return true;
}

void FileSystem::remove(const std::string& name) {
  changes_.push_back({.name = name, .from = "", .inode = 0});
  apply(changes_.back(), &names_);
}

void FileSystem::sync_directory() {
  durable_names_ = names_;
  changes_.clear();
}

FileSystem::Inode* FileSystem::inode(uint64_t number) {
  const auto at = inodes_.find(number);
  return at == inodes_.end() ? nullptr : &at->second;
}

void FileSystem::resize(uint64_t number, uint64_t bytes) {
  Inode& file = inodes_.at(number);
  file.now.resize(bytes);
  file.dirty.resize((bytes + sector_bytes_ - 1) / sector_bytes_);
  ++file.version;
}

void FileSystem::write(uint64_t number, uint64_t offset, const uint8_t* data, uint64_t length) {
  Inode& file = inodes_.at(number);
  if (length == 0) return;
  if (offset + length > file.now.size()) resize(number, offset + length);
  std::memcpy(file.now.data() + offset, data, length);
  const auto first = static_cast<std::ptrdiff_t>(offset / sector_bytes_);
  const auto last = static_cast<std::ptrdiff_t>((offset + length - 1) / sector_bytes_);
  std::fill(file.dirty.begin() + first, file.dirty.begin() + last + 1, uint8_t{1});
  ++file.version;
}

void FileSystem::set_durable(uint64_t number) {
  Inode& file = inodes_.at(number);
  file.durable = file.now;
  std::fill(file.dirty.begin(), file.dirty.end(), uint8_t{0});
}

void FileSystem::make_durable(Inode& file, uint32_t sector) {
  const uint64_t begin = uint64_t{sector} * sector_bytes_;
  const uint64_t end = std::min({begin + sector_bytes_, file.now.size(), file.durable.size()});
  if (begin < end) std::memcpy(file.durable.data() + begin, file.now.data() + begin, end - begin);
}

uint64_t FileSystem::begin_sync(uint64_t number) {
  Inode& file = inodes_.at(number);
  Sync sync{.inode = number, .bytes = file.now.size()};
  for (uint32_t i = 0; i < file.dirty.size(); ++i) {
    if (file.dirty[i] == 0) continue;
    file.dirty[i] = 0;
    sync.sectors.push_back(i);
  }
  syncs_[next_sync_] = std::move(sync);
  return next_sync_++;
}

void FileSystem::end_sync(uint64_t id, bool good) {
  const auto at = syncs_.find(id);
  if (at == syncs_.end()) return;  // a loss of power came between
  const Sync sync = std::move(at->second);
  syncs_.erase(at);
  Inode& file = inodes_.at(sync.inode);
  if (good || random_.flip()) file.durable.resize(sync.bytes);
  for (const uint32_t sector : sync.sectors) {
    if (good || random_.flip()) make_durable(file, sector);
  }
}

void FileSystem::lose_power() {
  const uint64_t survive = random_.below(changes_.size() + 1);
  for (uint64_t i = 0; i < survive; ++i) apply(changes_[i], &durable_names_);
  changes_.clear();
  names_ = durable_names_;
  // Of all that is dirty: nothing, all, or a mixture.
  const uint64_t keep = random_.below(4) * 333'333;
  std::map<uint64_t, std::vector<uint32_t>> syncing;
  for (auto& [id, sync] : syncs_) {
    auto& sectors = syncing[sync.inode];
    sectors.insert(sectors.end(), sync.sectors.begin(), sync.sectors.end());
  }
  syncs_.clear();
  for (auto& [number, file] : inodes_) {
    for (const uint32_t sector : syncing[number]) {
      if (sector < file.dirty.size()) file.dirty[sector] = 1;
    }
    if (file.now.size() != file.durable.size() && random_.flip()) file.durable.resize(file.now.size());
    for (uint32_t i = 0; i < file.dirty.size(); ++i) {
      if (file.dirty[i] != 0 && random_.chance(keep)) make_durable(file, i);
    }
    file.now = file.durable;
    file.dirty.assign((file.now.size() + sector_bytes_ - 1) / sector_bytes_, 0);
  }
}

void FileSystem::take_snapshot() {
  old_inodes_ = inodes_;
  old_names_ = durable_names_;
  snapshot_ = true;
}

bool FileSystem::go_back() {
  if (!std::exchange(snapshot_, false)) return false;
  inodes_ = std::exchange(old_inodes_, {});
  names_ = durable_names_ = std::exchange(old_names_, {});
  changes_.clear();
  for (auto& [number, file] : inodes_) {
    file.now = file.durable;
    file.dirty.assign((file.now.size() + sector_bytes_ - 1) / sector_bytes_, 0);
  }
  return true;
}

void FileSystem::damage(uint64_t number) {
  Inode& file = inodes_.at(number);
  for (uint64_t at = random_.below(sector_bytes_); at < file.now.size(); at += random_.scale(100, 400'000)) {
    file.now[at] ^= 0x5A;
    file.durable[at] ^= 0x5A;
  }
}

}  // namespace sluice::sim
