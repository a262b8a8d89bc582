// SPDX-License-Identifier: Apache-2.0
#include "dataplane/coding/block_code.h"

#include "dataplane/coding/reed_solomon.h"
#ifdef SLUICE_RAPTORQ
#include "dataplane/coding/raptorq.h"
#endif

namespace sluice::coding {

bool is_built_in(Scheme scheme) {
#ifdef SLUICE_RAPTORQ
  return scheme == Scheme::kReedSolomon || scheme == Scheme::kRaptorQ;
#else
  return scheme == Scheme::kReedSolomon;
#endif
}

std::unique_ptr<BlockCode> make_code(Scheme scheme, uint32_t source_symbols) {
  if (source_symbols == 0) return nullptr;
  if (scheme == Scheme::kReedSolomon) {
    if (source_symbols >= ReedSolomon::kShardsMax) return nullptr;
    return std::make_unique<ReedSolomon>(source_symbols);
  }
#ifdef SLUICE_RAPTORQ
  if (scheme == Scheme::kRaptorQ) return RaptorQ::make(source_symbols);
#endif
  return nullptr;
}

}  // namespace sluice::coding
