// A control's journal: transactions that are whole or absent.
//
// Pure. Written with kPower a transaction, and all before it, also survives a loss of power; written with
// kProcess it survives the death of the process, and a loss of power leaves a prefix.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "control/words/records.h"
#include "tools/sim/random.h"

namespace sluice::sim {

struct Transaction {
  std::string session;
  transfer::Batch batch;
};

class Journal {
 public:
  using Sessions = std::map<std::string, transfer::Saved>;

  const Sessions& sessions() const { return now_; }
  void commit(const Transaction& t, transfer::Durability durability) {
    apply(t, &now_);
    unsynced_.push_back(t);
    if (durability == transfer::Durability::kPower) sync(unsynced_.size());
  }
  void lose_power(Random& random) {
    sync(random.below(unsynced_.size() + 1));
    unsynced_.clear();
    now_ = durable_;
  }

 private:
  void sync(uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) apply(unsynced_[i], &durable_);
    unsynced_.erase(unsynced_.begin(), unsynced_.begin() + static_cast<std::ptrdiff_t>(count));
  }

  // As control/journal does it with rows.
  static void apply(const Transaction& t, Sessions* to) {
    transfer::Saved& saved = (*to)[t.session];
    const transfer::Batch& batch = t.batch;
    if (batch.record) {
      std::optional<transfer::Request> request = std::move(saved.record.request);
      saved.record = *batch.record;
      if (!saved.record.request) saved.record.request = std::move(request);
    }
    if (batch.drop_files) saved.files.clear();
    for (const transfer::FileRow& row : batch.files) {
      saved.files.resize(std::max<size_t>(saved.files.size(), row.file.value() + 1));
      saved.files[row.file.value()] = row.record;
    }
    if (batch.drop_blocks) saved.blocks.clear();
    saved.blocks.resize(std::max(saved.blocks.size(), saved.files.size()));
    for (const ObjectId object : batch.restart) saved.blocks[object].clear();
    for (const transfer::BlockRows& rows : batch.blocks) {
      if (!saved.blocks.contains(rows.object)) saved.blocks.resize(rows.object.value() + 1);
      for (const recovery::Block& block : rows.blocks) put(&saved.blocks[rows.object], block);
    }
    if (batch.drop_files) saved.blocks.clear();
  }

  static void put(std::vector<recovery::Block>* blocks, const recovery::Block& block) {
    const auto at =
        std::find_if(blocks->begin(), blocks->end(), [&](const auto& each) { return each.id == block.id; });
    if (at == blocks->end()) {
      blocks->push_back(block);
    } else {
      *at = block;
    }
  }

  Sessions now_;
  Sessions durable_;
  std::vector<Transaction> unsynced_;
};

}  // namespace sluice::sim
