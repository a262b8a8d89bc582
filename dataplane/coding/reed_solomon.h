// Reed-Solomon over GF(256) with a Cauchy matrix, by ISA-L.
//
// Row r of the matrix makes repair symbol r: its coefficient for source symbol j is 1 / ((K + r) + j), in the
// field of ISA-L (polynomial 0x11D) and by its function gf_gen_cauchy1_matrix. Every square part of a Cauchy
// matrix can be inverted, so any e repair symbols replace any e source symbols.
//
// A decoder inverts only that e x e part, never all K x K: K is 64, e is a few. The inverse of a Cauchy
// matrix is known in closed form (J. Blömer et al., An XOR-Based Erasure-Resilient Coding Scheme, 1995), and
// so is its product with the rest of the matrix, by partial fractions. A plan therefore costs one
// multiplication for each of its coefficients.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <vector>

#include "dataplane/coding/block_code.h"

namespace sluice::coding {

class ReedSolomon final : public BlockCode {
 public:
  static constexpr uint32_t kShardsMax = 255;  // source and repair symbols of a block

  // 1 <= source_symbols < kShardsMax.
  explicit ReedSolomon(uint32_t source_symbols);

  Scheme scheme() const override { return Scheme::kReedSolomon; }
  uint32_t source_symbols() const override { return source_symbols_; }
  uint32_t repair_symbols_max() const override { return kShardsMax - source_symbols_; }
  size_t arena_bytes(uint32_t symbol_bytes, uint32_t repair_symbols) const override;
  Coded encode(const Encoding& encoding, std::span<uint8_t> arena) const override;
  Coded decode(const Decoding& decoding, std::span<uint8_t> arena) const override;

 private:
  void plan(std::span<const uint32_t> missing, std::span<const uint8_t> columns,
            std::span<const uint8_t> repair_points, uint8_t* matrix) const;

  uint32_t source_symbols_;
  std::vector<uint8_t> matrix_;  // a row of K coefficients for each repair symbol
  std::array<uint16_t, 256> log_ = {};
  std::array<uint8_t, 255> power_ = {};  // of the field's generator
};

}  // namespace sluice::coding
