// SPDX-License-Identifier: Apache-2.0
#include "tools/cpp/connection.h"

#include <unistd.h>

#include "control/client/way.h"
#include "tools/cpp/errors.h"

namespace sluice::client {
namespace {

// Nobody answered: what is to be seen from here.
Error unreachable(const std::filesystem::path& socket) {
  const std::filesystem::path directory = socket.parent_path().parent_path();
  std::error_code ignored;
  if (!std::filesystem::is_directory(directory, ignored))
    return error(ErrorCode::kConfiguration, "no node in " + directory.string());
  if (std::filesystem::exists(socket, ignored) && ::access(socket.c_str(), W_OK) != 0)
    return error(ErrorCode::kConfiguration, socket.string() + ": no right to it: ask its node's operator");
  return error(ErrorCode::kDaemonNotRunning, "sluice-control does not answer on " + socket.string() +
                                                 ": start it; sessions under way go on once it runs again");
}

}  // namespace

Error error_of(const api::Failure& failure, const std::filesystem::path& socket) {
  using Kind = api::Failure::Kind;
  switch (failure.kind) {
    case Kind::kRefused:  // also by a code that only a newer node knows
      return {failure.code, failure.name, failure.message};
    case Kind::kStandsStill:
      return error(ErrorCode::kDaemonNotRunning, api::Liveness::problem(" on " + socket.string()));
    case Kind::kEnded:
      return unreachable(socket);
    case Kind::kLate:
      return error(ErrorCode::kDaemonNotRunning,
                   "sluice-control does not answer in time on " + socket.string() + "; see its log");
    case Kind::kOtherVersion:
      return error(ErrorCode::kIncompatible,
                   "sluice-control is of another version than this library; upgrade the older one");
    case Kind::kExhausted:
    case Kind::kUnexpected:
      break;
  }
  const bool exhausted = failure.kind == Kind::kExhausted;
  return error(exhausted ? ErrorCode::kResources : ErrorCode::kInternal,
               socket.string() + ": " + failure.message);
}

Connection::Connection(const std::filesystem::path& directory)
    : socket_(api::socket_for_this_user(std::filesystem::absolute(directory))) {
  if (const auto fits = api::check_length(socket_); !fits)
    throw error(fits.error().code, fits.error().message);
  stub_ = api::Control::NewStub(api::channel_to(socket_));
}

}  // namespace sluice::client
