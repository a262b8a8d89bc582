// Files asked for at somebody who opens them as a user of this host: exports::UserFiles over a channel
// (words.h). Who that is, and how he is reached, is for the classes that derive from this.
//
// What is asked twice because an answer was lost is done once: each call begins by looking at what is there.
// Blocking, for at most kCallLimit; any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "control/exports/as_user.h"
#include "control/users/channel.h"
#include "control/users/words.h"

namespace sluice::users {

inline constexpr std::chrono::seconds kCallLimit{120};  // a file system that is far away may be slow

class Asking : public exports::UserFiles {
 public:
  explicit Asking(uint32_t uid) : uid_(uid) {}

  uint32_t uid() const override { return uid_; }
  Result<UniqueFd> open_source(const std::string& peer, const std::string& path, bool unfinished) override;
  Result<Opened> create(const exports::UserFile& file, catalog::Failure* why) override;
  Result<std::optional<Opened>> reopen(const exports::UserFile& file) override;
  Status finish(const exports::UserFile& file) override;
  Status drop(const exports::UserFile& file) override;
  Committed commit(const exports::UserFile& file) override;
  Result<bool> is_committed(const exports::UserFile& file) override;

 protected:
  struct Heard {
    Answer answer;
    std::vector<UniqueFd> descriptors;
  };
  // The channel, made if there is none; with `mutex_` held. kDaemonNotRunning: nobody is there.
  virtual Status connect() = 0;
  // That nobody answers. `reason`: an errno.
  virtual Error lost(int reason) const = 0;
  // 0, or an errno.
  int exchange(const std::string& bytes, int fd, std::chrono::milliseconds limit, Heard* heard);

  std::mutex mutex_;
  std::optional<Channel> channel_;

 private:
  Status done(Kind kind, const exports::UserFile& file);
  // `errors_too`: an error is an answer like any other.
  Result<Heard> ask(Kind kind, const exports::UserFile& file, bool errors_too = false);

  const uint32_t uid_;
};

}  // namespace sluice::users
