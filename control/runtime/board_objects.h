// The objects of a transfer on the real board, and the session slot by which workers find them. The flows of
// all its legs have the same slot.
//
// On the loop's thread. While there is no dataplane, each effect is answered with daemon_not_running. Here
// the transfer hears once of each board, and of its end, however many legs it has.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/awaitable.hpp>
#include <memory>
#include <optional>
#include <utility>

#include "control/board/user.h"
#include "control/runtime/events.h"
#include "control/runtime/services.h"
#include "control/runtime/transfer_files.h"

namespace sluice::runtime {

class BoardObjects final : public board::BoardUser {
 public:
  BoardObjects(std::shared_ptr<Services> services, std::weak_ptr<EventQueue> queue,
               std::shared_ptr<TransferFiles> files);
  ~BoardObjects();
  BoardObjects(const BoardObjects&) = delete;
  BoardObjects& operator=(const BoardObjects&) = delete;
  void join();  // the board's users, behind the flows of all legs

  // ---- the slot ----
  std::optional<SessionSlotId> slot() const { return slot_; }
  void taken(SessionSlotId slot) { slot_ = slot; }  // with the first flows
  // The flows of the last leg are given back: whoever asks closes what is left of the slot.
  std::optional<SessionSlotId> give_back() { return std::exchange(slot_, std::nullopt); }

  // ---- objects ----
  void perform(const transfer::OpenObject& effect);
  void perform(const transfer::CloseObject& effect);
  void perform(const transfer::FetchObject& effect);

  // ---- BoardUser ----
  void on_attached(attach::AttachedBoard& board) override;
  void on_board_lost() override;
  void on_event(const board::Event&, const board::FlowState&) override {}
  void on_tick(uint64_t) override {}
  void on_admitted(const board::Admitted&) override {}
  void on_claimed(bool) override {}

 private:
  using Board = std::shared_ptr<attach::AttachedBoard>;
  Board board() const { return slot_ ? services_->board->attached() : nullptr; }
  void post(transfer::Event event) const { post_to(queue_, std::move(event)); }
  // Coroutines outlive this object: they take what they need with them.
  static asio::awaitable<void> open(std::weak_ptr<EventQueue> queue, Board board,
                                    std::shared_ptr<TransferFiles> files, SessionSlotId slot,
                                    transfer::OpenObject effect);
  static asio::awaitable<void> close(std::weak_ptr<EventQueue> queue, Board board, SessionSlotId slot,
                                     ObjectId object);
  static asio::awaitable<void> fetch(std::weak_ptr<EventQueue> queue, Board board,
                                     std::shared_ptr<TransferFiles> files, SessionSlotId slot,
                                     ObjectId object);

  const std::shared_ptr<Services> services_;
  const std::weak_ptr<EventQueue> queue_;
  const std::shared_ptr<TransferFiles> files_;
  std::optional<SessionSlotId> slot_;
};

}  // namespace sluice::runtime
