// The CRC, or another sum, of bytes as the disk gives them. Blocking.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "control/hash/several.h"
#include "dataplane/base/error.h"
#include "dataplane/core/wire.h"
#include "dataplane/sums/range_summer.h"

namespace sluice::exports {

// Told now and then how many bytes more were read; false ends it, with kCancelled.
using ReadProgress = std::function<bool(uint64_t bytes)>;

// Of [offset, offset+length), offset a multiple of 4096 (the descriptor may be O_DIRECT). An error says
// where and why; the caller names the file.
// `also`: digests of the same bytes.
Result<uint64_t> read_crc(int fd, wire::CrcKind kind, uint64_t offset, uint64_t length,
                          const ReadProgress& progress = {}, digests::Several* also = nullptr);
// The Adler-32 of the first `length` bytes, likewise.
Result<uint64_t> read_adler32(int fd, uint64_t length, const ReadProgress& progress = {});
// The CRC of the file behind a descriptor of any kind, past the page cache where the file system allows
// that.
// With `also`: digests of the same bytes, or sums of them; and through the page cache, where it need not be
// the disk.
struct Also {
  digests::Several* digests = nullptr;
  sums::RangeSummer* sums = nullptr;
  bool cached = false;
};
Result<uint64_t> read_back_crc(int fd, wire::CrcKind kind, uint64_t offset, uint64_t length,
                               const Also& also = {});

// Likewise, and it ends early once it has read `data_bytes_most` that are no hole (a piece of 4 MiB more).
struct Part {
  uint64_t bytes = 0;
  uint64_t crc = 0;  // of these
};
Result<Part> read_back_part(int fd, wire::CrcKind kind, uint64_t offset, uint64_t length,
                            uint64_t data_bytes_most, const Also& also = {});

}  // namespace sluice::exports
