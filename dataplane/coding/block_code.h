// An erasure code over one block: repair symbols are made of its source symbols, and any source symbols that
// are missing are made of the others and as many repair symbols.
//
// Pure: functions of their arguments, any thread, no state but what the constructor made. Nothing is
// allocated while a block is coded; the caller gives the memory for it. Both codes are systematic: source
// symbols are sent as they are, so a block that misses none never meets a decoder.
//
// The source symbols of a block are chunks of an extent, each where it lies (block_layout.h). A block may
// have fewer of them than K: the rest are zeros that nobody sends. Repair symbols have numbers from 0 on, and
// each number is another symbol, so a sender that needs more takes the next numbers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

namespace sluice::coding {

// Numbers of WIRE.md: what a repair symbol was made by.
enum class Scheme : uint8_t { kReedSolomon = 0, kRaptorQ = 1 };
inline std::string_view scheme_name(Scheme scheme) {
  return scheme == Scheme::kReedSolomon ? "rs" : "raptorq";
}

// Bytes of a symbol.
inline constexpr uint32_t kSymbolBytesMin = 64;
inline constexpr uint32_t kSymbolBytesMax = 32768;
constexpr bool is_symbol_size(uint32_t bytes) { return bytes >= kSymbolBytesMin && bytes <= kSymbolBytesMax; }

// A repair symbol that is here.
struct RepairSymbol {
  uint32_t id = 0;
  const uint8_t* bytes = nullptr;
};

// What an encoder does. Every symbol has `symbol_bytes` bytes.
struct Encoding {
  std::span<const uint8_t* const> source;  // 1 to K symbols
  uint32_t symbol_bytes = 0;
  uint32_t first_id = 0;
  std::span<uint8_t* const> repair;  // symbols first_id, first_id + 1 and so on are written there
};

// What a decoder does. More repair symbols than missing ones may help RaptorQ; Reed-Solomon takes the first
// ones.
struct Decoding {
  std::span<uint8_t* const> source;  // 1 to K places; those that are missing are written, all others read
  uint32_t symbol_bytes = 0;
  std::span<const uint32_t> missing;     // their indices, ascending
  std::span<const RepairSymbol> repair;  // no two with one number
};

enum class Coded : uint8_t {
  kYes,
  kNeedsMore,  // too few repair symbols are here, or those that are do not suffice (RaptorQ, rarely)
  kRefused,    // an argument is beyond what the code allows: a peer's number, or memory that is too small
};

class BlockCode {
 public:
  BlockCode() = default;
  BlockCode(const BlockCode&) = delete;
  BlockCode& operator=(const BlockCode&) = delete;
  virtual ~BlockCode() = default;

  virtual Scheme scheme() const = 0;
  virtual uint32_t source_symbols() const = 0;  // K
  // Repair symbols have numbers below this.
  virtual uint32_t repair_symbols_max() const = 0;
  // The memory that a call needs which makes or uses so many repair symbols; aligned to 64 bytes.
  virtual size_t arena_bytes(uint32_t symbol_bytes, uint32_t repair_symbols) const = 0;

  virtual Coded encode(const Encoding& encoding, std::span<uint8_t> arena) const = 0;
  virtual Coded decode(const Decoding& decoding, std::span<uint8_t> arena) const = 0;
};

// Of blocks of K source symbols: 1 to 254 with Reed-Solomon, 1 to 56403 with RaptorQ. nullptr: there is none
// for that K, or this build does not have the scheme (RaptorQ may be left out).
std::unique_ptr<BlockCode> make_code(Scheme scheme, uint32_t source_symbols);
bool is_built_in(Scheme scheme);

}  // namespace sluice::coding
