// SPDX-License-Identifier: Apache-2.0
#include "control/ranges/ranges.h"

#include <fmt/format.h>

#include "control/proto/range_fields.h"
#include "control/proto/ranges.pb.h"
#include "dataplane/crc/crc.h"

namespace sluice::ranges {
namespace {

constexpr size_t kSumBytes = 8;

std::string sum_of(std::string_view bytes) {
  uint64_t sum = crc::compute(wire::CrcKind::kCrc64Ecma, 0, bytes.data(), bytes.size());
  std::string text;
  for (size_t i = 0; i < kSumBytes; ++i, sum >>= 8) text.push_back(static_cast<char>(sum & 0xFF));
  return text;
}

}  // namespace

std::string encode(const Record& record) {
  peer::RangeRecord message;
  peer::put_part(record.part, &message);
  base::put_file_time(record.mtime_ns, &message);
  message.set_crc_kind(static_cast<uint32_t>(record.crc_kind));
  message.set_digest(record.digest);
  const std::string bytes = message.SerializeAsString();
  return bytes + sum_of(bytes);
}

std::optional<Record> decode(std::string_view bytes) {
  if (bytes.size() < kSumBytes || bytes.size() > kRecordBytesMax) return std::nullopt;
  const std::string_view content = bytes.substr(0, bytes.size() - kSumBytes);
  if (bytes.substr(content.size()) != sum_of(content)) return std::nullopt;
  peer::RangeRecord message;
  if (!message.ParseFromArray(content.data(), static_cast<int>(content.size()))) return std::nullopt;
  const auto kind = static_cast<wire::CrcKind>(message.crc_kind());
  if (message.crc_kind() > static_cast<uint32_t>(wire::CrcKind::kRead) || !wire::checks(kind))
    return std::nullopt;
  Record record{.part = peer::part_of(message),
                .mtime_ns = base::file_time_of(message),
                .crc_kind = kind,
                .digest = message.digest()};
  if (!selection::is_range(record.part) ||
      !selection::offered_part_problem(record.part, record.part.length).empty())
    return std::nullopt;
  return record;
}

bool tells_of(const Record& record, const selection::FilePart& part, base::FileTimeNs mtime_ns,
              wire::CrcKind crc_kind) {
  return record.part == part && record.mtime_ns == mtime_ns && record.crc_kind == crc_kind;
}

Status Joined::take(const Record& record) {
  const selection::FilePart& part = record.part;
  if (part.set != finish_.set || part.offset != end_)
    return Error{
        ErrorCode::kIntegrity,
        fmt::format("what is noted of its bytes from {} on is of something else: send that part again",
                    end_)};
  if (part.whole_bytes != finish_.whole_bytes || record.mtime_ns != mtime_ns_)
    return Error{ErrorCode::kIntegrity,
                 fmt::format("its source changed since bytes {} to {} were sent: send its parts again",
                             part.offset, part.offset + part.length)};
  if (record.crc_kind != crc_kind_)
    return Error{ErrorCode::kUsage,
                 fmt::format("bytes {} to {} were sent with crc = \"{}\": finish it with the same",
                             part.offset, part.offset + part.length, wire::crc_kind_name(record.crc_kind))};
  digest_ = crc::shift(crc_kind_, digest_, part.length) ^ record.digest;
  end_ += part.length;
  ++ranges_;
  return {};
}

}  // namespace sluice::ranges
