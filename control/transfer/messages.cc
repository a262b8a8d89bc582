// SPDX-License-Identifier: Apache-2.0
#include "control/transfer/messages.h"

#include <fmt/format.h>

#include <array>

namespace sluice::transfer {
namespace {

constexpr size_t kFailureTextBytesMax = 1000;

// A peer's words go into logs and lists: one line, printable, bounded.
std::string cleaned(const std::string& text) {
  std::string clean = text.substr(0, kFailureTextBytesMax);
  for (char& c : clean) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F) c = '?';
  }
  return clean;
}

}  // namespace

std::string_view message_name(const Message& message) {
  constexpr std::array<std::string_view, std::variant_size_v<Message>> kNames = {
      "Hello",         "Specification", "SpecificationSet", "TransferRequest",
      "TransferOffer", "TransferReady", "ObjectState",      "PartitionSent",
      "PartitionDone", "Need",          "FileDigest",       "FileDone",
      "SessionDone",   "Heartbeat",     "Failure",          "Pause"};
  return kNames[message.index()];
}

Error error_of(const std::string& peer_name, const Failure& failure) {
  const bool known = failure.code > 0 && failure.code <= static_cast<uint32_t>(ErrorCode::kResources);
  return {known ? static_cast<ErrorCode>(failure.code) : ErrorCode::kInternal,
          fmt::format("{}: {}", peer_name, cleaned(failure.message))};
}

Failure failure_of(const Error& error) {
  return {.code = static_cast<uint32_t>(error.code), .message = error.message};
}

}  // namespace sluice::transfer
