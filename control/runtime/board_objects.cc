// SPDX-License-Identifier: Apache-2.0
#include "control/runtime/board_objects.h"

#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>

namespace sluice::runtime {

BoardObjects::BoardObjects(std::shared_ptr<Services> services, std::weak_ptr<EventQueue> queue,
                           std::shared_ptr<TransferFiles> files)
    : services_(std::move(services)), queue_(std::move(queue)), files_(std::move(files)) {}

BoardObjects::~BoardObjects() { services_->board->leave(this); }

void BoardObjects::join() { services_->board->join(this); }

// ---- the board's words -------------------------------------------------------------------------

void BoardObjects::on_attached(attach::AttachedBoard& board) {
  const board::FlowTable& table = board.flows().table();
  post(transfer::BoardAttached{.dataplane = {.port = board.port(),
                                             .generation = board.generation(),
                                             .tx_lanes_max = table.lanes_max(board::Direction::kTx),
                                             .rx_lanes_max = table.lanes_max(board::Direction::kRx)}});
}

void BoardObjects::on_board_lost() {
  slot_.reset();
  post(transfer::BoardLost{});
}

// ---- objects -----------------------------------------------------------------------------------

void BoardObjects::perform(const transfer::OpenObject& effect) {
  const Board there = board();
  if (there == nullptr) {
    const Error gone{ErrorCode::kDaemonNotRunning, "sluice-dataplane of this node does not run: start it"};
    return post(transfer::ObjectOpened{.object = effect.object, .status = gone});
  }
  asio::co_spawn(services_->io, open(queue_, there, files_, *slot_, effect), asio::detached);
}

asio::awaitable<void> BoardObjects::open(std::weak_ptr<EventQueue> queue, Board board,
                                         std::shared_ptr<TransferFiles> files, SessionSlotId slot,
                                         transfer::OpenObject effect) {
  const TransferFiles::Descriptor file = files->descriptor(effect.object);
  const board::AttachRequest request{
      .session = slot.value(),
      .object = effect.object.value(),
      .flags = effect.flags | (file.direct ? uint32_t{board::kObjectDirect} : 0U),
      .size = effect.size_bytes,
      .extent_bytes = effect.extent_bytes,
      .base = file.base_bytes,
      .sums = effect.sums & board->port().sums};
  Status status = co_await board->open_object(request, file.fd, effect.may_exist);
  post_to(queue, transfer::ObjectOpened{.object = effect.object, .status = std::move(status)});
}

void BoardObjects::perform(const transfer::CloseObject& effect) {
  const Board there = board();
  if (there == nullptr) return post(transfer::ObjectClosed{effect.object});
  asio::co_spawn(services_->io, close(queue_, there, *slot_, effect.object), asio::detached);
}

asio::awaitable<void> BoardObjects::close(std::weak_ptr<EventQueue> queue, Board board, SessionSlotId slot,
                                          ObjectId object) {
  co_await board->close_object(slot, object);
  post_to(queue, transfer::ObjectClosed{object});
}

void BoardObjects::perform(const transfer::FetchObject& effect) {
  const Board there = board();
  if (there == nullptr) return post(transfer::ObjectFetched{.object = effect.object, .found = false});
  asio::co_spawn(services_->io, fetch(queue_, there, files_, *slot_, effect.object), asio::detached);
}

asio::awaitable<void> BoardObjects::fetch(std::weak_ptr<EventQueue> queue, Board board,
                                          std::shared_ptr<TransferFiles> files, SessionSlotId slot,
                                          ObjectId object) {
  Result<UniqueFd> fetched = co_await board->fetch_object(slot, object);
  const bool found = static_cast<bool>(fetched);
  if (found) files->fetched(object, std::move(*fetched));
  post_to(queue, transfer::ObjectFetched{.object = object, .found = found});
}

}  // namespace sluice::runtime
