// Packs as an honest source makes them, and as another one may. For tests.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "control/proto/peer.pb.h"
#include "control/tree/pack.h"
#include "dataplane/core/wire.h"
#include "dataplane/crc/crc.h"

namespace sluice::tree::test {

using catalog::EntryKind;
using catalog::Failure;
using Bytes = std::vector<uint8_t>;

inline Entry file(std::string path, std::string_view text) {
  return {.path = std::move(path),
          .size_bytes = text.size(),
          .mode = 0644,
          .mtime_ns = 1'700'000'000'123'456'789,
          .digest = crc::compute(wire::CrcKind::kCrc64Ecma, 0, reinterpret_cast<const uint8_t*>(text.data()),
                                 text.size())};
}

// Entries, and the bytes of those that are files.
struct Content {
  std::vector<Entry> entries;
  std::vector<std::string> texts;

  Content& add(Entry entry, std::string text = {}) {
    entries.push_back(std::move(entry));
    texts.push_back(std::move(text));
    return *this;
  }
  Content& add_file(const std::string& path, const std::string& text) { return add(file(path, text), text); }
  Bytes pack() const {
    const PackLayout layout = layout_of(entries);
    Bytes bytes(layout.size_bytes);
    uint64_t at = layout.data_at;
    for (size_t i = 0; i < entries.size(); ++i) {
      std::copy(texts[i].begin(), texts[i].end(), bytes.begin() + static_cast<ptrdiff_t>(at));
      at += entries[i].size_bytes;
    }
    write_index(entries, bytes);
    return bytes;
  }
};

// Of an index that nobody checked, with so many bytes of files behind it.
inline Bytes pack_of_index(const std::string& index, size_t data_bytes = 0) {
  Bytes bytes(kPackHeadBytes + index.size() + data_bytes);
  wire::store_be64(bytes.data(), 0x534c5549'43455031);
  wire::store_be64(bytes.data() + 8, index.size());
  wire::store_be64(bytes.data() + 16, kPackHeadBytes + index.size());
  std::copy(index.begin(), index.end(), bytes.begin() + kPackHeadBytes);
  return bytes;
}

}  // namespace sluice::tree::test
