// What a sending end hears of a destination that asks for parts of its files, and the digests that it says of
// these (docs/WIRE.md 2.1.6).
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "control/source/source_end.h"

namespace sluice::transfer {
namespace {

constexpr uint64_t kGatherNs = 50'000'000;  // digests wait so long for others before a look at their object
constexpr size_t kGatherMax = 64;           // so many do not wait
// Where a look reads all again, it is for all that the peer has demanded; but not for longer.
constexpr uint64_t kGatherToReadNs = 5'000'000'000;

}  // namespace

Status SourceEnd::check_wanted(const Message& message, ObjectId object) const {
  if (sender_.obeys_wants()) return check_object(message, object);
  return incompatible(
      fmt::format("the peer sent {}, and parts of files were not agreed upon", message_name(message)));
}

Status SourceEnd::hear_want(const Want& want, Effects& out) {
  if (want.withdrawn) {
    sender_.want_no_more(want.object, want.ranges);
  } else {
    sender_.want(want.object, want.ranges);
  }
  open_next(out);
  reread(out);
  return follow_sender(out);
}

Status SourceEnd::hear_digests_wanted(const DigestsWanted& wanted, Effects& out) {
  if (!sender_.want_digests(wanted.object, wanted.ranges, wanted.last))
    return incompatible("the peer asks for the digests of more extents at a time than was agreed upon");
  open_next(out);
  reread(out);
  return follow_sender(out);
}

// A digest counts for what the object holds once a look that began after the extent was read has found the
// object unchanged. One look is for all that was read by then.
void SourceEnd::look(uint64_t now_ns, Effects& out) {
  if (files_.halted()) return;
  sender_.release_last_digests();
  recovery::DigestDesk& desk = sender_.digest_desk();
  const bool due = now_ns >= looks_.due_ns;
  for (const ObjectId object : desk.waiting()) {
    if (looks_.batches.contains(object) ||
        (!due && desk.waiting(object) < kGatherMax && !desk.last_due(object)))
      continue;
    const bool suspect = catalog().files_of(object).front().suspect;
    const bool demanded =
        !suspect || desk.all_read(object) || now_ns >= looks_.read_again_ns + kGatherToReadNs;
    recovery::DigestDesk::Batch batch = desk.take(object, demanded);
    if (batch.runs.empty()) continue;
    if (suspect && batch.demanded) looks_.read_again_ns = now_ns;
    looks_.batches[object] = std::move(batch);
    looks_.due_ns = now_ns + kGatherNs;
    check_source(object, std::nullopt, out);
  }
}

// What a former attempt began to look at is wanted again, or it is not. A reading that began then would not
// cover what is read from now on.
void SourceEnd::forget_looks() {
  for (const auto& [object, batch] : looks_.batches) recheck_.drop(object);
  looks_.batches.clear();
}

// Where times cannot tell whether bytes were changed only reading them again can. In parts that is done where
// the peer asks for it: after the first digests and at the end, instead of after each few extents.
bool SourceEnd::in_doubt(ObjectId object) const {
  if (!catalog().files_of(object).front().suspect) return false;
  const auto batch = looks_.batches.find(object);
  return !sender_.obeys_wants() || (batch != looks_.batches.end() && batch->second.demanded);
}

void SourceEnd::say_extents(ObjectId object, Effects& out) {
  const auto batch = looks_.batches.extract(object);
  if (batch.empty()) return;
  const recovery::ExtentMap& map = sender_.ledger(object).map();
  for (const recovery::DigestDesk::Run& run : batch.mapped().runs) {
    for (size_t at = 0; at < run.digests.size(); at += kDigestsPerMessage) {
      const auto begin = run.digests.begin() + static_cast<std::ptrdiff_t>(at);
      const size_t count = std::min(run.digests.size() - at, kDigestsPerMessage);
      say(ExtentDigests{.object = object,
                        .offset = map.range_of(run.first.plus(at)).offset,
                        .digests = {begin, begin + static_cast<std::ptrdiff_t>(count)},
                        .last = batch.mapped().last},
          out);
    }
  }
}

}  // namespace sluice::transfer
