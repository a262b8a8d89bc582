// The files of a set: the unfinished one, into which sessions of several nodes write, and beside it a record
// of each range that is durable (control/ranges, docs/WIRE.md 2.17).
//
// Who writes a range has a shared lock (flock) on the unfinished file, who gives it its name or removes it
// the only one. The names begin with a dot and end as those of all files under way.
//
// Cold; blocking; any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "control/ranges/ranges.h"
#include "dataplane/base/error.h"
#include "dataplane/base/unique_fd.h"

namespace sluice::exports {

class PartFiles {
 public:
  // Of the file `name` in an open directory, which outlives this; `path`: for people.
  PartFiles(int directory_fd, const std::string& name, const std::string& set, std::string path);

  const std::string& data_name() const { return data_name_; }
  // Open for writing, and locked as `what` needs it: a range makes it, to finish it must be there. Waits for
  // sessions that let go of it: kDestinationExists, if they do not. kUsage: there is none.
  Result<UniqueFd> open(selection::FilePart::What what) const;

  // Nothing: there is none that could be believed.
  std::optional<ranges::Record> record_at(uint64_t offset) const;
  // Durable when it returns.
  Status note(const ranges::Record& record) const;
  // So that no loss of power brings it back.
  Status forget(uint64_t offset) const;
  // kUsage: some range is missing, which is told; as ranges::Joined.
  Result<uint64_t> digest_of_all(const selection::FilePart& finish, base::FileTimeNs mtime_ns,
                                 wire::CrcKind crc_kind) const;
  // All records of the set; with its unfinished file, if it is to go.
  Status remove(bool with_data) const;

 private:
  std::string record_name(uint64_t offset) const;
  Status sync_directory() const;
  Error failed(const std::string& what, int reason) const;

  const int directory_fd_;
  const std::string path_;
  std::string stem_;  // ".NAME.SET"
  std::string data_name_;
};

}  // namespace sluice::exports
