// Any window, any probe, at any time (a hostile dataplane, or one with a hostile peer): the detector comes to
// an end, reports each number at most once, in order, and none that was received.
// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "control/recovery/loss_detector.h"
#include "dataplane/base/check.h"
#include "dataplane/base/input_for_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sluice;
  using namespace sluice::recovery;
  base::set_dchecks(true);
  constexpr uint64_t kBits = 1024;
  fuzz::Input input(data, size);
  std::array<std::atomic<uint64_t>, kBits / 64> words{};
  LossDetector detector;
  uint64_t end = 0;
  LossDetector::Seen seen;
  uint64_t now_ns = input.edge();
  uint64_t reported_end = 0;
  while (!input.empty()) {
    const uint32_t operation = input.below(8);
    if (operation < 2) {
      words[input.below(kBits / 64)] = input.take<uint64_t>();
    } else if (operation == 2) {
      end = input.edge();
    } else if (operation == 3) {
      end += input.below(64);
    } else if (operation == 4) {
      seen.probe_end = input.flag() ? input.edge() : end + input.below(8);
    } else if (operation == 5) {
      seen.late_chunks = input.edge();
    } else {
      now_ns += operation == 6 ? input.edge() : LossDetector::kReorderMaxNs;
      std::vector<board::Gap> lost;
      const size_t room = input.below(8);
      const uint64_t settled_before = detector.settled_below();
      const WindowView window(words.data(), kBits, end);
      detector.step(window, seen, now_ns, room, &lost);
      fuzz::require(lost.size() <= room, "no more runs than there is room");
      for (const board::Gap& gap : lost) {
        fuzz::require(gap.count > 0 && gap.first >= reported_end && gap.first + gap.count > gap.first,
                      "each number once, in order");
        reported_end = gap.first + gap.count;
        for (uint64_t seq = gap.first; seq < std::min(reported_end, gap.first + 2 * kBits) && seq < end;
             ++seq) {
          fuzz::require((words[seq % kBits / 64] >> (seq % 64) & 1) == 0, "none that was received");
        }
      }
      fuzz::require(detector.settled_below() >= settled_before && detector.settled_below() >= reported_end,
                    "what is settled stays settled");
    }
  }
  return 0;
}
