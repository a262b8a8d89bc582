// What the destination computed of the names that it stored, where archives ask for it (docs/WIRE.md 2.18).
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <utility>

#include "control/source/source_end.h"

namespace sluice::transfer {
namespace {

Error wrong(std::string what) { return incompatible("the peer tells digests " + std::move(what)); }

}  // namespace

// Told in parts, in order, on each stream; it is enough to have heard all of them on one.
Status SourceEnd::hear(LegId leg, const NameDigests& part) {
  if (!digests_.agreed) return wrong("that it was not asked for");
  catalog::File& file = files_.catalog().files_of(part.object).front();
  const auto key = std::pair(leg, part.object);
  std::vector<digests::Named>& names = digests_.parts[key];
  if (part.first == 0) names.clear();
  if (part.first != names.size()) return wrong("of names that do not follow those before them");
  if (part.names.size() > file.names() - std::min<size_t>(file.names(), names.size()))
    return wrong(fmt::format("of more names than {} has", file.shown));
  names.insert(names.end(), part.names.begin(), part.names.end());
  if (!part.last) return {};
  ++digests_.steps;
  digests_.progress.erase(part.object);
  file.digests.found = std::move(digests_.parts.extract(key).mapped());
  digests_.known.insert(part.object);
  return {};
}

Status SourceEnd::hear(const DigestProgress& progress) {
  if (!digests_.agreed) return wrong("that it was not asked for");
  if (progress.bytes > catalog().object(progress.object).size_bytes)
    return wrong("of more bytes than the file has");
  ++digests_.steps;
  digests_.took_ns += std::min(progress.took_ns, UINT64_MAX / 2 - digests_.took_ns);
  if (!sender_.done(progress.object)) digests_.progress[progress.object] = progress.bytes;
  return {};
}

Status SourceEnd::check_digested(ObjectId object) const {
  if (!digests_.agreed || digests_.known.contains(object)) return {};
  return incompatible(
      fmt::format("the peer calls {} done, and told no digests of it", catalog().shown(object)));
}

void SourceEnd::forget_digests_of(LegId leg) {
  std::erase_if(digests_.parts, [leg](const auto& part) { return part.first.first == leg; });
}

}  // namespace sluice::transfer
