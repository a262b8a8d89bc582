// Connections to processes of one user, as many as calls about trees are made at a time, up to a limit.
// Whoever has more to ask waits for one of them.
//
// Blocking; any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "control/users/channel.h"
#include "control/users/lifeline.h"
#include "control/users/words.h"

namespace sluice::users {

class Lane {
 public:
  struct Heard {
    Answer answer;
    std::vector<UniqueFd> descriptors;
    std::shared_ptr<Lane> by;  // who answered, and in which life of its process
    uint64_t life = 0;
  };
  // What it was asked about a pack that is staged is not wanted any more: said with the next call. Never
  // waits.
  void forget(uint64_t life, uint64_t number);

 private:
  friend class Lanes;
  std::mutex busy_;  // while a call is made
  std::optional<Channel> channel_;
  std::mutex mutex_;   // of what follows
  uint64_t life_ = 0;  // of the process behind it: another number for the next
  std::vector<uint64_t> forgotten_;
};

class Lanes {
 public:
  Lanes(std::filesystem::path socket, uint32_t uid, std::shared_ptr<Lifeline> lifeline)
      : socket_(std::move(socket)), uid_(uid), lifeline_(std::move(lifeline)) {}

  // A connection of its own.
  Result<Channel> connect() const;
  // By any of them, again if its process has gone. An error is that of the call, or kDaemonNotRunning.
  // `heard` is set also where the answer is an error.
  Status ask(const Call& call, Lane::Heard* heard, int fd = -1);
  // By this process, in that life: nothing, if it has gone.
  std::optional<Lane::Heard> ask_same(Lane& lane, uint64_t life, Call call);
  Error lost(int reason) const;
  uint64_t next_number();

 private:
  // With `busy_` held.
  std::shared_ptr<Lane> take();
  std::shared_ptr<Lane> take_connected();
  Status connect(Lane& lane) const;
  static int exchange(Lane& lane, const Call& call, int fd, Lane::Heard* heard);

  const std::filesystem::path socket_;
  const uint32_t uid_;
  const std::shared_ptr<Lifeline> lifeline_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<Lane>> lanes_;
  size_t turn_ = 0;
  uint64_t numbers_ = 0;
};

}  // namespace sluice::users
