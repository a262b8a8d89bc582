// One file of which several sessions write ranges, and a last one gives it its name (docs/WIRE.md 2.17): what
// is noted of a range that is durable, and whether the ranges of a file are all there.
//
// Pure. A record is a small file that another node wrote, so what it says is checked.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "control/selection/file_part.h"
#include "dataplane/base/error.h"
#include "dataplane/base/file_time.h"
#include "dataplane/core/wire.h"

namespace sluice::ranges {

// Longer than any: what is longer is none.
inline constexpr size_t kRecordBytesMax = 256;

struct Record {
  selection::FilePart part;       // a range
  base::FileTimeNs mtime_ns = 0;  // of the source. With the whole file's size: which bytes it held
  wire::CrcKind crc_kind = wire::CrcKind::kCrc64Ecma;
  uint64_t digest = 0;  // of the range, as source and destination agreed on it

  bool operator==(const Record&) const = default;
};

// With a sum behind it, so that one half written is none.
std::string encode(const Record& record);
std::optional<Record> decode(std::string_view bytes);

// Does it say that this range, of a source as it is now, has arrived?
bool tells_of(const Record& record, const selection::FilePart& part, base::FileTimeNs mtime_ns,
              wire::CrcKind crc_kind);

// The records of a file, from its first byte on, each where the one before it ends.
class Joined {
 public:
  // `finish`: of the session that is to give the file its name; its source now.
  Joined(const selection::FilePart& finish, base::FileTimeNs mtime_ns, wire::CrcKind crc_kind)
      : finish_(finish), mtime_ns_(mtime_ns), crc_kind_(crc_kind) {}

  bool complete() const { return end_ == finish_.whole_bytes; }
  uint64_t next_offset() const { return end_; }
  // kIntegrity: it is of another source, or of this one as it was before. kUsage: it was summed otherwise.
  Status take(const Record& record);
  // Of all that was taken.
  uint64_t digest() const { return digest_; }
  uint64_t ranges() const { return ranges_; }

 private:
  const selection::FilePart finish_;
  const base::FileTimeNs mtime_ns_;
  const wire::CrcKind crc_kind_;
  uint64_t end_ = 0;
  uint64_t digest_ = 0;
  uint64_t ranges_ = 0;
};

}  // namespace sluice::ranges
