// SPDX-License-Identifier: Apache-2.0
#include "control/exports/read_back.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "control/exports/holes.h"
#include "dataplane/base/check.h"
#include "dataplane/base/page_cache.h"
#include "dataplane/base/progress.h"
#include "dataplane/base/unique_fd.h"
#include "dataplane/crc/adler32.h"
#include "dataplane/crc/crc.h"
#include "dataplane/crc/zeros.h"

namespace sluice::exports {
namespace {

constexpr size_t kAlignment = 4096;
constexpr uint64_t kReadBytes = 4U << 20;

uint64_t aligned(uint64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// Sums that grow piece by piece, from the first byte to the last; what is a hole is not read.
class Crc {
 public:
  explicit Crc(wire::CrcKind kind) : kind_(kind) {}
  void add(const uint8_t* data, uint64_t bytes) { value_ = crc::compute(kind_, value_, data, bytes); }
  void add_zeros(uint64_t bytes) { value_ = crc::with_zeros(kind_, value_, bytes); }
  uint64_t value() const { return value_; }

 private:
  wire::CrcKind kind_;
  uint64_t value_ = 0;
};

// And others of the same bytes: digests::Several, sums::RangeSummer.
template <typename Others>
class CrcAnd {
 public:
  CrcAnd(wire::CrcKind kind, Others& others) : crc_(kind), others_(others) {}
  void add(const uint8_t* data, uint64_t bytes) {
    crc_.add(data, bytes);
    others_.add(data, bytes);
  }
  void add_zeros(uint64_t bytes) {
    crc_.add_zeros(bytes);
    others_.add_zeros(bytes);
  }
  uint64_t value() const { return crc_.value(); }

 private:
  Crc crc_;
  Others& others_;
};

class Adler32 {
 public:
  void add(const uint8_t* data, uint64_t bytes) { value_ = adler32::compute(value_, data, bytes); }
  void add_zeros(uint64_t bytes) { value_ = adler32::with_zeros(value_, bytes); }
  uint64_t value() const { return value_; }

 private:
  uint32_t value_ = adler32::kOfNothing;
};

template <typename Sum>
struct Summed {
  Sum sum;
  uint64_t bytes = 0;
};

template <typename Sum>
Result<Summed<Sum>> read_part(int fd, uint64_t offset, uint64_t length, uint64_t data_bytes_most,
                              const ReadProgress& progress, Sum sum) {
  DCHECK(length <= static_cast<uint64_t>(INT64_MAX) - kAlignment &&
             offset <= static_cast<uint64_t>(INT64_MAX) - length,
         "bytes of a file");
  const uint64_t size = std::min(kReadBytes, aligned(length) + kAlignment);
  std::unique_ptr<uint8_t, decltype(&std::free)> buffer(nullptr, &std::free);  // holes need none
  const Error cancelled{ErrorCode::kCancelled, "was not read to its end"};
  const uint64_t end = offset + length;
  uint64_t at = offset;
  bool cached = false;
  for (uint64_t read_bytes = 0; at < end && read_bytes < data_bytes_most;) {
    base::note_progress();
    // A hole of any length is read at once.
    if (const uint64_t data = exports::next_data(fd, at, end); data > at) {
      sum.add_zeros(data - at);
      DCHECK(data <= end, "a hole is read up to the end of what is asked for");
      if (progress && !progress(data - at)) return cancelled;
      at = data;
      continue;
    }
    if (!buffer) buffer.reset(static_cast<uint8_t*>(std::aligned_alloc(kAlignment, size)));
    if (!buffer) return Error{ErrorCode::kResources, "no memory to read it"};
    const uint64_t skew = at % kAlignment;  // after a short read
    const size_t wanted = std::min(size, aligned(skew + end - at));
    const ssize_t n = ::pread(fd, buffer.get(), wanted, static_cast<off_t>(at - skew));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EINVAL && !std::exchange(cached, true) && base::go_through_page_cache(fd)) continue;
    if (n < 0 || static_cast<uint64_t>(n) <= skew) {
      return Error{ErrorCode::kStorage, fmt::format("reading at byte {} failed: {}: check the disk", at,
                                                    n < 0 ? std::strerror(errno) : "it ends early")};
    }
    const uint64_t got = std::min(static_cast<uint64_t>(n) - skew, end - at);
    sum.add(buffer.get() + skew, got);
    at += got;
    read_bytes += got;
    if (progress && !progress(got)) return cancelled;
  }
  return Summed<Sum>{std::move(sum), at - offset};
}

// With what else is to be computed of the same bytes.
Result<Part> read_crc_of_part(int fd, wire::CrcKind kind, uint64_t offset, uint64_t length,
                              uint64_t data_bytes_most, const ReadProgress& progress, const Also& also) {
  const auto read = [&](auto sum) -> Result<Part> {
    auto summed = read_part(fd, offset, length, data_bytes_most, progress, std::move(sum));
    if (!summed) return summed.error();
    return Part{.bytes = summed->bytes, .crc = summed->sum.value()};
  };
  if (also.sums != nullptr) return read(CrcAnd(kind, *also.sums));
  if (also.digests != nullptr) return read(CrcAnd(kind, *also.digests));
  return read(Crc(kind));
}

Result<uint64_t> crc_of(const Result<Part>& part) {
  if (!part) return part.error();
  return part->crc;
}

}  // namespace

Result<uint64_t> read_crc(int fd, wire::CrcKind kind, uint64_t offset, uint64_t length,
                          const ReadProgress& progress, digests::Several* also) {
  return crc_of(read_crc_of_part(fd, kind, offset, length, UINT64_MAX, progress, {.digests = also}));
}

Result<uint64_t> read_adler32(int fd, uint64_t length, const ReadProgress& progress) {
  const auto read = read_part(fd, 0, length, UINT64_MAX, progress, Adler32());
  if (!read) return read.error();
  return read->sum.value();
}

Result<Part> read_back_part(int fd, wire::CrcKind kind, uint64_t offset, uint64_t length,
                            uint64_t data_bytes_most, const Also& also) {
  const auto read = [&](int from) {
    return read_crc_of_part(from, kind, offset, length, data_bytes_most, {}, also);
  };
  const std::string again = fmt::format("/proc/self/fd/{}", fd);
  UniqueFd reader;
  if (!also.cached) reader = UniqueFd(::open(again.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECT));
  if (!reader) reader = UniqueFd(::open(again.c_str(), O_RDONLY | O_CLOEXEC));
  // A user's file, which is only his: the descriptor was opened as him.
  if (!reader && errno == EACCES) return read(fd);
  if (!reader)
    return Error{ErrorCode::kStorage, fmt::format("cannot be read back: {}", std::strerror(errno))};
  return read(reader.get());
}

Result<uint64_t> read_back_crc(int fd, wire::CrcKind kind, uint64_t offset, uint64_t length,
                               const Also& also) {
  return crc_of(read_back_part(fd, kind, offset, length, UINT64_MAX, also));
}

}  // namespace sluice::exports
