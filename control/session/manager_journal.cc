// What a former control left in the journal: sessions that go on, ended ones to remember, and what `sluice
// verify` can compare.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <asio/detached.hpp>

#include "control/session/hello.h"
#include "control/session/manager.h"
#include "control/session/verify.h"

namespace sluice::control {
namespace {

constexpr auto kTellInterval = std::chrono::seconds(5);
constexpr size_t kEndedInJournal = 1000;

bool has_ended(const journal::SessionRecord& record) {
  return record.state() >= journal::SessionRecord::SUCCEEDED;
}

Status note_aware(journal::Journal& journal, const std::string& id) {
  Result<std::optional<journal::SessionRecord>> record = journal.session(id);
  if (!record) return record.error();
  if (!record->has_value()) return {};
  (*record)->set_peer_unaware(false);
  return journal.write({.sessions = {std::move(**record)}}, journal::Durability::kProcess);
}

std::string unfinished_path(const std::string& path) {
  const size_t slash = path.rfind('/');
  return path.substr(0, slash + 1) + exports::temporary_name(path.substr(slash + 1));
}

}  // namespace

Status Manager::restore() {
  if (const Status status = context_->journal->forget_ended(kEndedInJournal); !status) return status;
  const Result<std::vector<journal::SessionRecord>> records = context_->journal->sessions();
  if (!records) return records.error();
  for (const journal::SessionRecord& record : *records) {
    if (!has_ended(record)) {
      if (const Status status = restore_one(record); !status) return status;
      continue;
    }
    api::Session session;
    if (session.ParseFromString(record.figures())) ended_.push_back(std::move(session));
    if (ended_.size() > kEndedKept) ended_.pop_front();
    if (!record.peer_unaware()) continue;
    if (const Result<identity::Peer> peer = find_peer(record.peer()); peer) {
      const Error error{static_cast<ErrorCode>(record.error_code()), record.error()};
      asio::co_spawn(context_->io, tell_unaware(record.id(), *peer, error), asio::detached);
    }
  }
  return {};
}

Status Manager::restore_one(const journal::SessionRecord& record) {
  SavedSession saved{.record = record};
  Result<std::vector<journal::FileRow>> files = context_->journal->files(record.id());
  if (!files) return files.error();
  for (journal::FileRow& row : *files) {
    Result<std::vector<recovery::Block>> blocks = context_->journal->blocks(record.id(), row.object);
    if (!blocks) return blocks.error();
    saved.files.push_back({std::move(row.record), std::move(*blocks)});
  }
  const Result<identity::Peer> peer =
      record.initiator() ? find_peer(record.peer()) : Result<identity::Peer>(identity::Peer());
  spdlog::info("session {} with {} is in the journal: going on", record.id().substr(0, 8), record.peer());
  add(Session::restore(context_, std::move(saved), peer ? std::optional(*peer) : std::nullopt));
  return {};
}

// A session of ours ended while its peer was away: that may still wait for it.
asio::awaitable<void> Manager::tell_unaware(std::string id, identity::Peer peer, Error error) {
  const std::shared_ptr<bool> alive = alive_;
  const std::shared_ptr<Context> context = context_;
  const uint64_t until_ns = monotonic_ns() + context->node.resume_timeout_s * 1'000'000'000ULL;
  while (*alive && !stopping_ && monotonic_ns() < until_ns) {
    Result<std::unique_ptr<peer::Connection>> connected =
        co_await peer::connect(context->identity, peer, kConnectTimeoutMs);
    if (!*alive) co_return;
    if (connected) {
      const std::shared_ptr<peer::Connection> connection = std::move(*connected);
      peer::PeerMessage hello = make_hello(id);
      hello.mutable_hello()->set_known(true);
      (void)connection->send(hello);
      peer::PeerMessage message;
      message.mutable_failure()->set_code(static_cast<uint32_t>(error.code));
      message.mutable_failure()->set_message(error.message);
      (void)connection->send(message);
      co_await hang_up(context->io, connection);
      spdlog::info("session {}: {} knows now that it ended", id.substr(0, 8), peer.name);
      auto work = [context, id] { return note_aware(*context->journal, id); };
      const Status noted = co_await in_pool(context, std::move(work));
      if (!noted) spdlog::warn("{}", noted.error().message);
      co_return;
    }
    asio::steady_timer timer(context->io, kTellInterval);
    asio::error_code ignored;
    co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }
}

Result<Verification> Manager::verification(const std::string& id) {
  const Result<api::Session> found = find(id);
  if (!found) return found.error();
  const Result<std::optional<journal::SessionRecord>> saved = context_->journal->session(found->id());
  if (!saved) return saved.error();
  const std::optional<journal::SessionRecord>& record = *saved;
  if (!record || !record->has_agreement()) {
    return Error{
        ErrorCode::kUsage,
        fmt::format("session {}: the journal knows no file of it that could be verified", found->id())};
  }
  const Result<std::vector<journal::FileRow>> files = context_->journal->files(record->id());
  if (!files) return files.error();
  std::vector<VerifyFile> checked;
  for (const journal::FileRow& row : *files) {
    const journal::FileRecord& known = row.record;
    VerifyFile file;
    file.shown = known.shown();
    file.path = known.path();
    file.layout = {.size_bytes = known.size(),
                   .extent_bytes = record->agreement().extent_bytes(),
                   .crc_kind = static_cast<crc::CrcKind>(record->agreement().crc_kind())};
    file.whole = known.state() == journal::FileRecord::DONE;
    file.digest = known.digest();
    if (known.path().empty()) {
      file.problem = "is no file: nothing to read back";
    } else if (!file.whole) {
      const auto blocks = context_->journal->blocks(record->id(), row.object);
      if (!blocks) return blocks.error();
      file.ledger = recovery::ExtentLedger(file.layout);
      for (const recovery::Block& block : *blocks) {
        if (const Status status = file.ledger.restore(block); !status) file.problem = status.error().message;
      }
      if (!record->source()) file.path = unfinished_path(known.path());
      if (has_ended(*record)) file.problem = "was not finished: nothing of it is kept";
    }
    checked.push_back(std::move(file));
  }
  return Verification([context = context_, checked = std::move(checked)](const VerifyReport& report) {
    verify(context->exports, checked, report);
  });
}

}  // namespace sluice::control
