// Abilities: what both nodes must understand before either uses it. The initiator says in Specification which
// it wants to use, the other answers in SpecificationSet with those of them that it has, and both keep these
// in their Agreement. A node that does not know one does not say it, so that nodes of different age go on
// together.
//
// Pure. docs/HACKING.md, "Negotiate an ability with the peer", says what a new one needs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace sluice::transfer {

enum class Ability : uint8_t {
  kGrowingOffer,      // an offer may grow while data moves (docs/WIRE.md 2.11)
  kReedSolomon,       // the source may send repair symbols of this erasure code (docs/WIRE.md 1.12)
  kRaptorQ,           // likewise
  kParityDemanded,    // it sends them wherever anything is lost; without a code there is no session
  kParts,             // the source sends only what the destination asks for (docs/WIRE.md 2.1.6)
  kEchoes,            // the destination reflects echoes (docs/WIRE.md 1.13)
  kRanges,            // the session is about a part of one file (docs/WIRE.md 2.17)
  kDigests,           // the destination computes digests of what it stores (docs/WIRE.md 2.18)
  kZstd,              // compressed extents may travel (docs/WIRE.md 1.14)
  kCompressDemanded,  // the source compresses all that get shorter; without kZstd there is no session
};
// In the order of the enumeration: the fields of messages and of the journal that say it.
inline constexpr auto kAbilityNames =
    std::to_array<std::string_view>({"growing_offer", "reed_solomon", "raptorq", "parity_demanded", "parts",
                                     "echoes", "ranges", "digests", "zstd", "compress_demanded"});

class AbilitySet {
 public:
  constexpr AbilitySet() = default;
  constexpr AbilitySet(std::initializer_list<Ability> abilities) {
    for (const Ability ability : abilities) set(ability);
  }
  static constexpr AbilitySet all() {
    AbilitySet every;
    every.bits_ = (1U << kAbilityNames.size()) - 1;
    return every;
  }

  constexpr bool has(Ability ability) const { return (bits_ & bit(ability)) != 0; }
  constexpr void set(Ability ability, bool has = true) {
    bits_ = has ? bits_ | bit(ability) : bits_ & ~bit(ability);
  }
  // What both have.
  friend constexpr AbilitySet operator&(AbilitySet a, AbilitySet b) {
    a.bits_ &= b.bits_;
    return a;
  }
  bool operator==(const AbilitySet&) const = default;

 private:
  static constexpr uint32_t bit(Ability ability) { return 1U << static_cast<uint32_t>(ability); }
  uint32_t bits_ = 0;
};

}  // namespace sluice::transfer
