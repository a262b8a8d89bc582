// What `sluice run` remembers over its own death: the sessions that it began and that have not ended, in a
// file of its own for each file of transfers (usual_state_file).
//
// Any thread. Without a place for that file the command runs all the same; it says so once.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "tools/cli/app.h"
#include "tools/cli/run_file.h"
#include "tools/unattended/run_sessions.h"

namespace sluice::cli {

class RunMemory {
 public:
  // `origin`: where the transfers are written down. Both outlive it.
  RunMemory(const Context& context, const std::filesystem::path& origin, const RunFile& file);
  // kConfiguration: what was remembered cannot be read. Whoever goes on would forget it.
  Status usable() const { return usable_; }

  // As those of RunSessions. A transfer is the same as before if it is written as before, with the same names
  // of a list, and run in the same directory; of several alike the first, the second, and so on.
  std::optional<unattended::RunSessions::Session> take(const RunTransfer& transfer);
  void began(const RunTransfer& transfer, const std::string& id);
  void ended(const RunTransfer& transfer);
  void hold(const std::string& id, bool held);

 private:
  void write();
  Status replace(const std::string& text) const;

  const Context& context_;
  std::mutex mutex_;
  std::filesystem::path state_;  // empty: there is no place for it
  std::map<const RunTransfer*, std::string> keys_;
  unattended::RunSessions sessions_;
  std::string written_;  // what stands in that file
  Status usable_;
  bool said_ = false;
};

}  // namespace sluice::cli
