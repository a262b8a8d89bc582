// SPDX-License-Identifier: Apache-2.0
#include "control/peer/framing.h"

#include <gtest/gtest.h>

namespace sluice::peer {
namespace {

using Next = FrameDecoder::Next;

void feed(FrameDecoder& decoder, std::string_view bytes) {
  decoder.feed({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
}

TEST(Framing, TheLengthIsFourBytesInNetworkOrder) {
  EXPECT_EQ(encode_frame("ab"), std::string_view("\0\0\0\2ab", 6));
  EXPECT_EQ(encode_frame(std::string(258, 'x')).substr(0, 4), std::string_view("\0\0\1\2", 4));
}

TEST(Framing, FramesComeOutWhateverTheCuts) {
  const std::string stream = encode_frame("one") + encode_frame("") + encode_frame(std::string(5000, 'x'));
  for (size_t cut : {1U, 2U, 3U, 5U, 7U, 4096U, 6000U}) {
    FrameDecoder decoder(8192);
    std::vector<std::string> frames;
    std::string payload;
    for (size_t at = 0; at < stream.size(); at += cut) {
      feed(decoder, std::string_view(stream).substr(at, cut));
      while (decoder.next(&payload) == Next::kFrame) frames.push_back(payload);
    }
    ASSERT_EQ(frames.size(), 3U) << cut;
    EXPECT_EQ(frames[0], "one");
    EXPECT_EQ(frames[1], "");
    EXPECT_EQ(frames[2], std::string(5000, 'x'));
    EXPECT_EQ(decoder.buffered_bytes(), 0U);
  }
}

TEST(Framing, AFrameOfTheLimitPassesAndOneByteMoreEndsTheStream) {
  FrameDecoder decoder(100);
  std::string payload;
  feed(decoder,
       encode_frame(std::string(100, 'x')) + encode_frame(std::string(101, 'x')) + encode_frame("late"));
  EXPECT_EQ(decoder.next(&payload), Next::kFrame);
  EXPECT_EQ(decoder.next(&payload), Next::kTooLong);
  feed(decoder, encode_frame("later"));
  EXPECT_EQ(decoder.next(&payload), Next::kTooLong);
}

TEST(Framing, ALongLengthAloneIsRefusedAtOnceAndTakesNoMemory) {
  FrameDecoder decoder(1U << 20);
  std::string payload;
  feed(decoder, std::string_view("\xff\xff\xff\xff", 4));
  EXPECT_EQ(decoder.next(&payload), Next::kTooLong);
  EXPECT_EQ(decoder.buffered_bytes(), 0U);
}

}  // namespace
}  // namespace sluice::peer
