// SPDX-License-Identifier: Apache-2.0
#include "control/attach/attached.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

namespace sluice::attach {

AttachedBoard::AttachedBoard(std::shared_ptr<BoardLink> link)
    : link_(std::move(link)),
      flows_(*link_->board().get(), link_->board().port(),
             [board = link_->board().get()](uint32_t worker) { board->workers[worker].commands.ring(); }) {}

uint64_t AttachedBoard::counter(board::Counter counter) const {
  uint64_t sum = 0;
  for (uint32_t worker = 0; worker < port().workers; ++worker) {
    sum += link_->board()->workers[worker].counters[static_cast<uint32_t>(counter)].load(
        std::memory_order_relaxed);
  }
  return sum;
}

// ---- flows -------------------------------------------------------------------------------------

asio::awaitable<Status> AttachedBoard::hand_over_keys(board::AttachRequest& request) {
  request.kind = board::AttachKind::kFlowKeys;
  const Result<BoardLink::Reply> reply = co_await link_->request(request, -1);
  explicit_bzero(request.secret, sizeof request.secret);
  if (!reply) co_return reply.error();
  if (reply->status == 0) co_return Status();
  co_return Error{ErrorCode::kInternal, fmt::format("the dataplane did not take the keys of a flow: {}",
                                                    std::strerror(reply->status))};
}

asio::awaitable<Result<uint32_t>> AttachedBoard::log_level(std::optional<uint32_t> level) {
  const board::AttachRequest request{.kind = board::AttachKind::kLogLevel,
                                     .level = level.value_or(board::kLogLevelAsked)};
  const Result<BoardLink::Reply> reply = co_await link_->request(request, -1);
  if (!reply) co_return reply.error();
  if (reply->status == 0 && reply->value < board::kLogLevels) co_return static_cast<uint32_t>(reply->value);
  co_return Error{ErrorCode::kInternal, fmt::format("the dataplane did not take the level of its log: {}",
                                                    std::strerror(reply->status))};
}

// ---- objects -----------------------------------------------------------------------------------

asio::awaitable<Status> AttachedBoard::open_object(board::AttachRequest request, int fd, bool may_exist) {
  request.kind = board::AttachKind::kOpenObject;
  const Result<BoardLink::Reply> reply = co_await link_->request(request, fd);
  if (!reply) co_return reply.error();
  const int status = reply->status;
  if (status == 0 || (status == EEXIST && may_exist)) co_return Status();
  co_return Error{status == ENOMEM || status == ENOBUFS ? ErrorCode::kResources : ErrorCode::kInternal,
                  fmt::format("the dataplane refused object {}: {}", request.object, std::strerror(status))};
}

asio::awaitable<void> AttachedBoard::close_object(SessionSlotId session, ObjectId object) {
  const board::AttachRequest request{
      .kind = board::AttachKind::kCloseObject, .session = session.value(), .object = object.value()};
  (void)co_await link_->request(request, -1);
}

asio::awaitable<Result<UniqueFd>> AttachedBoard::fetch_object(SessionSlotId session, ObjectId object) {
  const board::AttachRequest request{
      .kind = board::AttachKind::kFetchObject, .session = session.value(), .object = object.value()};
  Result<BoardLink::Reply> reply = co_await link_->request(request, -1);
  if (!reply) co_return reply.error();
  if (reply->status == 0 && reply->fd) co_return std::move(reply->fd);
  co_return Error{ErrorCode::kInternal,
                  fmt::format("the dataplane has no object {} of the session", object.value())};
}

// An object in use cannot be closed, and asking would hold up the dataplane: its flows must end first.
asio::awaitable<bool> AttachedBoard::close_session(SessionSlotId session) {
  if (flows_.session_has_flows(session)) co_return false;
  const board::AttachRequest request{.kind = board::AttachKind::kCloseSession, .session = session.value()};
  const Result<BoardLink::Reply> reply = co_await link_->request(request, -1);
  if (lost()) co_return true;  // the slot went with that dataplane
  if (reply && reply->status == EBUSY) co_return false;
  flows_.release_session(session);
  co_return true;
}

asio::awaitable<void> AttachedBoard::close_leftover_sessions() {
  for (uint32_t session = 0; session < board::kSessionsMax && !lost(); ++session) {
    if (flows_.table().session_taken(SessionSlotId(session))) continue;
    const board::AttachRequest request{.kind = board::AttachKind::kCloseSession, .session = session};
    (void)co_await link_->request(request, -1);
  }
}

}  // namespace sluice::attach
