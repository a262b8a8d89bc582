// SPDX-License-Identifier: Apache-2.0
#include "control/node/manager.h"

#include <fmt/format.h>

#include "control/node/restore.h"
#include "control/runtime/export_key.h"
#include "dataplane/base/check.h"

namespace sluice::node {

Manager::Manager(asio::io_context& io, const config::Node& node, identity::Identity identity,
                 exports::Exports exports, std::unique_ptr<journal::Journal> journal)
    : services_(std::make_shared<runtime::Services>(io, node, std::move(identity), std::move(exports),
                                                    std::move(journal))),
      sessions_(services_),
      starter_(services_, sessions_),
      orders_(services_, sessions_),
      moves_(services_, sessions_),
      questions_(services_, sessions_),
      logs_(services_, sessions_),
      reception_(services_, sessions_, starter_, moves_),
      trust_watch_(services_, sessions_, reception_),
      export_watch_(services_, sessions_),
      journal_watch_(services_, sessions_),
      report_(services_, sessions_, reception_, trust_watch_, export_watch_, journal_watch_) {}

Status Manager::start() {
  DCHECK(!started_, "a node starts once");
  started_ = true;
  // Later a file that is wrong takes the trust of its own peer only; now somebody is there to hear of it.
  const Result<identity::Trust> trust = identity::Trust::load(services_->node);
  if (!trust) return trust.error();
  if (!trust->problems().empty()) return trust->problems().front();
  if (const Status status = restore(services_, sessions_, orders_); !status) return status;
  if (const Status status = reception_.open(); !status) return status;
  services_->board->start();
  trust_watch_.start();
  export_watch_.start();
  journal_watch_.start();
  return {};
}

void Manager::stop() {
  DCHECK(started_, "what stops has started");
  reception_.close();
  orders_.stop();
  trust_watch_.stop();
  export_watch_.stop();
  journal_watch_.stop();
  sessions_.stop([services = services_] { services->board->stop(); });
}

asio::awaitable<Result<ToVerify>> Manager::verification(std::string id) const {
  const std::shared_ptr<runtime::Services> services = services_;
  const Result<transfer::View> found = sessions_.find(id);
  if (!found) co_return found.error();
  if (auto elsewhere = not_here(*found)) co_return *std::move(elsewhere);
  auto work = [services, id = found->id]() -> Result<ToVerify> {
    const Result<std::optional<transfer::Saved>> saved = services->journal->saved(id, true);
    if (!saved) return saved.error();
    if (saved->has_value()) return files_to_verify(**saved);
    return Error{ErrorCode::kUsage, fmt::format("session {}: the journal knows nothing of it", id)};
  };
  co_return co_await services->pool.wait_for(std::move(work));
}

asio::awaitable<Result<std::vector<digests::Named>>> Manager::digests(std::string id) const {
  const std::shared_ptr<runtime::Services> services = services_;
  const Result<transfer::View> found = sessions_.find(id);
  if (!found) co_return found.error();
  if (auto elsewhere = not_here(*found)) co_return *std::move(elsewhere);
  auto work = [services, id = found->id]() -> Result<std::vector<digests::Named>> {
    const Result<std::optional<transfer::Saved>> saved = services->journal->saved(id, true);
    if (!saved) return saved.error();
    if (saved->has_value()) return names_digested(**saved);
    return Error{ErrorCode::kUsage, fmt::format("session {}: the journal knows nothing of it", id)};
  };
  co_return co_await services->pool.wait_for(std::move(work));
}

// A file may take hours: who verifies takes no place of a transfer.
VerifyPlace Manager::verify_place(std::shared_ptr<const exports::Exports> exports) const {
  return [services = services_, exports = std::move(exports)](const std::string& path) {
    const std::string name = exports->of_user() ? exports->user_key() : runtime::export_key(*exports, {path});
    return async::KeyedPart{.pool = services->verify_pool, .key = {.name = name}};
  };
}

}  // namespace sluice::node
