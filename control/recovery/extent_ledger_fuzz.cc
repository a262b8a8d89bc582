// Rows of the journal of any content, and extents in any order: a row is taken whole or refused whole, and
// whatever was taken, the map and the digest are those of a plain model. Rows given out restore the same.
// SPDX-License-Identifier: Apache-2.0
#include <bit>

#include "control/recovery/extent_ledger.h"
#include "dataplane/base/check.h"
#include "dataplane/base/input_for_fuzz.h"

namespace {

using namespace sluice;
using namespace sluice::recovery;

// Folded CRC of [first, end) in extents, and which extents they are.
struct Model {
  std::map<ExtentId, uint64_t> crcs;    // of single extents
  std::map<BlockId, uint64_t> digests;  // of whole blocks
  uint64_t known(const ExtentMap& map) const {
    uint64_t n = crcs.size();
    for (const auto& [block, digest] : digests) {
      n += std::min<uint64_t>(64, map.extents() - 64 * block.value());
    }
    return n;
  }
};

uint64_t digest_of(const Layout& layout, const ExtentMap& map, const Model& model) {
  uint64_t digest = 0;
  const auto fold = [&](ExtentId last, uint64_t crc) {
    digest ^= crc::shift(layout.crc_kind, crc, layout.size_bytes - map.range_of(last).end());
  };
  for (const auto& [extent, crc] : model.crcs) fold(extent, crc);
  for (const auto& [block, crc] : model.digests) {
    fold(ExtentId(std::min(64 * block.value() + 64, map.extents()) - 1), crc);
  }
  return digest;
}

void check(const Layout& layout, const ExtentLedger& ledger, const Model& model) {
  const ExtentMap& map = ledger.map();
  fuzz::require(map.set_extents() == model.known(map), "as many extents are known as were told");
  fuzz::require(ledger.digest() == digest_of(layout, map, model), "the digest is theirs");
  for (const auto& [extent, crc] : model.crcs) fuzz::require(map.is_set(extent), "each of them is known");
}

// What the row says, if it says it as a row must.
void restore(fuzz::Input& input, ExtentLedger& ledger, Model& model) {
  Block block{.id = BlockId(input.flag() ? input.below(4) : input.edge())};
  const uint64_t extents = ledger.map().extents();
  if (input.flag()) {
    block.bytes = input.text(input.take<uint8_t>() * 4U);
  } else {  // It has the right shape.
    uint64_t bitmap = input.take<uint64_t>();
    if (extents % 64 != 0 && block.id == BlockId(extents / 64)) bitmap &= (uint64_t{1} << extents % 64) - 1;
    if (input.below(4) == 0) bitmap = ~uint64_t{0};
    block.bytes.assign(reinterpret_cast<const char*>(&bitmap), 8);
    const int values = std::popcount(bitmap) == 64 ? 1 : std::popcount(bitmap);
    for (int i = 0; i < 8 * values; ++i) block.bytes += static_cast<char>(input.take<uint8_t>());
  }
  const uint64_t digest_before = ledger.digest();
  const uint64_t known_before = ledger.map().set_extents();
  if (!ledger.restore(block)) {
    fuzz::require(ledger.digest() == digest_before && ledger.map().set_extents() == known_before,
                  "of a refused row nothing is taken");
    return;
  }
  uint64_t bitmap = 0;
  std::memcpy(&bitmap, block.bytes.data(), 8);
  const uint64_t in_block = std::min<uint64_t>(64, extents - 64 * block.id.value());
  fuzz::require(block.id < ledger.end_id() && (in_block == 64 || bitmap >> in_block == 0), "a row in bounds");
  fuzz::require(static_cast<uint64_t>(std::popcount(bitmap)) == ledger.map().set_extents() - known_before,
                "it names extents that were not known");
  uint64_t value = 0;
  if (static_cast<uint64_t>(std::popcount(bitmap)) == in_block) {
    std::memcpy(&value, block.bytes.data() + 8, 8);
    model.digests[block.id] = value;
    fuzz::require(ledger.block_digest(block.id) == value, "a full block is its digest");
    return;
  }
  size_t at = 8;
  for (uint32_t i = 0; i < 64; ++i) {
    if ((bitmap >> i & 1) == 0) continue;
    std::memcpy(&value, block.bytes.data() + at, 8);
    model.crcs[ExtentId(64 * block.id.value() + i)] = value;
    at += 8;
  }
}

void add(fuzz::Input& input, ExtentLedger& ledger, Model& model) {
  if (ledger.map().extents() == 0) return;
  const ExtentId first(input.take<uint16_t>() % ledger.map().extents());
  const ExtentId end = std::min(first.plus(input.flag() ? 1 : 64), ledger.map().end_id());
  for (ExtentId extent = first; extent < end; ++extent) {
    const uint64_t crc = input.take<uint16_t>() * 0x9E3779B97F4A7C15ULL;
    const bool known = ledger.map().is_set(extent);
    const auto added = ledger.add(extent, crc);
    fuzz::require((added == ExtentLedger::Add::kNew) != known, "what is known is not new");
    if (!known) model.crcs[extent] = crc;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  base::set_dchecks(true);
  fuzz::Input input(data, size);
  static constexpr crc::CrcKind kKinds[] = {crc::CrcKind::kCrc64Ecma, crc::CrcKind::kCrc32c,
                                            crc::CrcKind::kNone};
  const Layout layout{.size_bytes = input.take<uint32_t>() % (300U << 16),
                      .extent_bytes = 1U << 16,
                      .crc_kind = kKinds[input.below(3)]};
  ExtentLedger ledger(layout);
  Model model;
  while (!input.empty()) {
    const uint32_t operation = input.below(8);
    if (operation < 3) {
      restore(input, ledger, model);
    } else {
      add(input, ledger, model);
    }
    check(layout, ledger, model);
  }
  // A journal has the rows that were restored already; these are the others.
  ExtentLedger again(layout);
  for (const Block& block : ledger.take_changed()) {
    fuzz::require(static_cast<bool>(again.restore(block)), "a row given out restores");
  }
  fuzz::require(ledger.take_changed().empty(), "each change is given out once");
  for (ExtentId extent; extent < ledger.map().end_id(); ++extent) {
    if (again.extent_crc(extent))
      fuzz::require(again.extent_crc(extent) == ledger.extent_crc(extent), "and is the same");
  }
  return 0;
}
