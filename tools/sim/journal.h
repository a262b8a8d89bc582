// A control's journal: transactions that are whole or absent.
//
// Pure. Written with kPower a transaction, and all before it, also survives a loss of power; written with
// kProcess it survives the death of the process, and a loss of power leaves a prefix.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "control/words/lease.h"
#include "control/words/records.h"
#include "tools/sim/random.h"

namespace sluice::sim {

struct Transaction {
  std::string session;  // empty: of none
  transfer::Batch batch;
  std::optional<transfer::LeaseRow> lease;
};

class Journal {
 public:
  using Sessions = std::map<std::string, transfer::Saved>;
  using Leases = std::map<std::string, transfer::LeaseRow>;

  const Sessions& sessions() const { return now_.sessions; }
  const Leases& leases() const { return now_.leases; }
  // The next control knows this session, or its files, whatever happens now.
  bool knows(const std::string& session) const { return durable_.sessions.contains(session); }
  bool knows_files(const std::string& session) const {
    const auto found = durable_.sessions.find(session);
    return found != durable_.sessions.end() && !found->second.files.empty();
  }
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
  struct Rows {
    Sessions sessions;
    Leases leases;
  };
  void sync(uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) apply(unsynced_[i], &durable_);
    unsynced_.erase(unsynced_.begin(), unsynced_.begin() + static_cast<std::ptrdiff_t>(count));
  }

  // As control/journal does it with rows.
  static void apply(const Transaction& t, Rows* to) {
    if (t.lease) to->leases[t.lease->lease.name] = *t.lease;
    if (t.session.empty()) return;
    transfer::Saved& saved = to->sessions[t.session];
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

  Rows now_;
  Rows durable_;
  std::vector<Transaction> unsynced_;
};

}  // namespace sluice::sim
