// RaptorQ (RFC 6330), by the crate raptorq behind a C interface of ours (dataplane/crates/raptorq_c.h).
//
// A rateless code: there are as many repair symbols as anyone wants. Of K source symbols, any K and now and
// then one or two more bring back the rest. The crate works on whole blocks: what it costs does not depend on
// how few symbols are made or missing. But each repair symbol is a sum over GF(256) of the source symbols. So
// few symbols are made, or brought back, as Reed-Solomon's are: by a product with a small matrix, which is
// quicker then. The symbols are the same ones. A build may leave all of it out (SLUICE_RAPTORQ in
// dataplane/CMakeLists.txt).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "dataplane/coding/block_code.h"

struct sluice_raptorq_block;
struct sluice_raptorq_plan;

namespace sluice::coding {

class RaptorQ final : public BlockCode {
 public:
  static constexpr uint32_t kSourceSymbolsMax = 56403;  // RFC 6330, 5.1.2
  static constexpr uint32_t kRepairSymbolsMax = 65536;  // what a datagram can number

  // nullptr: there is no plan for that K. Takes some milliseconds.
  static std::unique_ptr<RaptorQ> make(uint32_t source_symbols);
  ~RaptorQ() override;

  Scheme scheme() const override { return Scheme::kRaptorQ; }
  uint32_t source_symbols() const override { return source_symbols_; }
  uint32_t repair_symbols_max() const override { return kRepairSymbolsMax; }
  size_t arena_bytes(uint32_t symbol_bytes, uint32_t repair_symbols) const override;
  Coded encode(const Encoding& encoding, std::span<uint8_t> arena) const override;
  Coded decode(const Decoding& decoding, std::span<uint8_t> arena) const override;

  // Up to so many symbols a product is quicker than the crate (perf/micro/coding_bench.cc).
  static constexpr uint32_t kFewMax = 24;

  // Of the last call of the crate on this thread: the most that it used of its arena, and what it took from
  // malloc because the arena was too small. For the tests that hold arena_bytes() to be enough.
  struct ArenaUse {
    size_t used_max = 0;
    size_t missed = 0;
  };
  static ArenaUse last_use();

 private:
  RaptorQ(uint32_t source_symbols, sluice_raptorq_plan* plan);
  sluice_raptorq_block block(std::span<const uint8_t* const> source, uint32_t symbol_bytes) const;
  // Of a repair symbol that has some: K of them, one for each source symbol.
  const uint8_t* coefficients(uint32_t repair_id) const {
    return &coefficients_[size_t{repair_id} * source_symbols_];
  }
  bool are_few(size_t symbols, size_t columns, std::span<const uint8_t> arena) const;
  void encode_few(const Encoding& encoding, std::span<uint8_t> arena) const;
  // False: these repair symbols do not suffice, or are not known here.
  bool decode_few(const Decoding& decoding, std::span<uint8_t> arena) const;

  uint32_t source_symbols_;
  sluice_raptorq_plan* plan_;
  std::vector<uint8_t> coefficients_;  // rows of the repair symbols 0, 1 and so on
};

}  // namespace sluice::coding
