// Any bytes from a peer, in any cuts: the decoder and the parser stay within their bounds, and the frames
// do not depend on the cuts. The first byte chooses the cut.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>
#include <vector>

#include "control/peer/framing.h"
#include "control/proto/peer.pb.h"

namespace {

// The library would report every malformed string.
[[maybe_unused]] const auto kQuietLibrary = google::protobuf::SetLogHandler(nullptr);

constexpr uint32_t kFrameBytesMax = 4096;

std::vector<std::string> frames_of(std::span<const uint8_t> stream, size_t cut) {
  sluice::peer::FrameDecoder decoder(kFrameBytesMax);
  std::vector<std::string> frames;
  std::string payload;
  while (!stream.empty()) {
    const size_t take = std::min(cut, stream.size());
    decoder.feed(stream.first(take));
    stream = stream.subspan(take);
    while (decoder.next(&payload) == sluice::peer::FrameDecoder::Next::kFrame) {
      if (payload.size() > kFrameBytesMax) abort();
      frames.push_back(payload);
    }
    if (decoder.buffered_bytes() > kFrameBytesMax + sluice::peer::kFrameHeaderBytes + cut) abort();
  }
  return frames;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const std::span<const uint8_t> stream(data + 1, size - 1);
  const auto frames = frames_of(stream, 1 + data[0]);
  if (frames != frames_of(stream, stream.size())) abort();
  for (const std::string& frame : frames) {
    sluice::peer::PeerMessage message;
    (void)message.ParseFromString(frame);
  }
  return 0;
}
