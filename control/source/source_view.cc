// What a sending end knows of how far it has come.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "control/source/source_end.h"
#include "control/words/digest_wait.h"

namespace sluice::transfer {

uint64_t SourceEnd::bytes_done(const board::FlowFigures& figures) const {
  const uint64_t total = catalog().bytes_total();
  if (complete()) return sender_.bytes_held();
  return std::min(total, std::max(sender_.bytes_held(), held_at_start_ + figures.bytes_done));
}

uint64_t SourceEnd::bytes_done(ObjectId object) const {
  const bool stored = sender_.done(object) && !catalog().files_of(object).front().failed();
  return stored ? catalog().object(object).size_bytes : sender_.bytes_held(object);
}

DataEnd::Digests SourceEnd::digests(ObjectId object) const {
  Digests known;
  if (sender_.digest_known(object)) known.source = sender_.digest(object);
  if (sender_.done(object)) known.destination = sender_.peer_digest(object);
  return known;
}

std::string SourceEnd::waiting_for(const board::FlowFigures& before, const board::FlowFigures& now,
                                   uint64_t interval_ns, uint64_t now_ns) const {
  if (!recheck_.idle())
    return fmt::format("source disk (reading {} again, which may have changed)",
                       catalog().shown(recheck_.object()));
  if (rereading_) return "source disk (reading again what the journal does not know)";
  const std::string wait = board::sender_wait(before, now, interval_ns, now_ns);
  if (!wait.empty()) return wait;
  if (waits_for_list()) return catalog().growing() ? "the list of files" : "peer's files";
  if (sender_.obeys_wants()) return sender_.has_wants() ? "" : "what the peer asks for next";
  if (!all_sent()) return "";
  if (!digests_.progress.empty()) {
    const auto& [object, bytes] = *digests_.progress.begin();
    return digest_wait("peer's digests", bytes, catalog().object(object).size_bytes,
                       digests_.progress.size());
  }
  return now.retransmitted_chunks == before.retransmitted_chunks ? "peer's disk (sync)" : "what was lost";
}

bool SourceEnd::all_sent() const {
  for (uint32_t i = 0; i < catalog().object_count(); ++i) {
    if (!sender_.digest_known(ObjectId(i))) return false;
  }
  return true;
}

}  // namespace sluice::transfer
