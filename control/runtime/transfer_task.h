// One transfer of the daemon: runs the pure state machine (control/transfer) over sockets, board, files and
// journal.
//
// Whatever happens becomes an event in a queue; each is stepped in its turn, and the effects that come of it
// are performed at once. On the loop's thread; nothing here blocks. The owner keeps it until it is over.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/steady_timer.hpp>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "control/runtime/board_objects.h"
#include "control/runtime/leg_flows.h"
#include "control/runtime/leg_stream.h"
#include "control/runtime/transfer_files.h"
#include "control/transfer/transfer.h"

namespace sluice::runtime {

class TransferTask final : public EventQueue, public std::enable_shared_from_this<TransferTask> {
 public:
  using OnChange = std::function<void(TransferTask&)>;

  // `changed` is called after steps in which the transfer has ended, or is over.
  TransferTask(std::shared_ptr<Services> services, std::unique_ptr<transfer::Transfer> transfer,
               gather::OpenSources sources, OnChange changed);
  ~TransferTask() override;

  void start();
  void post(transfer::Event event) override;
  void peer_called(std::shared_ptr<peer::Connection> connection, const transfer::Hello& hello);

  // What was asked of the journal so far has been answered: an operator who is told of it may build on it.
  // An error: it could not take the last of it.
  asio::awaitable<Status> journal_settled();

  const transfer::Transfer& transfer() const { return *transfer_; }
  transfer::View view() const;               // with its place in the queue
  bool held_up() const { return held_up_; }  // as of the last look_at_files()
  // Does a file system that does not answer hold it up? Then others may have its place.
  void look_at_files();
  std::vector<board::FlowGrant> lanes() const;  // of its flows on the board, if there are any
  bool over() const { return over_; }
  // Of its peer, by the first leg that has one; nothing: there is none now.
  std::shared_ptr<peer::Connection> stream() const {
    for (const Leg& leg : legs_)
      if (auto stream = leg.stream->stream()) return stream;
    return nullptr;
  }
  void drop_stream(const std::string& reason) {  // of every leg
    for (const Leg& leg : legs_) leg.stream->drop_stream(reason);
  }

 private:
  struct Leg {
    std::unique_ptr<LegStream> stream;
    std::unique_ptr<LegFlows> flows;
  };

  void run();
  void arm();
  Leg& leg(transfer::LegId id);
  void dispatch(const transfer::Effect& effect);
  void perform(const transfer::OpenObject& effect);
  void perform(const transfer::CloseObject& effect);
  void perform(const transfer::WriteJournal& effect);
  void perform(const transfer::AskPlace& effect);
  void perform(const transfer::TakePlace& effect);
  void perform(const transfer::LeavePlace& effect);
  std::string caller() const;
  void perform(const transfer::Log& effect) const;

  const std::shared_ptr<Services> services_;
  const std::unique_ptr<transfer::Transfer> transfer_;
  const OnChange changed_;
  gather::OpenSources sources_;  // until start()
  std::shared_ptr<TransferFiles> files_;
  std::unique_ptr<BoardObjects> objects_;
  std::vector<Leg> legs_;
  async::Pool::Serial journal_;  // one write after the other
  Status written_;               // the last one that was answered
  asio::steady_timer timer_;
  uint64_t timer_ns_ = UINT64_MAX;
  std::deque<transfer::Event> events_;
  bool stepping_ = false;
  bool over_ = false;
  bool told_ended_ = false;
  bool held_up_ = false;
};

}  // namespace sluice::runtime
