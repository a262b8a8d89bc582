// SPDX-License-Identifier: Apache-2.0
#include "control/node/restore.h"

#include <algorithm>
#include <utility>

#include "dataplane/base/check.h"
#include "dataplane/base/log.h"

namespace sluice::node {
namespace {

using journal::is_over;

// Those whose turn had come before come first, then those who waited, each by priority and in the order in
// which they were asked for. Who was called waits for its caller.
void expect(const std::vector<transfer::Record>& records, runtime::Services& services, Sessions& sessions) {
  for (const bool had_begun : {true, false}) {
    for (const transfer::Record& record : records) {
      sessions.started_before(record.started_unix_ns);
      const bool began = transfer::agreement_of(record) != nullptr;
      if (record.initiator && !record.ordered && began == had_begun &&
          record.state == transfer::RecordState::kActive)
        services.places.expect(record.id, record.priority, transfer::share_of(record.request));
    }
  }
}

}  // namespace

Status restore(const std::shared_ptr<runtime::Services>& services, Sessions& sessions, Orders& orders) {
  if (const Status status = sessions.leases().restore(); !status) return status;
  if (const Status status = Sessions::forget_old(*services->journal); !status) return status;
  const Result<std::vector<transfer::Record>> records = services->journal->sessions();
  if (!records) return records.error();
  const auto ended =
      static_cast<size_t>(std::count_if(records->begin(), records->end(), [](const transfer::Record& record) {
        return transfer::has_ended(record.state);
      }));
  expect(*records, *services, sessions);
  size_t too_old = ended - std::min(ended, Sessions::kEndedKept);
  for (const transfer::Record& record : *records) {
    const bool has_ended = transfer::has_ended(record.state);
    if (has_ended && is_over(record) && too_old != 0) {
      --too_old;
      continue;
    }
    if (record.ordered) {
      orders.restore(record);
      continue;
    }
    const Result<std::optional<transfer::Saved>> saved = services->journal->saved(record.id, !has_ended);
    if (!saved) return saved.error();
    if (!saved->has_value()) continue;
    DCHECK((*saved)->record.id == record.id, "the journal has what it listed");
    if (has_ended) sessions.remember(transfer::view_of(**saved));
    if (is_over(record)) continue;
    if (!has_ended) {
      log::of(log::kSession)
          ->info("session {} with {} is in the journal: going on", record.id.substr(0, 8),
                 transfer::peers_of(record.legs));
    }
    if (record.request)  // numbered alike (session_log.cc)
      services->logs.begin(record.id, static_cast<board::LogLevel>(record.request->options.log_level));
    const Sessions::Task task =
        sessions.add(std::make_unique<transfer::Transfer>(services->settings, **saved, std::nullopt,
                                                          async::monotonic_ns(), async::unix_ns()),
                     {});
    if (has_ended || !record.lease) continue;
    // This node died between taking a lease under a higher epoch and ending what ran under this one.
    if (std::optional<Error> over = sessions.leases().over(*record.lease))
      task->post(transfer::Cancel{std::move(over)});
  }
  return {};
}

}  // namespace sluice::node
