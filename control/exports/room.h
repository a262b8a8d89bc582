// Room on a file system for a file that is to be written. Blocking.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dataplane/base/error.h"
#include "dataplane/base/range.h"

namespace sluice::exports {

uint64_t free_bytes_of(int fd);  // where the file system tells

// Makes the file `room_bytes` long, at least `size_bytes`, and takes room for all of it but the holes, which
// are in order and lie in `size_bytes`. kNoSpace, kStorage; `path` is for people.
Status take_room(int fd, uint64_t size_bytes, uint64_t room_bytes, const std::vector<base::Range>& holes,
                 const std::string& path);
Error no_space(const std::string& path, uint64_t needed_bytes, uint64_t free_bytes);
// What a file system that said ENOSPC or EDQUOT ran out of: a quota, names (inodes) or bytes. `fd`: of
// anything in it; -1: not known. kNoSpace; `path` is for people.
Error full(const std::string& path, int reason, int fd);

// Room for a range of a file that others write as well. kNoSpace, kStorage.
Status take_range(int fd, uint64_t offset, uint64_t length, const std::string& path);

}  // namespace sluice::exports
