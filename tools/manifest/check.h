// Files compared with a list of their digests: what differs, is missing, or is there beside the list.
//
// Blocking; makes threads of its own, which end before the call does.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <istream>
#include <optional>
#include <string>
#include <vector>

#include "tools/manifest/hash_file.h"
#include "tools/manifest/list.h"

namespace sluice::manifest {

inline constexpr size_t kJobsMax = 64;

struct Finding {
  Problem problem = Problem::kNone;
  std::string name;    // as the list has it; of kExtra from the directory on
  uint64_t line = 0;   // of the list; 0: none
  std::string reason;  // for people
};

struct Counts {
  uint64_t good = 0;
  uint64_t good_before = 0;  // by --resume: not read again
  uint64_t differs = 0;
  uint64_t missing = 0;
  uint64_t refused = 0;
  uint64_t unreadable = 0;
  uint64_t extra = 0;
  uint64_t ignored = 0;  // missing, and wished so
  bool interrupted = false;
};

struct CheckOptions {
  std::filesystem::path path;  // a directory, or one file of the list
  std::string list_name;
  std::optional<Kind> kind;
  std::string strip_prefix;
  std::filesystem::path resume;  // empty: nothing is kept
  size_t jobs = 1;
  bool extra = false;
  bool ignore_missing = false;
  std::optional<std::pair<uint64_t, uint64_t>> list_file = {};  // device and inode: no extra file
};

using OnFinding = std::function<void(const Finding&)>;

// `list` can be read twice if `resume` is given. `on_finding` is called by one thread at a time, in the
// list's order. kUsage: the list is none, or names nothing that is asked for.
Result<Counts> check_list(const CheckOptions& options, std::istream& list, Pace& pace,
                          const OnFinding& on_finding);

// kNone, kIntegrity or kSourceUnreadable.
ErrorCode verdict_of(const Counts& counts);

// The directory of `path`, open, and the name in it; empty: all of it. kSourceUnreadable.
struct Place {
  UniqueFd directory;
  std::string directory_path;  // without links
  std::string name;
};
Result<Place> open_place(const std::filesystem::path& path);

}  // namespace sluice::manifest
