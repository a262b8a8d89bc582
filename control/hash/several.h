// Several digests of the same bytes, one piece behind the other.
//
// Any thread, one at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "control/digests/named.h"
#include "control/hash/digest.h"

namespace sluice::digests {

class Several {
 public:
  // kConfiguration: this program, or this host's OpenSSL, has none of a kind.
  static Result<Several> begin(Mask kinds);
  void add(const void* data, size_t bytes);
  void add_zeros(uint64_t bytes);
  Values values();  // once, at the end

 private:
  struct One {
    Kind kind;
    std::unique_ptr<Digest> digest;
  };
  std::vector<One> all_;
};

// Of bytes that lie in memory.
Result<Values> compute(Mask kinds, const void* data, size_t bytes);
// Those that this program, and this host's OpenSSL, have.
Mask available();
// kConfiguration: this program does not have all of these.
Status check_kinds(Mask kinds);

}  // namespace sluice::digests
