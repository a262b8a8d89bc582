// SPDX-License-Identifier: Apache-2.0
#include "control/metrics/labelled.h"

#include <algorithm>
#include <tuple>

namespace sluice::metrics {
namespace {

bool runs(const transfer::View& view) {
  return view.state != transfer::ViewState::kQueued && view.state != transfer::ViewState::kWaiting &&
         view.state != transfer::ViewState::kPaused;
}

uint64_t growth(uint64_t before, uint64_t now) { return now - std::min(before, now); }

}  // namespace

void SessionCounts::add_growth(const SessionCounts& before, const SessionCounts& now) {
  payload_bytes += growth(before.payload_bytes, now.payload_bytes);
  chunks += growth(before.chunks, now.chunks);
  retransmits += growth(before.retransmits, now.retransmits);
  duplicates += growth(before.duplicates, now.duplicates);
  lost_datagrams += growth(before.lost_datagrams, now.lost_datagrams);
  crc_errors += growth(before.crc_errors, now.crc_errors);
  no_room += growth(before.no_room, now.no_room);
  attempts += growth(before.attempts, now.attempts);
}

SessionCounts counts_of(const transfer::Summary& summary) {
  return {.payload_bytes = summary.bytes_sent,
          .chunks = summary.chunks,
          .retransmits = summary.retransmits,
          .duplicates = summary.duplicates,
          .lost_datagrams = summary.lost,
          .crc_errors = summary.crc_errors,
          .no_room = summary.no_room,
          .attempts = summary.attempts};
}

void Labelled::update(const std::vector<SessionFigures>& sessions) {
  std::vector<const SessionFigures*> order;
  for (const SessionFigures& session : sessions) order.push_back(&session);
  const auto rank = [this](const SessionFigures* session) {
    return std::make_tuple(!runs(session->view), !has(session->view.id));
  };
  std::stable_sort(order.begin(), order.end(),
                   [&rank](const SessionFigures* a, const SessionFigures* b) { return rank(a) < rank(b); });
  std::set<std::string> labelled;
  std::map<std::string, SessionCounts> seen;
  for (const SessionFigures* session : order) {
    const std::string& id = session->view.id;
    if (labelled.size() < most_) {
      labelled.insert(id);
      continue;
    }
    const SessionCounts now = counts_of(session->view.summary);
    if (const auto before = seen_.find(id); before != seen_.end()) others_.add_growth(before->second, now);
    seen.emplace(id, now);
  }
  labelled_ = std::move(labelled);
  seen_ = std::move(seen);
}

}  // namespace sluice::metrics
