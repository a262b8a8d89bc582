// SPDX-License-Identifier: Apache-2.0
#include "control/users/greeting.h"

#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "control/users/words.h"

namespace sluice::users {
namespace {

constexpr std::chrono::seconds kHelloLimit{20};  // who is he? A directory of users may be slow

}  // namespace

Error no_helper(const std::filesystem::path& socket, int reason) {
  return {ErrorCode::kDaemonNotRunning,
          "sluice-users, which opens files as the users of this host, does not answer at " + socket.string() +
              " (" + std::strerror(reason) + "): start it, or see its log"};
}

Result<Channel> greet(const std::filesystem::path& socket, uint32_t uid, int lifeline) {
  UniqueFd connected = connect_to(socket);
  if (!connected) return no_helper(socket, errno);
  Channel channel(std::move(connected));
  channel.give_up_with(lifeline);
  Parcel parcel;
  int reason = channel.send(hello(uid), {}, kHelloLimit);
  if (reason == 0) reason = channel.receive(&parcel, kHelloLimit);
  if (reason != 0) return no_helper(socket, reason);
  const std::optional<Answer> answer = decode_answer(parcel.bytes);
  if (!answer) return no_helper(socket, EPROTO);
  if (!answer->status()) return answer->error;
  return channel;
}

}  // namespace sluice::users
