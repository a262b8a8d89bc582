// The journal of sluice-control: transfers, their files, and the CRCs of extents that are certain. What a
// restarted control knows, it knows from here.
//
// SQLite in WAL mode, one file per node. Blocking; any thread, one at a time (a mutex). A transaction is
// whole or absent after any crash: written with kPower it also survives a loss of power, with kProcess the
// death of the process. Order matters more than speed: data is synced before rows say so. What is kept
// stands in control/words/records.h; how, in journal.proto.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "control/words/records.h"
#include "dataplane/base/error.h"

namespace sluice::journal {

// It has ended, nobody waits to hear of that, and it left nothing behind.
inline bool is_over(const transfer::Record& record) {
  return transfer::has_ended(record.state) && !record.files_left && !transfer::peer_unaware(record);
}

class Journal {
 public:
  // kStorage names the file, the reason and the remedy: it is no journal, is damaged, is of a later version.
  static Result<std::unique_ptr<Journal>> open(const std::filesystem::path& path);
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  // One transaction, of one transfer. A record without a request leaves the request as it was.
  Status write(const std::string& session, const transfer::Batch& batch, transfer::Durability durability);
  // Oldest first, without files and blocks. A row that cannot be read is an error.
  Result<std::vector<transfer::Record>> sessions();
  Result<std::optional<transfer::Record>> session(const std::string& id);
  // All of one; `with_blocks`: the CRCs of its extents as well. Nothing when there is none.
  Result<std::optional<transfer::Saved>> saved(const std::string& id, bool with_blocks);
  // Of all leases that this node keeps to. Written so that it survives a loss of power.
  Status write(const transfer::LeaseRow& row);
  Result<std::vector<transfer::LeaseRow>> leases();
  Status forget_leases(const std::vector<std::string>& names);
  // Forgets sessions that are over, but the newest `keep` of those that have ended, and those that ended
  // after `before_unix_ns`; the oldest first, at most so many at once. Each has a transaction of its own:
  // others may write in between.
  static constexpr size_t kForgottenAtOnce = 2048;
  Status forget_ended(size_t keep, int64_t before_unix_ns);

  // False: its path leads to another file now, or to none. True also where the path
  // cannot be looked at. Any thread, at once.
  bool stands() const;

 private:
  struct State;
  explicit Journal(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace sluice::journal
