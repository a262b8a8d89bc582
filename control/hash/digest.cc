// SPDX-License-Identifier: Apache-2.0
#include "control/hash/digest.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include "dataplane/crc/adler32.h"
#include "dataplane/crc/crc.h"
#include "dataplane/crc/zeros.h"
#ifdef SLUICE_BLAKE3
#include "dataplane/crates/blake3_c.h"
#endif

namespace sluice::digests {
namespace {

std::string hex_of(const unsigned char* bytes, size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i) text += fmt::format("{:02x}", bytes[i]);
  return text;
}

class Adler32 final : public Digest {
 public:
  void add(const void* data, size_t bytes) override { sum_ = adler32::compute(sum_, data, bytes); }
  void add_zeros(uint64_t bytes) override { sum_ = adler32::with_zeros(sum_, bytes); }
  std::string hex() override { return fmt::format("{:08x}", sum_); }

 private:
  uint32_t sum_ = adler32::kOfNothing;
};

class Crc final : public Digest {
 public:
  explicit Crc(crc::CrcKind kind) : kind_(kind) {}
  void add(const void* data, size_t bytes) override { sum_ = crc::compute(kind_, sum_, data, bytes); }
  void add_zeros(uint64_t bytes) override { sum_ = crc::with_zeros(kind_, sum_, bytes); }
  std::string hex() override {
    return kind_ == crc::CrcKind::kCrc64Ecma ? fmt::format("{:016x}", sum_) : fmt::format("{:08x}", sum_);
  }

 private:
  const crc::CrcKind kind_;
  uint64_t sum_ = 0;
};

struct FreeContext {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};

class OfOpenSsl final : public Digest {
 public:
  bool begin(const EVP_MD* algorithm) {
    context_.reset(EVP_MD_CTX_new());
    return context_ && EVP_DigestInit_ex(context_.get(), algorithm, nullptr) == 1;
  }
  void add(const void* data, size_t bytes) override { (void)EVP_DigestUpdate(context_.get(), data, bytes); }
  std::string hex() override {
    unsigned char bytes[EVP_MAX_MD_SIZE];
    unsigned count = 0;
    if (EVP_DigestFinal_ex(context_.get(), bytes, &count) != 1) return "";  // equal to none
    return hex_of(bytes, count);
  }

 private:
  std::unique_ptr<EVP_MD_CTX, FreeContext> context_;
};

#ifdef SLUICE_BLAKE3
class Blake3 final : public Digest {
 public:
  Blake3() : hasher_(sluice_blake3_new()) {}
  Blake3(const Blake3&) = delete;
  Blake3& operator=(const Blake3&) = delete;
  ~Blake3() override { sluice_blake3_free(hasher_); }
  void add(const void* data, size_t bytes) override {
    sluice_blake3_update(hasher_, static_cast<const uint8_t*>(data), bytes);
  }
  std::string hex() override {
    unsigned char bytes[SLUICE_BLAKE3_BYTES];
    sluice_blake3_finish(hasher_, bytes);
    return hex_of(bytes, sizeof bytes);
  }

 private:
  sluice_blake3_hasher* const hasher_;
};
#endif

const EVP_MD* algorithm_of(Kind kind) {
  switch (kind) {
    case Kind::kMd5:
      return EVP_md5();
    case Kind::kSha1:
      return EVP_sha1();
    case Kind::kSha512:
      return EVP_sha512();
    default:
      return EVP_sha256();
  }
}

}  // namespace

void Digest::add_zeros(uint64_t bytes) {
  zeros::in_pieces(bytes, [this](const uint8_t* data, uint64_t some) { add(data, some); });
}

Result<std::unique_ptr<Digest>> begin_digest(Kind kind) {
  switch (kind) {
    case Kind::kAdler32:
      return std::unique_ptr<Digest>(std::make_unique<Adler32>());
    case Kind::kCrc32c:
      return std::unique_ptr<Digest>(std::make_unique<Crc>(crc::CrcKind::kCrc32c));
    case Kind::kCrc64:
      return std::unique_ptr<Digest>(std::make_unique<Crc>(crc::CrcKind::kCrc64Ecma));
    case Kind::kBlake3:
#ifdef SLUICE_BLAKE3
      return std::unique_ptr<Digest>(std::make_unique<Blake3>());
#else
      return Error{ErrorCode::kConfiguration,
                   "blake3: this build has none; build with cargo (./dev deps) and -DSLUICE_BLAKE3=ON"};
#endif
    default:
      break;
  }
  auto digest = std::make_unique<OfOpenSsl>();
  if (!digest->begin(algorithm_of(kind)))
    return Error{ErrorCode::kConfiguration, std::string(name_of(kind)) +
                                                ": this host's OpenSSL refuses it; see its openssl.cnf, or "
                                                "use another digest"};
  return std::unique_ptr<Digest>(std::move(digest));
}

}  // namespace sluice::digests
