// Many small files as one object: an index, and behind it the files' bytes, one after the other.
//
// What an object costs (credit, a digest, a sync, a row of the journal, a word to the peer) is then paid once
// for about a thousand files. The size of a pack is known when its files have been listed and not yet read:
// the index has room for the longest that it can become. docs/WIRE.md 2.7 has the layout.
//
// Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "control/catalog/catalog.h"
#include "dataplane/base/error.h"

namespace sluice::tree {

using catalog::Entry;

using catalog::kPackBytesMax;
using catalog::kPackHeadBytes;
inline constexpr uint32_t kEntriesMax = 1U << 20;  // of one pack
inline constexpr uint32_t kKeptMax = 1U << 22;     // extended attributes, and entries of ACLs, of one pack

// Where everything lies, from the list alone.
struct PackLayout {
  uint64_t data_at = kPackHeadBytes;
  uint64_t size_bytes = kPackHeadBytes;
};
PackLayout layout_of(std::span<const Entry> entries);
// What one more entry makes a pack larger.
uint64_t bytes_in_pack(const Entry& entry);
// What kKeptMax bounds.
size_t kept_count(const catalog::Attributes& attributes);

// Writes head and index to the front of `pack`, of layout_of(entries).size_bytes. Files' bytes are already
// behind data_at, each where those before it end, also where one has a failure.
void write_index(std::span<const Entry> entries, std::span<uint8_t> pack);

struct Index {
  std::vector<Entry> entries;
  uint64_t data_at = 0;
};
// kIncompatible, with what is wrong: no pack, paths that lead elsewhere, bytes that are not there.
Result<Index> read_index(std::span<const uint8_t> pack);

// The list of a pack as the source's journal keeps it, with what does not travel.
std::string to_bytes(std::span<const Entry> entries);
Result<std::vector<Entry>> from_bytes(std::string_view bytes);

}  // namespace sluice::tree
