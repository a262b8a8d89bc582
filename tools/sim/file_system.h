// A node's file system in memory, with what a loss of power would leave of it.
//
// Pure. Fault model: what was written and not synced may be there, be gone, or be there in part, sector by
// sector; names (create, rename) that were made since the last sync of the directory survive as a prefix of
// their order; a size that was not synced is the old or the new one. A failed sync leaves each of its
// sectors durable or not, and clean: no later sync brings them back. One directory.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tools/sim/random.h"

namespace sluice::sim {

class FileSystem {
 public:
  struct Inode {
    uint64_t number = 0;
    uint64_t version = 0;  // changes with the content, as size and mtime do
    std::vector<uint8_t> now;
    std::vector<uint8_t> durable;
    std::vector<uint8_t> dirty;  // by sector
  };

  FileSystem(uint64_t seed, uint64_t stream, uint32_t sector_bytes)
      : random_(seed, stream), sector_bytes_(sector_bytes) {}

  // The inode of a new file; 0 when the name is taken.
  uint64_t create(const std::string& name);
  uint64_t find(const std::string& name) const;  // 0: no such name
  uint64_t find_durable(const std::string& name) const;
  bool rename(const std::string& from, const std::string& to);  // false: `to` is taken, or no `from`
  void remove(const std::string& name);
  void sync_directory();

  Inode* inode(uint64_t number);
  void resize(uint64_t number, uint64_t bytes);
  void write(uint64_t number, uint64_t offset, const uint8_t* data, uint64_t length);
  // As if it had been there for ever.
  void set_durable(uint64_t number);

  // What a sync that begins now covers; then its end.
  uint64_t begin_sync(uint64_t number);
  void end_sync(uint64_t sync, bool good);

  void lose_power();
  // What is durable now; later, when nothing runs, the volume goes back to it. False: there was none.
  void take_snapshot();
  bool go_back();
  // While nothing runs: other bytes here and there in this file, which is still the same one.
  void damage(uint64_t number);

 private:
  struct Change {
    std::string name;
    std::string from;    // empty: created
    uint64_t inode = 0;  // 0: removed
  };
  struct Sync {
    uint64_t inode = 0;
    uint64_t bytes = 0;
    std::vector<uint32_t> sectors;
  };
  static void apply(const Change& change, std::map<std::string, uint64_t>* names);
  void make_durable(Inode& inode, uint32_t sector);

  Random random_;
  uint32_t sector_bytes_;
  uint64_t next_inode_ = 100;
  uint64_t next_sync_ = 1;
  std::map<uint64_t, Inode> inodes_;
  std::map<std::string, uint64_t> names_;
  std::map<std::string, uint64_t> durable_names_;
  std::vector<Change> changes_;  // of names, since the last sync of the directory
  std::map<uint64_t, Sync> syncs_;
  std::map<uint64_t, Inode> old_inodes_;  // of the snapshot
  std::map<std::string, uint64_t> old_names_;
  bool snapshot_ = false;
};

}  // namespace sluice::sim
