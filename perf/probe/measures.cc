// SPDX-License-Identifier: Apache-2.0
#include "perf/probe/measures.h"

namespace sluice::probe {

uint64_t Quantiles::lowest_of(uint32_t bucket) {
  if (bucket < (2U << kSubBits)) return bucket;
  const uint32_t shift = (bucket >> kSubBits) - 1;
  return static_cast<uint64_t>(bucket - (shift << kSubBits)) << shift;
}

uint64_t Quantiles::at(uint32_t per_mille) const {
  if (count_ == 0) return 0;
  const auto wanted = std::max<uint64_t>(
      1, static_cast<uint64_t>((static_cast<__uint128_t>(count_) * per_mille + 999) / 1000));
  uint64_t seen = 0;
  for (uint32_t i = 0; i < kBuckets; ++i) {
    seen += counts_[i];
    if (seen >= wanted) return lowest_of(i);
  }
  return max_;
}

}  // namespace sluice::probe
