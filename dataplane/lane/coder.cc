// SPDX-License-Identifier: Apache-2.0
#include "dataplane/lane/coder.h"

#include <algorithm>

#include "dataplane/coding/block_layout.h"

namespace sluice::lane {
namespace {

using coding::Scheme;

static_assert(Coder::kBlockMax >= std::max(coding::kRaptorQBlockMax, coding::kReedSolomonBlockMax));

}  // namespace

uint8_t codes_built_in() {
  uint8_t codes = 0;
  for (const Scheme scheme : {Scheme::kReedSolomon, Scheme::kRaptorQ})
    if (coding::is_built_in(scheme)) codes |= code_bit(scheme);
  return codes;
}

bool Coder::prepare(uint8_t codes, uint32_t extent_bytes, uint32_t chunk_bytes) {
  const uint32_t symbol_bytes = std::max(symbol_bytes_, chunk_bytes);
  const coding::FlowShape shape{.extent_bytes = extent_bytes, .chunk_bytes = chunk_bytes};
  for (const Scheme scheme : {Scheme::kReedSolomon, Scheme::kRaptorQ}) {
    if ((codes & code_bit(scheme)) == 0) continue;
    if (find(scheme, shape) == nullptr) {
      auto code = coding::make_code(scheme, coding::source_symbols(scheme, shape));
      if (code == nullptr) return false;
      codes_.push_back(std::move(code));
    }
  }
  size_t arena_bytes = 0;
  for (const auto& code : codes_)
    arena_bytes = std::max(arena_bytes,
                           code->arena_bytes(symbol_bytes, std::min(kRepairMax, code->repair_symbols_max())));
  const size_t lines = (arena_bytes + sizeof(Line) - 1) / sizeof(Line);
  if (lines > arena_lines_) {
    arena_ = std::make_unique_for_overwrite<Line[]>(lines);
    arena_lines_ = lines;
  }
  if (chunk_bytes > symbol_bytes_) {
    ++generation_;
    symbol_bytes_ = chunk_bytes;
    encoded_ = std::make_unique_for_overwrite<uint8_t[]>(size_t{kRepairMax} * symbol_bytes_);
    decoded_ = std::make_unique_for_overwrite<uint8_t[]>(size_t{kRepairMax} * symbol_bytes_);
    last_chunk_ = std::make_unique_for_overwrite<uint8_t[]>(symbol_bytes_);
  }
  return true;
}

const coding::BlockCode* Coder::find(Scheme scheme, const coding::FlowShape& shape) const {
  const uint32_t k = coding::source_symbols(scheme, shape);
  const auto code = std::find_if(codes_.begin(), codes_.end(), [&](const auto& each) {
    return each->scheme() == scheme && each->source_symbols() == k;
  });
  return code == codes_.end() ? nullptr : code->get();
}

}  // namespace sluice::lane
