// A watched folder's files, looked at, removed and moved: always beneath the folder, and never through a
// link, for whoever may write there may put anything in a path's way.
//
// One thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "dataplane/base/error.h"
#include "dataplane/base/unique_fd.h"
#include "dataplane/base/writer.h"
#include "tools/unattended/ripeness.h"

namespace sluice::cli {

class Folder {
 public:
  // kSourceUnreadable.
  static Result<Folder> open(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  uint64_t inode() const { return inode_; }
  uint64_t device() const { return device_; }
  int fd() const { return fd_.get(); }

  // A directory beneath, by its path from the folder; empty: the folder. Closed: errno says why not.
  UniqueFd directory(const std::string& name) const;
  unattended::FileId id_of(const struct stat& info) const;
  // Nothing: there is no regular file of this name.
  std::optional<unattended::FileId> look(const std::string& name) const;

  base::Writer writer(const std::string& name) const;

  enum class Done : uint8_t { kDone, kGone, kChanged };
  // Only if it is still this very file.
  Result<Done> remove(const std::string& name, const unattended::FileId& id) const;
  // Into a directory of the same file system, under the same path. kDestinationExists: one is there.
  Result<Done> move(const std::string& name, const unattended::FileId& id, const Folder& to) const;

 private:
  struct Place {
    UniqueFd directory;
    std::string last;
  };
  Place place(const std::string& name) const;
  bool is(const Place& place, const unattended::FileId& id, Done* instead) const;

  std::filesystem::path path_;
  UniqueFd fd_;
  uint64_t device_ = 0;
  uint64_t inode_ = 0;
};

}  // namespace sluice::cli
