// Fuzzes the bytes of a move, behind its signature: whatever they are, what is taken of them can be checked,
// and says the same when it is written down again.
// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string>

#include "control/grant/move.h"
#include "dataplane/base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sluice;
  const auto first = grant::decode_move(std::string(reinterpret_cast<const char*>(data), size));
  if (!first) return 0;
  CHECK(first->end_by_unix_ns >= first->not_before_unix_ns, "a move ends after it has begun");
  CHECK(first->epoch != 0 && first->session.size() == 32, "a move names a session and an epoch");
  const auto again = grant::decode_move(grant::encode(*first));
  CHECK(again && again->session == first->session && again->to == first->to && again->peer == first->peer &&
            again->epoch == first->epoch && again->content_sha256 == first->content_sha256,
        "a move that is written down says what it said");
  return 0;
}
