// Files beneath the configured export roots: the only way by which Sluice reaches a name.
//
// Every lookup is openat2 with RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS from
// the root's descriptor, so that neither "..", nor a symbolic link, nor a race leads outside. A path
// is either absolute, beneath an export's root, or "EXPORT/relative". Cold; blocking; any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/config/config.h"
#include "dataplane/core/error.h"
#include "dataplane/core/unique_fd.h"

namespace sluice::exports {

struct SourceFile {
  UniqueFd fd;  // O_RDONLY, O_DIRECT where the file system takes it
  bool direct = false;
  std::string path;  // absolute, for people
  std::string name;  // last component
  uint64_t size = 0;
  uint32_t mode = 0;  // permission bits
  int64_t mtime_ns = 0;
  uint64_t device = 0;
  uint64_t inode = 0;
};

struct DestinationSpec {
  std::string path;           // what the operator wrote
  bool is_directory = false;  // put the file into it, under `name`
  std::string name;           // name of the source file
  uint64_t size = 0;
  uint32_t mode = 0644;
  int64_t mtime_ns = 0;
  bool overwrite = false;
  uint32_t alignment = 4096;  // the preallocated size is rounded up to this
};

// A file on its way: data goes to a temporary name beside the final one. Unless `commit` succeeded,
// the destructor removes the temporary file.
class DestinationFile {
 public:
  DestinationFile(DestinationFile&&) noexcept;
  DestinationFile& operator=(DestinationFile&&) noexcept;
  ~DestinationFile();

  int fd() const;  // O_WRONLY, O_DIRECT where possible
  bool direct() const;
  const std::string& final_path() const;  // absolute, for people
  Status sync();  // fdatasync; an error means: nothing since the last good one is durable
  // Truncates to size, sets mode and mtime, fsyncs, renames (RENAME_NOREPLACE unless overwriting),
  // fsyncs the directory.
  Status commit();

 private:
  friend class Exports;
  struct State;
  explicit DestinationFile(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

class Exports {
 public:
  // Opens the roots. An export whose root is missing is a configuration error that names it.
  static Result<Exports> open(const std::vector<config::Export>& exports);

  // kSourceUnreadable (missing, no permission, a directory, a device), kOutsideExports.
  Result<SourceFile> open_source(std::string_view path) const;
  // Size, mtime, inode still as they were? Otherwise kIntegrity, "source changed".
  static Status check_unchanged(const SourceFile& file);
  // kOutsideExports, kDestinationExists, kNoSpace (checked before, and by fallocate), kStorage. Two
  // writers for one destination: the second gets kDestinationExists naming the first's temporary.
  Result<DestinationFile> create_destination(const DestinationSpec& spec) const;

 private:
  struct Root {
    config::Export config;
    UniqueFd fd;
  };
  struct Location {  // a path beneath a root; `relative` is "." for the root itself
    const Root* root = nullptr;
    std::string relative;
    std::string absolute;  // for people
  };
  Result<Location> locate(std::string_view path) const;
  std::vector<Root> roots_;
};

}  // namespace sluice::exports
