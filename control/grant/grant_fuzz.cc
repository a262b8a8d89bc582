// Fuzzes the bytes of a grant, behind its signature: whatever they are, what is taken of them can be checked,
// and says the same when it is written down again.
// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string>

#include "control/grant/grant.h"
#include "dataplane/base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sluice;
  const auto first = grant::decode(std::string(reinterpret_cast<const char*>(data), size));
  if (!first) return 0;
  CHECK(first->end_by_unix_ns >= first->not_before_unix_ns, "a grant ends after it has begun");
  CHECK(!first->path.empty() && first->id.size() == 32, "a grant names a session and a path");
  const auto again = grant::decode(grant::encode(*first));
  CHECK(again && again->path == first->path && again->id == first->id && again->holder == first->holder &&
            again->end_by_unix_ns == first->end_by_unix_ns,
        "a grant that is written down says what it said");
  return 0;
}
