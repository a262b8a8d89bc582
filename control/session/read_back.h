// The CRC of bytes as the disk gives them. Blocking.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "dataplane/core/error.h"
#include "dataplane/core/wire.h"

namespace sluice::control {

// Of [offset, offset+length), offset a multiple of 4096 (the descriptor may be O_DIRECT). kStorage names
// `shown`.
Result<uint64_t> read_crc(int fd, const std::string& shown, wire::CrcKind kind, uint64_t offset,
                          uint64_t length);
// Of the first `length` bytes of the file behind a descriptor that can only write, past the page cache where
// the file system allows that.
Result<uint64_t> read_back_crc(int fd, const std::string& shown, wire::CrcKind kind, uint64_t length);

}  // namespace sluice::control
