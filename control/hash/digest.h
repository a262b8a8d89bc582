// One digest of some bytes that come one piece behind the other.
//
// Any thread, one at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "control/digests/kind.h"

namespace sluice::digests {

class Digest {
 public:
  virtual ~Digest() = default;
  virtual void add(const void* data, size_t bytes) = 0;
  // As `add` of so many zeros. At once where the kind allows it: checksums do, hashes do not.
  virtual void add_zeros(uint64_t bytes);
  virtual std::string hex() = 0;  // lower case; once, at the end
};

// kConfiguration: this program, or this host's OpenSSL, has none of that kind.
Result<std::unique_ptr<Digest>> begin_digest(Kind kind);

}  // namespace sluice::digests
