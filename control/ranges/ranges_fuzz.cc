// What stands in a file that seems to be the record of a range, and what somebody writes for a part: no bytes
// end the program, and what is taken is written again as it was understood.
// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <string_view>

#include "control/ranges/ranges.h"
#include "dataplane/base/input_for_fuzz.h"
#include "dataplane/crc/crc.h"

namespace {

using namespace sluice;

void check(std::string_view bytes) {
  const auto record = ranges::decode(bytes);
  if (!record) return;
  fuzz::require(selection::is_range(record->part) && record->part.length != 0, "it is of a range");
  fuzz::require(ranges::decode(ranges::encode(*record)) == record, "what was written is read");
  fuzz::require(ranges::tells_of(*record, record->part, record->mtime_ns, record->crc_kind),
                "and tells of it");
  selection::FilePart finish{.what = selection::FilePart::What::kFinish,
                             .set = record->part.set,
                             .whole_bytes = record->part.whole_bytes};
  ranges::Joined joined(finish, record->mtime_ns, record->crc_kind);
  const Status taken = joined.take(*record);
  fuzz::require(static_cast<bool>(taken) == (record->part.offset == 0), "only the first is taken first");
  fuzz::require(joined.next_offset() <= record->part.whole_bytes, "no range ends behind its file");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  check(bytes);
  // With the sum that it lacks, which nobody finds by chance.
  std::string summed = bytes;
  uint64_t sum = crc::compute(wire::CrcKind::kCrc64Ecma, 0, bytes.data(), bytes.size());
  for (int i = 0; i < 8; ++i, sum >>= 8) summed.push_back(static_cast<char>(sum & 0xFF));
  check(summed);
  const auto part = selection::parse_file_part(bytes);
  if (!part) {
    fuzz::require(part.error().code == ErrorCode::kUsage, "it is the command line that is wrong");
    fuzz::require(part.error().message.find('\n') == std::string::npos, "one line says why");
    return 0;
  }
  fuzz::require(selection::wished_part_problem(*part).empty(), "what is parsed can be");
  const auto again = selection::parse_file_part(selection::file_part_text(*part));
  fuzz::require(again && *again == *part, "and is written as it is read");
  return 0;
}
