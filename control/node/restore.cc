// What a former control left in the journal: transfers that go on, ended ones to remember, and what `sluice
// verify` can compare.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <utility>

#include "control/node/manager.h"
#include "control/runtime/export_key.h"
#include "dataplane/base/log.h"

namespace sluice::node {
namespace {

constexpr size_t kEndedInJournal = 1000;

// An end that somebody does not know of yet, or that left something behind.
bool is_over(const transfer::Record& record) {
  return transfer::has_ended(record.state) && !record.files_left && !record.legs.front().peer_unaware;
}

}  // namespace

// Before the loop runs and anybody is listened to: nothing waits for this.
Status Manager::restore() {
  if (const Status status = services_->journal->forget_ended(kEndedInJournal); !status) return status;
  const Result<std::vector<transfer::Record>> records = services_->journal->sessions();
  if (!records) return records.error();
  const auto ended =
      static_cast<size_t>(std::count_if(records->begin(), records->end(), [](const transfer::Record& record) {
        return transfer::has_ended(record.state);
      }));
  expect(*records);
  size_t too_old = ended - std::min(ended, kEndedKept);
  for (const transfer::Record& record : *records) {
    const bool has_ended = transfer::has_ended(record.state);
    if (has_ended && is_over(record) && too_old != 0) {
      --too_old;
      continue;
    }
    const Result<std::optional<transfer::Saved>> saved = services_->journal->saved(record.id, !has_ended);
    if (!saved) return saved.error();
    if (!saved->has_value()) continue;
    if (has_ended) remember(transfer::view_of(**saved));
    if (is_over(record)) continue;
    if (!has_ended) {
      log::of(log::kSession)
          ->info("session {} with {} is in the journal: going on", record.id.substr(0, 8),
                 record.legs.front().peer);
    }
    add(std::make_unique<transfer::Transfer>(services_->settings, **saved, std::nullopt,
                                             control::monotonic_ns(), control::unix_ns()),
        {});
  }
  return {};
}

// Those whose turn had come before come first, then those who waited, each by priority and in the order in
// which they were asked for. Who was called waits for its caller.
void Manager::expect(const std::vector<transfer::Record>& records) {
  for (const bool had_begun : {true, false}) {
    for (const transfer::Record& record : records) {
      last_start_ns_ = std::max(last_start_ns_, record.started_unix_ns);
      const bool began = record.legs.front().agreement.has_value();
      if (record.initiator && began == had_begun && record.state == transfer::RecordState::kActive)
        services_->places.expect(record.id, record.priority, transfer::share_of(record.request));
    }
  }
}

asio::awaitable<Result<ToVerify>> Manager::verification(std::string id) {
  const std::shared_ptr<runtime::Services> services = services_;
  const Result<transfer::View> found = find(id);
  if (!found) co_return found.error();
  auto work = [services, id = found->id]() -> Result<ToVerify> {
    const Result<std::optional<transfer::Saved>> saved = services->journal->saved(id, true);
    if (!saved) return saved.error();
    if (saved->has_value()) return files_to_verify(**saved);
    return Error{ErrorCode::kUsage, fmt::format("session {}: the journal knows nothing of it", id)};
  };
  co_return co_await services->pool.wait_for(std::move(work));
}

// A file may take hours: who verifies takes no place of a transfer.
VerifyPlace Manager::verify_place(std::shared_ptr<const exports::Exports> exports) const {
  return [services = services_, exports = std::move(exports)](const std::string& path) {
    const std::string name = exports->of_user() ? exports->user_key() : runtime::export_key(*exports, {path});
    return control::KeyedPart{.pool = services->verify_pool, .key = {.name = name}};
  };
}

}  // namespace sluice::node
