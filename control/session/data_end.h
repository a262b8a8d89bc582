// The end of a session that moves data: the source's or the destination's part of it, over all attempts.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/awaitable.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "control/board/figures.h"
#include "control/journal/journal.h"
#include "control/proto/api.pb.h"
#include "control/proto/peer.pb.h"
#include "dataplane/base/error.h"
#include "dataplane/board/board.h"

namespace sluice::control {

// A file as the journal knows it, with the CRCs of its extents.
struct SavedFile {
  journal::FileRecord record;
  std::vector<recovery::Block> blocks;
};

class DataEnd {
 public:
  // How long workers may take to say what they have, at adopt().
  static constexpr uint64_t kAdoptTimeoutNs = 5'000'000'000;

  virtual ~DataEnd() = default;

  // The data phase, from open flows to the last message; ends early when the attempt fails.
  virtual asio::awaitable<Status> run() = 0;
  virtual void on_message(const peer::PeerMessage& message) = 0;
  virtual void on_event(const board::Event& event, uint32_t lane) = 0;
  virtual void on_tick(uint64_t now_ns) = 0;
  // The stream is another one, the flows are the same: what was said may have been lost.
  virtual void on_new_stream() = 0;
  // Before the data phase, on flows that another control opened: files, and what the workers know. Events
  // come during this call already.
  virtual asio::awaitable<Status> adopt() = 0;
  // Every file stands under its final name: the loss of the peer no longer matters.
  virtual bool complete() const = 0;
  virtual std::vector<journal::FileRecord> records() const = 0;
  virtual uint64_t bytes_total() const = 0;
  virtual uint64_t bytes_done(const FlowFigures& figures) const = 0;
  // Changes with every step forward.
  virtual uint64_t progress(const FlowFigures& figures) const = 0;
  virtual std::string waiting_for(const FlowFigures& before, const FlowFigures& now, uint64_t interval_ns,
                                  uint64_t now_ns) const = 0;
  virtual void describe(api::Session* session) const = 0;  // the files
  // The attempt is over, its flows are closed: spawns what makes the best of what it has brought.
  virtual void settle() = 0;
  // The session's end, on the pool: unfinished files are removed, or kept for a later control.
  virtual asio::awaitable<void> release(bool keep) = 0;
};

}  // namespace sluice::control
