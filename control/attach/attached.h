// A board that control is attached to: what can be done with it can be done only while there is one.
//
// On the io_context thread. Made by BoardClient at each attach, and gone with the dataplane: whoever holds it
// across a wait holds a shared_ptr and finds `lost()` afterwards.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "control/attach/link.h"
#include "control/board/board_flows.h"

namespace sluice::attach {

class AttachedBoard : public std::enable_shared_from_this<AttachedBoard> {
 public:
  explicit AttachedBoard(std::shared_ptr<BoardLink> link);

  bool lost() const { return link_->closed(); }
  BoardLink& link() { return *link_; }
  board::Board& board() { return *link_->board().get(); }
  board::BoardFlows& flows() { return flows_; }
  const board::PortInfo& port() const { return flows_.port(); }
  uint64_t generation() const { return link_->board()->generation; }
  uint64_t counter(board::Counter counter) const;  // all workers together

  // ---- flows ----
  // Before open_flow of BoardFlows, with next_tag. The worker refuses a flow whose keys did not come.
  // The caller keeps `request` until then; its secret is wiped.
  asio::awaitable<Status> hand_over_keys(board::AttachRequest& request);

  // Sets the level of the dataplane's log; nothing: only asks. The level then.
  asio::awaitable<Result<uint32_t>> log_level(std::optional<uint32_t> level);

  // ---- objects ----
  asio::awaitable<Status> open_object(board::AttachRequest request, int fd, bool may_exist);
  asio::awaitable<void> close_object(SessionSlotId session, ObjectId object);
  asio::awaitable<Result<UniqueFd>> fetch_object(SessionSlotId session, ObjectId object);
  // Closes the slot's objects and frees it. False: a flow of it has not ended yet.
  asio::awaitable<bool> close_session(SessionSlotId session);
  // Of a former control, which no transfer goes on with.
  asio::awaitable<void> close_leftover_sessions();

 private:
  const std::shared_ptr<BoardLink> link_;
  board::BoardFlows flows_;
};

}  // namespace sluice::attach
