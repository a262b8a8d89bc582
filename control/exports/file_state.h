// What the system says of an open file: which one it is, and when it was changed. Cold; any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "control/catalog/catalog.h"
#include "dataplane/base/error.h"
#include "dataplane/base/file_time.h"

namespace sluice::exports {

struct FileState {
  catalog::FileIdentity identity;
  uint64_t size_bytes = 0;
  uint32_t mode = 0;  // with the kind of file
  uint32_t uid = 0;
  uint32_t gid = 0;
  base::FileTimeNs mtime_ns = 0;
  int64_t ctime_ns = 0;
};

// Nothing: errno tells. A descriptor that can do nothing (O_PATH) does not tell the generation.
// What a client of a network file system remembers of it may be a minute old, unless `ask_server`.
std::optional<FileState> state_of(int fd, bool ask_server = false);

// May its bytes change without its times saying so? Somebody has it open for writing, or has it mapped: who
// writes through a mapping sets the times with the first byte of a page alone, on some file systems. Or it
// was changed so lately that another change could bear the same time. `fd` can only read. Where the system
// does not tell (it does so for the file's owner and CAP_LEASE), the answer is no.
bool may_be_changing(int fd, const FileState& state);

// Is the size that the system says of this file that of its content? Files of /proc, /sys and the like say
// none, a page, or the size of the address space, and are made while they are read. `fd` can read; what may
// block a reader has O_NONBLOCK. `info`: what fstat says of it.
bool tells_its_size(int fd, const struct stat& info);
Error tells_no_size(const std::string& shown);

}  // namespace sluice::exports
