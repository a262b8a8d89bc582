// A connection between sluice-control and sluice-users: messages, each with a few descriptors beside it.
//
// SOCK_SEQPACKET: a message comes whole or not at all. One that is too long for that is handed over in sealed
// memory. Blocking, each for a bounded time; one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "control/users/words.h"
#include "dataplane/base/unique_fd.h"

namespace sluice::users {

struct Parcel {
  std::string bytes;
  std::vector<UniqueFd> descriptors;
};

class Channel {
 public:
  explicit Channel(UniqueFd socket) : socket_(std::move(socket)) {}

  // 0, or an errno; EMSGSIZE: more than kBulkBytesMax.
  int send(const std::string& bytes, const std::vector<int>& descriptors, std::chrono::milliseconds limit);
  // 0, or an errno: EPIPE when the other side has gone, EPROTO for what is no message, ETIMEDOUT.
  int receive(Parcel* parcel, std::chrono::milliseconds limit);
  bool has_gone() const;  // the other side
  // Whoever is on the other side may hand over up to kBulkBytesMax at a time.
  void take_bulk() { takes_bulk_ = true; }
  // Both give up with EPIPE once `fd` has hung up, which outlives this.
  void give_up_with(int fd) { lifeline_ = fd; }

 private:
  int send_bulk(const std::string& bytes, std::vector<int> descriptors, std::chrono::milliseconds limit);
  static int receive_bulk(Parcel* parcel);
  int wait_for(short what, std::chrono::milliseconds limit) const;  // 0, or an errno

  UniqueFd socket_;
  int lifeline_ = -1;
  bool takes_bulk_ = false;
};

// -1, with errno, if nobody answers.
UniqueFd connect_to(const std::filesystem::path& socket);

}  // namespace sluice::users
