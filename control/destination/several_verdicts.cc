// Extents that sources have brought: an extent counts once its source has said its digest. Here stands what
// follows where it said another one, or where two sources differ.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "control/destination/several_sources.h"

namespace sluice::transfer {
namespace {

// A bit that flips in a memory is one extent. A source with more of them is broken, or lies.
constexpr uint32_t kWrongMax = 3;
constexpr uint32_t kWrongOfSettledMax = 64;

}  // namespace

void SeveralSources::follow_check() {
  const parts::ExtentCheck::Verdicts verdicts = check_.take_verdicts();
  for (const auto& verdict : verdicts.confirmed) count(verdict);
  for (const auto& verdict : verdicts.wrong) refuse(verdict);
  for (const parts::ExtentCheck::Conflict& conflict : verdicts.conflicts) {
    lose(conflict.object, parts::run_of(conflict.extent));
    Known& known = objects_.at(conflict.object);
    const std::string& shown = known.object.shown;
    if (conflict.asked && known.object.listed) {
      begin_settlement(known);
    } else if (conflict.asked) {
      fail({ErrorCode::kIntegrity,
            fmt::format("{}: {} and {} do not have the same bytes: nothing says which of them is right; "
                        "compare them with 'sluice ls --digest', and get it from one of them",
                        shown, peer_of(conflict.first), peer_of(conflict.second))});
    } else {
      fail({ErrorCode::kIncompatible,
            fmt::format("{}: {} sends bytes that it was not asked for", shown, peer_of(conflict.second))});
    }
  }
  for (const auto& rewritten : verdicts.rewritten) lose(rewritten.object, parts::run_of(rewritten.extent));
  for (const LegId leg : verdicts.in_arrears)
    fail({ErrorCode::kStalled, fmt::format("{} does not say the digests of what it sends", peer_of(leg))});
}

void SeveralSources::count(const parts::ExtentCheck::Verdict& verdict) {
  const auto found = objects_.find(verdict.object);
  if (found == objects_.end()) return;
  if (!planner_.arrived(verdict.leg, verdict.object, verdict.extent, now_ns_)) {
    // It does not count: another source is asked for this pack by now, or this source for nothing more of the
    // file. The other may have sent the extent already, into what is forgotten here, so it is asked anew.
    if (found->second.counted.is_set(verdict.extent)) return;
    check_.forget(verdict.object, parts::run_of(verdict.extent));
    lose(verdict.object, parts::run_of(verdict.extent));
    return;
  }
  found->second.counted.set(verdict.extent);
  found->second.dropped.remove(parts::run_of(verdict.extent));
  replicas_.confirmed(verdict.object, {.extent = verdict.extent, .crc = verdict.crc, .from = verdict.leg});
  if (found->second.counted.complete()) complete(found->second);
  const recovery::Range range = found->second.counted.range_of(verdict.extent);
  actions_.written.push_back({.kind = board::EventKind::kExtentWritten,
                              .object = verdict.object.value(),
                              .offset = range.offset,
                              .length = range.length,
                              .digest = verdict.crc});
}

void SeveralSources::refuse(const parts::ExtentCheck::Verdict& verdict) {
  lose(verdict.object, parts::run_of(verdict.extent));
  const auto leg = legs_.find(verdict.leg);
  if (leg == legs_.end()) return;
  // A source that is asked no more may have begun an extent that another one sends: the extent is a mixture
  // then, and nobody's fault.
  const uint32_t most = objects_.at(verdict.object).settlement ? kWrongOfSettledMax : kWrongMax;
  if (++leg->second.wrong < most) return;
  fail(
      {ErrorCode::kIncompatible,
       fmt::format("{}: what came from {} is not what it says that it read, {} times: nothing of it is kept; "
                   "check the memory of both nodes",
                   objects_.at(verdict.object).object.shown, peer_of(verdict.leg), most)});
}

}  // namespace sluice::transfer
