// SPDX-License-Identifier: Apache-2.0
#include "tools/cpp/connection.h"

#include <sys/un.h>
#include <unistd.h>

#include <cctype>
#include <charconv>

#include "control/proto/error_metadata.h"
#include "tools/cpp/errors.h"

namespace sluice::client {
namespace {

std::string text_of(const grpc::ClientContext& context, const char* key) {
  const auto& metadata = context.GetServerTrailingMetadata();
  const auto found = metadata.find(key);
  return found == metadata.end() ? std::string() : std::string(found->second.data(), found->second.size());
}

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

Error error_of(const grpc::Status& status, const grpc::ClientContext& context, const api::Pulse& pulse,
               const std::filesystem::path& socket) {
  const std::string said = text_of(context, api::kErrorCodeKey);
  int code = 0;
  if (std::from_chars(said.data(), said.data() + said.size(), code).ec == std::errc() && code > 0)
    return {code, text_of(context, api::kErrorNameKey), status.error_message()};
  if (pulse.stands_still())
    return error(ErrorCode::kDaemonNotRunning, api::Pulse::problem(" on " + socket.string()));
  switch (status.error_code()) {
    case grpc::StatusCode::UNAVAILABLE:
      return unreachable(socket);
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return error(ErrorCode::kDaemonNotRunning,
                   "sluice-control does not answer in time on " + socket.string() + "; see its log");
    case grpc::StatusCode::UNIMPLEMENTED:
      return error(ErrorCode::kIncompatible,
                   "sluice-control is of another version than this library; upgrade the older one");
    default:
      return error(ErrorCode::kInternal, socket.string() + ": " + status.error_message());
  }
}

std::string target_of(const std::filesystem::path& socket) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string target = "unix:";
  for (const char byte : socket.native()) {
    const auto number = static_cast<unsigned char>(byte);
    if (std::isalnum(number) != 0 || std::string_view("/._-~").find(byte) != std::string_view::npos) {
      target += byte;
    } else {
      target += {'%', kHex[number >> 4U], kHex[number & 15U]};
    }
  }
  return target;
}

Connection::Connection(const std::filesystem::path& directory)
    : socket_(std::filesystem::absolute(directory) / "run/control.sock") {
  if (socket_.native().size() >= sizeof(sockaddr_un::sun_path))
    throw error(
        ErrorCode::kConfiguration,
        socket_.string() + " is longer than a unix socket's path may be; use a shorter node directory");
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);  // a session tells of all its files in each message
  arguments.SetMaxSendMessageSize(-1);
  stub_ = api::Control::NewStub(
      grpc::CreateCustomChannel(target_of(socket_), grpc::InsecureChannelCredentials(), arguments));
}

}  // namespace sluice::client
