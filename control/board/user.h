// Whoever uses the board through the client: a transfer.
//
// Every call comes on the io_context thread. A user asks and answers by posting to itself: it may be called
// while it is calling.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "control/board/admission.h"
#include "dataplane/board/board.h"

namespace sluice::attach {
class AttachedBoard;
}

namespace sluice::board {

class BoardUser {
 public:
  virtual void on_attached(attach::AttachedBoard& board) = 0;
  virtual void on_event(const Event& event, const FlowState& flow) = 0;  // of a flow of its
  virtual void on_tick(uint64_t now_ns) = 0;  // after the events, while it has a session slot
  virtual void on_admitted(const Admitted& admitted) = 0;
  virtual void on_board_lost() = 0;
  // Once, at the first attach after claim(): whether the claimed flows and the session slot are there.
  virtual void on_claimed(bool adopted) = 0;

 protected:
  ~BoardUser() = default;
};

}  // namespace sluice::board
