// AES-GCM by each engine: against OpenSSL, against the vectors of the mode's authors, and against others that
// Python's `cryptography` made (AESGCM(key).encrypt(iv, payload, aad), with the bytes that pattern() gives).
// SPDX-License-Identifier: Apache-2.0
#include "dataplane/seal/gcm.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <string_view>
#include <vector>

#include "dataplane/seal/engine_for_test.h"

namespace sluice::seal {
namespace {

using Bytes = std::vector<uint8_t>;

Bytes pattern(size_t size, uint8_t first, uint8_t step) {
  Bytes bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<uint8_t>(first + i * step);
  return bytes;
}

std::string hex(std::span<const uint8_t> bytes) {
  std::string text;
  for (const uint8_t byte : bytes) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

struct Vector {
  Cipher cipher;
  size_t bytes;
  const char* ciphertext_end;  // its last eight bytes, or all of it
  const char* tag;
};

// key: pattern(16 or 32, 1, 7); iv: pattern(12, 100, 3); aad: pattern(56, 9, 5); payload: pattern(bytes, 77,
// 11)
constexpr Vector kVectors[] = {
    {Cipher::kAes128Gcm, 0, "", "371d2a04b840addbbdfe5e27bec69bbe"},
    {Cipher::kAes128Gcm, 1, "f2", "cb044657e4d549b4ec8e2e4d724986f6"},
    {Cipher::kAes128Gcm, 15, "f87b7a4c0195bcd7", "c8d024b21bfbd4d2303e91e94ce28ee8"},
    {Cipher::kAes128Gcm, 16, "7b7a4c0195bcd79e", "0d059f65da947a2495455d43e9f30910"},
    {Cipher::kAes128Gcm, 17, "7a4c0195bcd79e3a", "3c86b87f484edca8a83d84aced2d8a5a"},
    {Cipher::kAes128Gcm, 300, "b8a5f4b9724365fc", "649f129760ace2441cc3a386d5ee842a"},
    {Cipher::kAes128Gcm, 1384, "036bf750de7e08d4", "e146ce7d03f99a15d220800298e066ed"},
    {Cipher::kAes128Gcm, 8192, "d4962c5d7d78758d", "52b4c3112eb1108936cdb402cbdac37a"},
    {Cipher::kAes128Gcm, 8900, "ce95366cbfa756d1", "88f4f174447b58f715a6c69c0865b5b3"},
    {Cipher::kAes128Gcm, 32768, "14f134ad38b4c7b7", "e5dcdc7166f36268c7e4ded98914fd08"},
    {Cipher::kAes256Gcm, 0, "", "e2cc88e4f2b93132c096d86b8b1eb1ef"},
    {Cipher::kAes256Gcm, 1, "5b", "4d2d146835950bf7fbcfb6af781dc06c"},
    {Cipher::kAes256Gcm, 15, "0152c564673d51f1", "8f365d8bd719462c4d68d05126ce76bb"},
    {Cipher::kAes256Gcm, 16, "52c564673d51f15e", "3c85b1369b67763f7482e4b00000d119"},
    {Cipher::kAes256Gcm, 17, "c564673d51f15ef9", "6e6efb4e8fd49a78ff6ec28f49a8fb6e"},
    {Cipher::kAes256Gcm, 300, "1c5391e1e073015e", "5bdf3a1cda6ae43c7d096a7307ec1365"},
    {Cipher::kAes256Gcm, 1384, "d8d3f92580964317", "5e1250a11d56c4b8b042f8590b97a55d"},
    {Cipher::kAes256Gcm, 8192, "efdfada9aa0d40be", "a6c298284fee791abcb8542ab5a7219b"},
    {Cipher::kAes256Gcm, 8900, "9527256b3ab28457", "e5883d20033c16bee67cfee3946e8d95"},
    {Cipher::kAes256Gcm, 32768, "bef9289d71547b4e", "3533aae4a928251d2287310df5d72696"},
};

class Gcm : public EveryEngine {
 protected:
  const Bytes iv_ = pattern(kIvBytes, 100, 3);
  const Bytes aad_ = pattern(56, 9, 5);
  GcmKey key_{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Engines, Gcm, testing::ValuesIn(kGcmEngines), engine_test_name);

Bytes bytes_of(std::string_view hex) {
  Bytes bytes;
  for (size_t at = 0; at < hex.size(); at += 2)
    bytes.push_back(static_cast<uint8_t>(std::stoi(std::string(hex.substr(at, 2)), nullptr, 16)));
  return bytes;
}

// Test cases 4 and 16 of McGrew and Viega, "The Galois/Counter Mode of Operation (GCM)", appendix B.
TEST_P(Gcm, GivesWhatItsAuthorsGive) {
  struct Published {
    Cipher cipher;
    const char *key, *ciphertext, *tag;
  };
  constexpr Published kPublished[] = {
      {Cipher::kAes128Gcm, "feffe9928665731c6d6a8f9467308308",
       "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e21d514b25466931c7d8f6a5aac84aa051ba30"
       "b39"
       "6a0aac973d58e091",
       "5bc94fbc3221a5db94fae95ae7121a47"},
      {Cipher::kAes256Gcm, "feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308",
       "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48590dbb3da7b08b1056828838c5f61"
       "e63"
       "93ba7a0abcc9f662",
       "76fc6ece0f4e1768cddf8853bb2d551b"},
  };
  const Bytes iv = bytes_of("cafebabefacedbaddecaf888");
  const Bytes aad = bytes_of("feedfacedeadbeeffeedfacedeadbeefabaddad2");
  const Bytes payload = bytes_of(
      "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aed"
      "f5"
      "aa0de657ba637b39");
  for (const Published& each : kPublished) {
    key_.set(each.cipher, bytes_of(each.key));
    Bytes out(payload.size());
    Bytes tag(kTagBytes);
    key_.seal(iv.data(), aad, payload, out.data(), tag.data());
    EXPECT_EQ(hex(out), each.ciphertext);
    EXPECT_EQ(hex(tag), each.tag);
  }
}

TEST_P(Gcm, GivesWhatAnotherImplementationGives) {
  for (const Vector& each : kVectors) {
    SCOPED_TRACE(each.bytes);
    key_.set(each.cipher, pattern(key_bytes(each.cipher), 1, 7));
    const Bytes payload = pattern(each.bytes, 77, 11);
    Bytes out(each.bytes);
    Bytes tag(kTagBytes);
    key_.seal(iv_.data(), aad_, payload, out.data(), tag.data());
    const size_t shown = std::min<size_t>(8, out.size());
    EXPECT_EQ(hex(std::span(out).last(shown)), each.ciphertext_end);
    EXPECT_EQ(hex(tag), each.tag);
    Bytes back(each.bytes, 0xEE);
    EXPECT_TRUE(key_.open(iv_.data(), aad_, out, back.data(), tag.data()));
    EXPECT_EQ(back, payload);
    key_.seal(iv_.data(), aad_, payload, back.data(), tag.data());
    EXPECT_TRUE(key_.open(iv_.data(), aad_, back, back.data(), tag.data())) << "in place";
    EXPECT_EQ(back, payload);
  }
}

TEST_P(Gcm, RefusesWhatWasAlteredAnywhere) {
  key_.set(Cipher::kAes128Gcm, pattern(16, 1, 7));
  const Bytes payload = pattern(300, 77, 11);
  Bytes sealed(payload.size());
  Bytes tag(kTagBytes);
  key_.seal(iv_.data(), aad_, payload, sealed.data(), tag.data());
  Bytes out(payload.size());
  const auto opens = [&](const Bytes& iv, const Bytes& aad, const Bytes& bytes, const Bytes& its_tag) {
    return key_.open(iv.data(), aad, bytes, out.data(), its_tag.data());
  };
  ASSERT_TRUE(opens(iv_, aad_, sealed, tag));
  const auto each_bit = [](const Bytes& of, const std::function<void(const Bytes&)>& look) {
    for (size_t bit = 0; bit < 8 * of.size(); ++bit) {
      Bytes altered = of;
      altered[bit / 8] ^= static_cast<uint8_t>(1U << (bit % 8));
      look(altered);
    }
  };
  each_bit(sealed, [&](const Bytes& altered) { EXPECT_FALSE(opens(iv_, aad_, altered, tag)); });
  each_bit(aad_, [&](const Bytes& altered) { EXPECT_FALSE(opens(iv_, altered, sealed, tag)); });
  each_bit(iv_, [&](const Bytes& altered) { EXPECT_FALSE(opens(altered, aad_, sealed, tag)); });
  each_bit(tag, [&](const Bytes& altered) { EXPECT_FALSE(opens(iv_, aad_, sealed, altered)); });
  key_.set(Cipher::kAes128Gcm, pattern(16, 2, 7));
  EXPECT_FALSE(opens(iv_, aad_, sealed, tag)) << "another key";
}

// And writes no byte behind the last.
TEST_P(Gcm, AgreesWithOpenSslOnEveryLength) {
  std::mt19937 random(5);
  for (const Cipher cipher : {Cipher::kAes128Gcm, Cipher::kAes256Gcm}) {
    GcmKey other(GcmEngine::kOpenSsl);
    const Bytes key = pattern(key_bytes(cipher), 200, 13);
    key_.set(cipher, key);
    other.set(cipher, key);
    for (size_t size = 0; size <= 9000; ++size) {
      const Bytes iv = pattern(kIvBytes, static_cast<uint8_t>(random()), 1);
      const Bytes aad = pattern(size % 3 == 0 ? size % 300 : 56, static_cast<uint8_t>(random()), 3);
      const Bytes payload = pattern(size, static_cast<uint8_t>(random()), 17);
      Bytes ours(size + 1, 0x77);
      Bytes its(size + 1, 0x77);
      Bytes our_tag(kTagBytes);
      Bytes its_tag(kTagBytes);
      key_.seal(iv.data(), aad, payload, ours.data(), our_tag.data());
      other.seal(iv.data(), aad, payload, its.data(), its_tag.data());
      ASSERT_EQ(ours, its) << size;
      ASSERT_EQ(our_tag, its_tag) << size;
      ASSERT_TRUE(key_.open(iv.data(), aad, {its.data(), size}, its.data(), its_tag.data())) << size;
      ASSERT_TRUE(std::equal(payload.begin(), payload.end(), its.begin())) << size;
      ASSERT_EQ(its.back(), 0x77) << size;
      our_tag[size % kTagBytes] ^= 1;
      ASSERT_FALSE(key_.open(iv.data(), aad, {ours.data(), size}, ours.data(), our_tag.data())) << size;
    }
  }
}

}  // namespace
}  // namespace sluice::seal
