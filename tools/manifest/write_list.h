// A list of the files beneath a directory with their digests, made anew.
//
// Blocking; makes threads of its own, which end before the call does. The list gets its name when it is whole
// and on the disk.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <iosfwd>
#include <vector>

#include "tools/manifest/check.h"

namespace sluice::manifest {

struct WriteOptions {
  std::filesystem::path path;  // a directory, or one file
  std::filesystem::path list;
  std::ostream* out = nullptr;  // it goes there, once it is whole, in place of a file
  Format format = Format::kSum;
  std::vector<Kind> kinds;
  size_t jobs = 1;
  bool replace = false;  // a list that is there
};

struct Written {
  uint64_t files = 0;
  uint64_t others = 0;  // links, pipes and the like, which have no digest
  uint64_t unreadable = 0;
  bool interrupted = false;
};

// That the list can be made at its place, as far as can be told before: nothing is written.
Status check_place(const WriteOptions& options);
// A list of what is known already, in the order of its names.
Status write_entries(const WriteOptions& options, std::vector<Entry> entries);

// Nothing is written where a file could not be read (`on_finding` was told which), or if it was interrupted.
Result<Written> write_list(const WriteOptions& options, Pace& pace, const OnFinding& on_finding);

}  // namespace sluice::manifest
