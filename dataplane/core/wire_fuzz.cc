// Any bytes as a datagram: what decode() accepts is exactly what encode() would have written.
// SPDX-License-Identifier: Apache-2.0
#include "dataplane/base/input_for_fuzz.h"
#include "dataplane/core/wire.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sluice;
  wire::Header header;
  const wire::Reject reject = wire::decode({data, size}, &header);
  if (reject == wire::Reject::kTooShort) fuzz::require(size < wire::kHeaderBytes, "too short is too short");
  if (reject != wire::Reject::kNone) return 0;
  fuzz::require(header.length == size - wire::kHeaderBytes, "length is what follows the header");
  uint8_t again[wire::kHeaderBytes];
  wire::encode(header, again);
  fuzz::require(std::memcmp(again, data, wire::kHeaderCoveredBytes) == 0,
                "an accepted header is a canonical one");
  return 0;
}
