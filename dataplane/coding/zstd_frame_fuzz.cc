// A frame as a stranger could send it: any bytes, in any parts; and honest frames that were damaged. Nothing
// is written beyond the extent, and what is restored is as long as it has to be. What was compressed comes
// back.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "dataplane/base/input_for_fuzz.h"
#include "dataplane/coding/zstd_frame.h"

namespace {

using namespace sluice::coding;
using sluice::fuzz::Input;
using sluice::fuzz::require;

constexpr uint32_t kExtentBytes = 65536;

Step restore_in_parts(Restorer& restorer, std::span<const uint8_t> frame, uint32_t part_bytes) {
  Step step = Step::kMore;
  while (step == Step::kMore && !frame.empty()) {
    const auto part = frame.first(std::min<size_t>(part_bytes, frame.size()));
    frame = frame.subspan(part.size());
    step = restorer.step(part);
  }
  return frame.empty() ? step : Step::kFailed;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static Compressor compressor(kExtentBytes);
  static Restorer restorer(kExtentBytes);
  if (size > kExtentBytes) return 0;
  Input input(data, size);
  const uint32_t plain_bytes = input.take<uint16_t>() + 1U;
  const uint32_t part_bytes = input.take<uint16_t>() % 9000U + 1;
  const bool honest = input.flag();
  const uint32_t damaged_at = input.take<uint16_t>();
  const std::span<const uint8_t> rest = input.rest();
  if (!honest) {
    restorer.begin(plain_bytes);
    (void)restore_in_parts(restorer, rest, part_bytes);
    require(restorer.plain().size() == plain_bytes, "a restorer knows how long its extent is");
    return 0;
  }
  if (rest.empty()) return 0;
  compressor.begin(rest, kExtentBytes, Effort::kFast);
  Step step = Step::kMore;
  while (step == Step::kMore) step = compressor.step();
  if (step == Step::kFailed) return 0;
  std::vector<uint8_t> frame(compressor.frame().begin(), compressor.frame().end());
  restorer.begin(static_cast<uint32_t>(rest.size()));
  require(restore_in_parts(restorer, frame, part_bytes) == Step::kDone, "an honest frame is restored");
  require(std::ranges::equal(restorer.plain(), rest), "and to what it was made of");
  frame[damaged_at % frame.size()] ^= 1;
  restorer.begin(static_cast<uint32_t>(rest.size()));
  (void)restore_in_parts(restorer, frame, part_bytes);
  return 0;
}
