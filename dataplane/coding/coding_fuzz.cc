// A block as a peer could have it: any K, symbols, losses and numbers. What is within the limits decodes to
// what was encoded, whatever else is refused or wants more, and nothing is written but what was missing.
// SPDX-License-Identifier: Apache-2.0
#include <random>

#include "dataplane/base/input_for_fuzz.h"
#include "dataplane/coding/block_for_test.h"
#include "dataplane/coding/block_layout.h"

namespace {

using namespace sluice::coding;
using sluice::fuzz::Input;
using sluice::fuzz::require;

std::vector<uint32_t> some_numbers(Input& input, uint32_t count) {
  std::vector<uint32_t> numbers(count);
  for (uint32_t& number : numbers)
    number = input.flag() ? input.below(256) : static_cast<uint32_t>(input.edge());
  return numbers;
}

// Honest but for what the input wants: numbers that repeat, are out of order, or beyond what there is.
void decode_anything(Input& input, const BlockCode& code, const SymbolsForTest& source) {
  const auto symbol_bytes = static_cast<uint32_t>(source.bytes.front().size());
  const std::vector<uint32_t> missing = some_numbers(input, input.below(20));
  const std::vector<uint32_t> ids = some_numbers(input, input.below(20));
  const SymbolsForTest repair(1, symbol_bytes);
  std::vector<RepairSymbol> here;
  for (const uint32_t id : ids) here.push_back({.id = id, .bytes = repair.places[0]});
  AlignedBytes arena(input.flag() ? code.arena_bytes(symbol_bytes, static_cast<uint32_t>(ids.size()))
                                  : input.take<uint16_t>());
  SymbolsForTest damaged(source);
  (void)code.decode(
      {.source = damaged.places, .symbol_bytes = symbol_bytes, .missing = missing, .repair = here},
      arena.span());
  for (uint32_t i = 0; i < damaged.bytes.size(); ++i) {
    if (std::find(missing.begin(), missing.end(), i) == missing.end())
      require(damaged.bytes[i] == source.bytes[i], "a decoder writes what is missing, and nothing else");
  }
}

void decode_what_was_encoded(Input& input, const BlockCode& code, const SymbolsForTest& source) {
  const auto chunks = static_cast<uint32_t>(source.bytes.size());
  const uint32_t most = std::min({chunks, code.repair_symbols_max(), 24U});
  const uint32_t lost = input.below(most + 1);
  std::mt19937_64 random(input.take<uint32_t>());
  const SymbolsForTest repair =
      repair_of(code, source, 0, most + 8 > code.repair_symbols_max() ? most : most + 8);
  require(!repair.bytes.empty(), "a code makes the symbols that it says it has");
  const auto missing = random_choice(random, chunks, lost);
  const auto ids = random_choice(random, static_cast<uint32_t>(repair.bytes.size()), lost);
  SymbolsForTest damaged(source);
  const Coded coded = decode_for_test(code, &damaged, missing, repair, ids);
  require(coded == Coded::kYes || (coded == Coded::kNeedsMore && code.scheme() == Scheme::kRaptorQ),
          "any e symbols of Reed-Solomon replace any e others");
  if (coded == Coded::kYes) require(damaged.bytes == source.bytes, "what was lost comes back as it was");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input input(data, size);
  const auto scheme = input.flag() && is_built_in(Scheme::kRaptorQ) ? Scheme::kRaptorQ : Scheme::kReedSolomon;
  const uint32_t k = 1 + input.below(scheme == Scheme::kRaptorQ ? 40 : 254);
  const auto code = make_code(scheme, k);
  require(code != nullptr, "there is a code for each K within the limits");
  const uint32_t chunks = 1 + input.below(k);
  const uint32_t symbol_bytes = kSymbolBytesMin + input.take<uint16_t>() % 1024;
  std::mt19937_64 random(input.take<uint32_t>());
  const SymbolsForTest source = random_symbols(random, chunks, symbol_bytes);
  if (input.flag()) {
    decode_anything(input, *code, source);
  } else {
    decode_what_was_encoded(input, *code, source);
  }
  return 0;
}
