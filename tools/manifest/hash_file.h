// One file beneath a directory, read once, with as many digests of it as are wanted.
//
// Any thread. Blocking. The data come from the disk: what the page cache has of a file is dropped before it
// is read, where the file system allows that, and behind the reader.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "control/digests/kind.h"
#include "dataplane/base/unique_fd.h"

namespace sluice::manifest {

using digests::Kind;

// By which a file is known again that nobody wrote meanwhile.
struct FileMark {
  uint64_t inode = 0;
  uint64_t size_bytes = 0;
  int64_t modified_ns = 0;
  int64_t changed_ns = 0;
  bool operator==(const FileMark&) const = default;
};

enum class Problem : uint8_t {
  kNone,
  kDiffers,     // its bytes, or its size
  kMissing,     // no such name
  kRefused,     // the name leads out of the directory, through a symbolic link, or to no file
  kUnreadable,  // permission, the disk, or somebody wrote it meanwhile
  kExtra,       // is there, and is in no list
};
std::string_view name_of(Problem problem);

struct OpenedFile {
  UniqueFd fd;
  FileMark mark;
  Problem problem = Problem::kNone;
  std::string reason;
};
// Never follows a link, and never leaves the directory. `name`: as a list has it, without a slash before it.
OpenedFile open_file(int directory_fd, const std::string& name);

// What those see who wait, and how they end it.
struct Pace {
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> bytes{0};
  std::atomic<uint64_t> files{0};
};

struct Hashed {
  std::vector<std::string> hex;  // of each kind
  Problem problem = Problem::kNone;
  std::string reason;
  bool stopped = false;
};
Hashed hash_file(const OpenedFile& file, const std::vector<Kind>& kinds, Pace& pace);

}  // namespace sluice::manifest
