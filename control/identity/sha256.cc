// SPDX-License-Identifier: Apache-2.0
#include "control/identity/sha256.h"

#include <openssl/evp.h>
#include <openssl/sha.h>

namespace sluice::identity {

std::string sha256_of(std::string_view bytes) {
  std::string digest(SHA256_DIGEST_LENGTH, '\0');
  (void)EVP_Digest(bytes.data(), bytes.size(), reinterpret_cast<unsigned char*>(digest.data()), nullptr,
                   EVP_sha256(), nullptr);
  return digest;
}

}  // namespace sluice::identity
