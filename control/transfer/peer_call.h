// A peer calls with a Hello: which session does it mean, and what is it told?
//
// Pure: the node asks, before any transfer hears of the call.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "control/words/messages.h"
#include "control/words/records.h"

namespace sluice::transfer {

enum class CallKind : uint8_t {
  kRefused,  // with an error
  kEnded,    // here: ended_answer() says how
  kKnown,    // a transfer of this node takes the call (PeerCalled)
  kNew,      // one begins with it
  kLater,    // it asks again: what ended here under this id still holds its files
  kNothing,  // it tells of the end of a session that nobody here waits for: nothing_answer()
  kKnows,    // it asks for one that this node began and goes on with: knows_answer(), and PeerInquires
  kUnknown,  // it asks for one that this node does not know: unknown_answer()
};

// What the node has under the id of a Hello.
struct UnderId {
  const Record* record = nullptr;  // in the journal
  bool active = false;
  bool ending = false;  // it has ended, and has not yet let go of its files and flows
  // Of the active one, or of one that has ended and is only remembered.
  bool initiator = false;
  std::vector<std::string> peers;  // of each leg; empty: there is neither
  // That the session of a peer has here when it begins. An active one has as many as it has.
  uint32_t legs_of_new = 1;
};

struct Decision {
  CallKind kind{};
  std::optional<Error> error;
  // For the log, where it says more than the peer is told: not that there is a session of somebody else.
  std::string reason;
};
Decision receive_call(const std::string& peer, const Hello& hello, const UnderId& known);

// This node began it, and has given it to another node. The peer does not hear that it has ended: it has not.
inline bool moved_away(const Record& record) {
  return record.moved && record.moved->from.empty() && record.error &&
         record.error->code == ErrorCode::kMoved && has_ended(record.state);
}

std::vector<Message> nothing_answer(const Hello& hello);
std::vector<Message> knows_answer(const Hello& hello, bool paused);
std::vector<Message> unknown_answer(const Hello& hello);
// What a peer is told that missed the end of a session: what became of each file, or why it failed.
std::vector<Message> ended_answer(const Saved& saved);

}  // namespace sluice::transfer
