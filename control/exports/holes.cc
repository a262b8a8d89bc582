// SPDX-License-Identifier: Apache-2.0
#include "control/exports/holes.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "control/catalog/catalog.h"
#include "dataplane/base/check.h"

namespace sluice::exports {
namespace {

constexpr uint64_t kHoleBytesMin = 64U << 10;  // the shortest extent that nodes agree upon
constexpr size_t kRunsMax = 1'000'000;         // looked at, in a file that is all holes

bool longer(const base::Range& one, const base::Range& other) { return one.length > other.length; }
bool before(const base::Range& one, const base::Range& other) { return one.offset < other.offset; }

void keep_longest(std::vector<base::Range>& holes) {
  if (holes.size() <= catalog::kHolesMax) return;
  const auto end = holes.begin() + static_cast<ptrdiff_t>(catalog::kHolesMax);
  std::nth_element(holes.begin(), end, holes.end(), longer);
  holes.erase(end, holes.end());
  DCHECK(holes.size() == catalog::kHolesMax, "the longest stay");
}

}  // namespace

uint64_t next_data(int fd, uint64_t offset, uint64_t end) {
  const off_t data = ::lseek(fd, static_cast<off_t>(offset), SEEK_DATA);
  if (data >= 0) return std::clamp(static_cast<uint64_t>(data), offset, end);
  struct stat info {};
  // ENXIO: none up to its end, which must not come before that which is asked for.
  const bool none = errno == ENXIO && ::fstat(fd, &info) == 0 && static_cast<uint64_t>(info.st_size) >= end;
  return none ? end : offset;
}

std::vector<base::Range> holes_of(int fd, uint64_t size_bytes) {
  struct stat info {};
  if (::fstat(fd, &info) != 0 || static_cast<uint64_t>(info.st_blocks) * 512 >= size_bytes) return {};
  // There were file systems that called what was not on the disk yet a hole (OpenZFS before 2.2.2).
  if (::fdatasync(fd) != 0) return {};
  std::vector<base::Range> holes;
  uint64_t at = 0;
  for (size_t runs = 0; at < size_bytes && runs < kRunsMax; ++runs) {
    const uint64_t data = next_data(fd, at, size_bytes);
    const uint64_t begin = (at + kHoleBytesMin - 1) / kHoleBytesMin * kHoleBytesMin;
    const uint64_t end = data == size_bytes ? data : data / kHoleBytesMin * kHoleBytesMin;
    DCHECK(holes.empty() || begin >= holes.back().end() || holes.size() > catalog::kHolesMax,
           "holes are found in order");
    if (begin < end) holes.push_back({.offset = begin, .length = end - begin});
    if (holes.size() == 2 * catalog::kHolesMax) keep_longest(holes);
    if (data == size_bytes) break;
    const off_t next = ::lseek(fd, static_cast<off_t>(data), SEEK_HOLE);
    if (next < 0 || static_cast<uint64_t>(next) <= data) break;
    at = static_cast<uint64_t>(next);
  }
  keep_longest(holes);
  std::sort(holes.begin(), holes.end(), before);
  DCHECK(holes.size() <= catalog::kHolesMax, "no more than can be told");
  DCHECK(holes.empty() || holes.back().end() <= size_bytes, "a hole lies within its file");
  return holes;
}

}  // namespace sluice::exports
