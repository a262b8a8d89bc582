// RaptorQ (RFC 6330), by the crate raptorq behind a C interface of ours (raptorq/raptorq_c.h).
//
// A rateless code: there are as many repair symbols as anyone wants. Of K source symbols, any K and now and
// then one or two more bring back the rest. It works on whole blocks: what a decoder costs does not depend on
// how few symbols are missing. A build may leave all of it out (SLUICE_RAPTORQ in dataplane/CMakeLists.txt).
// SPDX-License-Identifier: Apache-2.0
#pragma once

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

  // Of the last call on this thread: the most that it used of its arena, and what it took from malloc because
  // the arena was too small. For the tests that hold arena_bytes() to be enough.
  struct ArenaUse {
    size_t used_max = 0;
    size_t missed = 0;
  };
  static ArenaUse last_use();

 private:
  RaptorQ(uint32_t source_symbols, sluice_raptorq_plan* plan)
      : source_symbols_(source_symbols), plan_(plan) {}
  sluice_raptorq_block block(std::span<const uint8_t* const> source, uint32_t symbol_bytes) const;

  uint32_t source_symbols_;
  sluice_raptorq_plan* plan_;
};

}  // namespace sluice::coding
