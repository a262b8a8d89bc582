// A control's journal: transactions that are whole or absent.
//
// Pure. Written with kPower a transaction, and all before it, also survives a loss of power; written with
// kProcess it survives the death of the process, and a loss of power leaves a prefix.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "control/recovery/extent_ledger.h"
#include "tools/sim/oracle.h"
#include "tools/sim/random.h"

namespace sluice::sim {

enum class Phase : uint8_t { kReceiving, kFinishing, kDone };

struct FileRecord {
  uint64_t inode = 0;  // 0: no file yet
  Phase phase = Phase::kReceiving;
  uint64_t digest = 0;
};

struct Records {
  End end = End::kNone;
  std::map<uint32_t, FileRecord> files;
  std::map<std::pair<uint32_t, recovery::BlockId>, std::string> rows;  // (object, block) -> bytes
};

struct Transaction {
  End end = End::kNone;
  std::map<uint32_t, FileRecord> files;
  std::vector<std::pair<uint32_t, recovery::Block>> rows;
  std::vector<uint32_t> restart;  // drop all rows of these objects
  bool power = true;
};

class Journal {
 public:
  const Records& records() const { return now_; }
  void commit(const Transaction& t) {
    apply(t, &now_);
    if (t.power) {
      durable_ = now_;
      unsynced_.clear();
    } else {
      unsynced_.push_back(t);
    }
  }
  void lose_power(Random& random) {
    const uint64_t survive = random.below(unsynced_.size() + 1);
    for (uint64_t i = 0; i < survive; ++i) apply(unsynced_[i], &durable_);
    unsynced_.clear();
    now_ = durable_;
  }

 private:
  static void apply(const Transaction& t, Records* to) {
    if (t.end != End::kNone) to->end = t.end;
    for (const auto& [object, record] : t.files) to->files[object] = record;
    for (const uint32_t object : t.restart) {
      std::erase_if(to->rows, [&](const auto& row) { return row.first.first == object; });
    }
    for (const auto& [object, block] : t.rows) to->rows[{object, block.id}] = block.bytes;
  }

  Records now_;
  Records durable_;
  std::vector<Transaction> unsynced_;
};

}  // namespace sluice::sim
