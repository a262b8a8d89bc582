// The journal of sluice-control: sessions, their files, and the CRCs of extents that are certain. What a
// restarted control knows, it knows from here.
//
// SQLite in WAL mode, one file per node. Blocking; any thread, one at a time (a mutex). A transaction is
// whole or absent after any crash: written with kPower it also survives a loss of power, with kProcess the
// death of the process. Order matters more than speed: data is synced before rows say so
// (docs/ARCHITECTURE.md, "Durability").
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "control/proto/journal.pb.h"
#include "control/recovery/extent_ledger.h"
#include "dataplane/base/error.h"

namespace sluice::journal {

enum class Durability : uint8_t { kProcess, kPower };

struct FileRow {
  std::string session;
  uint32_t object = 0;
  FileRecord record;
};

struct BlockRows {
  std::string session;
  uint32_t object = 0;
  std::vector<recovery::Block> blocks;
};

// One transaction.
struct Batch {
  std::vector<SessionRecord> sessions;                    // added or replaced
  std::vector<FileRow> files;                             // added or replaced
  std::vector<BlockRows> blocks;                          // added or replaced
  std::vector<std::string> end;                           // of these sessions: drop all blocks
  std::vector<std::string> forget;                        // of these sessions: drop all files and blocks
  std::vector<std::pair<std::string, uint32_t>> restart;  // of these objects: drop all blocks
};

class Journal {
 public:
  // kStorage names the file, the reason and the remedy: it is no journal, is damaged, is of a later version.
  static Result<std::unique_ptr<Journal>> open(const std::filesystem::path& path);
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  Status write(const Batch& batch, Durability durability);
  // Oldest first. A row that cannot be read is an error.
  Result<std::vector<SessionRecord>> sessions();
  Result<std::optional<SessionRecord>> session(const std::string& id);
  Result<std::vector<FileRow>> files(const std::string& session);
  Result<std::vector<recovery::Block>> blocks(const std::string& session, uint32_t object);
  // Forgets the oldest ended sessions but `keep`.
  Status forget_ended(size_t keep);

 private:
  struct State;
  explicit Journal(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace sluice::journal
