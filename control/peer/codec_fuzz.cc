// Any bytes as a message of a peer: refused, or taken for a message that says the same again when it is sent
// on. A refused one has no body that this version knows.
// SPDX-License-Identifier: Apache-2.0
#include "control/peer/codec.h"
#include "control/peer/messages_for_test.h"
#include "dataplane/base/input_for_fuzz.h"

namespace {

using namespace sluice;

// The library would report every malformed string.
[[maybe_unused]] const auto kQuietLibrary = google::protobuf::SetLogHandler(nullptr);

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  peer::PeerMessage wire;
  if (!wire.ParseFromArray(data, static_cast<int>(size))) return 0;
  const auto message = peer::from_wire(wire);
  fuzz::require(message.has_value() == (wire.body_case() != peer::PeerMessage::BODY_NOT_SET),
                "whatever has a body is a message");
  if (!message) return 0;
  peer::PeerMessage again;
  fuzz::require(again.ParseFromString(peer::to_wire(*message).SerializeAsString()), "it can be sent on");
  const auto back = peer::from_wire(again);
  fuzz::require(back && transfer::equal_messages(*back, *message), "and says the same again");
  return 0;
}
