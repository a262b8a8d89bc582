// Digests that archives ask for: computed of what is stored, before it gets its name; and what the source
// hears of them.
//
// A file that is an object of its own: where all its digests can be joined of sums of its extents, workers
// make these while data move, and readers those of what was there before. Otherwise, or if some are lacking,
// it is read once it is whole and synced. The names of a pack are summed in memory while they are unpacked
// (control/exports/unpack.h). The session's own CRC needs none of that.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "control/destination/destination_end.h"
#include "control/destination/digest_sums.h"

namespace sluice::transfer {
namespace {

constexpr size_t kBytesPerMessage = 256U << 10;  // of names and values, about

size_t bytes_of(const digests::Named& name) {
  size_t bytes = name.path.size() + name.target.size() + sizeof(name);
  for (const digests::Value& value : name.values) bytes += value.hex.size();
  return bytes;
}

}  // namespace

digests::Mask DestinationEnd::to_digest(ObjectId object) const {
  if (files_.discards() || catalog().packed(object)) return 0;
  return joined_sums(object) ? 0 : costly_kinds(object);
}

// Those that are not known anyway.
digests::Mask DestinationEnd::costly_kinds(ObjectId object) const {
  return catalog().files_of(object).front().digests.wanted & ~own_kind(agreement_.crc_kind) &
         digests::kAllKinds;
}

std::optional<sums::ExtentSums> DestinationEnd::joined_sums(ObjectId object) const {
  return files_.sums_of(object) == 0 ? std::nullopt : receiver_->sums(object).whole();
}

// `read`: of the bytes that the disk gave back.
Status DestinationEnd::take_digests(ObjectId object, const digests::Values& read) {
  if (files_.discards() || catalog().packed(object)) return {};
  catalog::File& file = files_.catalog().files_of(object).front();
  if (file.digests.wanted == 0) return {};
  digests::Named named{.path = {}, .size_bytes = file.size_bytes, .target = {}, .values = read};
  if (const digests::Mask own = own_kind(agreement_.crc_kind) & file.digests.wanted; own != 0) {
    const digests::Kind kind = digests::kinds_of(own).front();
    const uint64_t sum = receiver_->digest(object);
    named.values.push_back(
        {.kind = kind,
         .hex = kind == digests::Kind::kCrc64 ? fmt::format("{:016x}", sum) : fmt::format("{:08x}", sum)});
  }
  if (const auto joined = joined_sums(object))
    std::ranges::copy(values_of(costly_kinds(object), *joined), std::back_inserter(named.values));
  std::ranges::sort(named.values, {}, &digests::Value::kind);
  file.digests.found = {std::move(named)};
  if (!fits_list(object)) return unlike_list(object, "nothing of it was stored");
  leave_out_differing(object);
  return {};
}

bool DestinationEnd::fits_list(ObjectId object) const {
  const digests::Digested& its = catalog().files_of(object).front().digests;
  return its.found.empty() || digests::difference(its.expected, its.found.front().values).empty();
}

Error DestinationEnd::unlike_list(ObjectId object, std::string_view consequence) const {
  const digests::Digested& its = catalog().files_of(object).front().digests;
  const std::string how =
      its.found.empty() ? "" : ": " + digests::difference(its.expected, its.found.front().values);
  return {ErrorCode::kIntegrity,
          fmt::format("{}: differs from the list{}; {}", catalog().shown(object), how, consequence)};
}

void DestinationEnd::note_digest_progress(const ObjectReadBack& event, Effects& out) {
  if (to_digest(event.object) == 0) return;
  digesting_.took_ns += event.took_ns;
  digesting_.bytes[event.object] = event.range.end();
  if (!agreement_.abilities.has(Ability::kDigests)) return;
  say(DigestProgress{.object = event.object, .bytes = event.range.end(), .took_ns = event.took_ns}, out);
}

// Before it is called done, on each stream on which that is said.
void DestinationEnd::say_digests(ObjectId object, LegId leg, Effects& out) const {
  if (!agreement_.abilities.has(Ability::kDigests) || files_.discards()) return;
  const std::vector<digests::Named>& found = catalog().files_of(object).front().digests.found;
  NameDigests part{.object = object};
  size_t bytes = 0;
  for (uint32_t i = 0; i < found.size(); ++i) {
    if (part.names.size() == kNamesPerDigests || bytes > kBytesPerMessage) {
      say_on(leg, std::exchange(part, {.object = object, .first = i}), out);
      bytes = 0;
    }
    bytes += bytes_of(found[i]);
    part.names.push_back(found[i]);
  }
  part.last = true;
  say_on(leg, std::move(part), out);
}

}  // namespace sluice::transfer
