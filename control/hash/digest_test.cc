// Against values that others published: RFC 1321, FIPS 180-4's examples, the BLAKE3 test vectors, RFC 3720.
// SPDX-License-Identifier: Apache-2.0
#include "control/hash/digest.h"

#include <gtest/gtest.h>

#include <numeric>

namespace sluice::digests {
namespace {

std::string digest_of(Kind kind, const std::string& text, size_t piece = 1) {
  auto digest = begin_digest(kind);
  EXPECT_TRUE(digest) << digest.error().message;
  if (!digest) return "";
  for (size_t at = 0; at < text.size(); at += piece)
    (*digest)->add(text.data() + at, std::min(piece, text.size() - at));
  return (*digest)->hex();
}

TEST(Digest, KnownValues) {
  EXPECT_EQ(digest_of(Kind::kMd5, "abc"), "900150983cd24fb0d6963f7d28e17f72");
  EXPECT_EQ(digest_of(Kind::kMd5, ""), "d41d8cd98f00b204e9800998ecf8427e");
  EXPECT_EQ(digest_of(Kind::kSha1, "abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
  EXPECT_EQ(digest_of(Kind::kSha256, "abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(digest_of(Kind::kSha512, "abc"),
            "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a"
            "2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f");
  EXPECT_EQ(digest_of(Kind::kAdler32, "Wikipedia"), "11e60398");
  EXPECT_EQ(digest_of(Kind::kAdler32, ""), "00000001");
  EXPECT_EQ(digest_of(Kind::kCrc32c, "123456789"), "e3069283");
  EXPECT_EQ(digest_of(Kind::kCrc64, "123456789"), "995dc9bbdf1939fa");
}

#ifdef SLUICE_BLAKE3
// The input of the published vectors: bytes 0 to 250, again and again.
TEST(Digest, TheVectorsOfBlake3) {
  EXPECT_EQ(digest_of(Kind::kBlake3, ""), "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262");
  std::string input(102400, '\0');
  for (size_t i = 0; i < input.size(); ++i) input[i] = static_cast<char>(i % 251);
  EXPECT_EQ(digest_of(Kind::kBlake3, input.substr(0, 1)),
            "2d3adedff11b61f14c886e35afa036736dcd87a74d27b5c1510225d0f592e213");
  EXPECT_EQ(digest_of(Kind::kBlake3, input, 777),
            "bc3e3d41a1146b069abffad3c0d44860cf664390afce4d9661f7902e7943e085");
}
#endif

TEST(Kinds, AreKnownByOtherProgramsNames) {
  EXPECT_EQ(kind_named("SHA256"), Kind::kSha256);
  EXPECT_EQ(kind_named("SHA2-512"), Kind::kSha512);
  EXPECT_EQ(kind_named("sha-1"), Kind::kSha1);
  EXPECT_EQ(kind_named("whirlpool"), std::nullopt);
  for (const Kind kind : kKinds) EXPECT_EQ(kind_named(name_of(kind)), kind);
  const auto kinds = parse_kinds("blake3,MD5,blake3");
  ASSERT_TRUE(kinds);
  EXPECT_EQ(*kinds, (std::vector{Kind::kBlake3, Kind::kMd5}));
  EXPECT_FALSE(parse_kinds("sha256,"));
  EXPECT_FALSE(parse_kinds(""));
}

}  // namespace
}  // namespace sluice::digests
