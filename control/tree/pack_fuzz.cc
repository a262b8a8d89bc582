// Any bytes as a pack of a peer: refused, or an index of which each entry is one that an honest source can
// have written, with bytes that are in the pack; written again it says the same. The same bytes as the list
// of a journal.
// SPDX-License-Identifier: Apache-2.0
#include <google/protobuf/stubs/logging.h>

#include <algorithm>
#include <vector>

#include "control/tree/pack.h"
#include "dataplane/base/input_for_fuzz.h"
#include "dataplane/core/wire.h"

namespace {

using namespace sluice;
using catalog::Entry;
using catalog::EntryKind;

// The library would report every malformed string.
[[maybe_unused]] const auto kQuietLibrary = google::protobuf::SetLogHandler(nullptr);

bool same(const Entry& one, const Entry& other) {
  return one.path == other.path && one.kind == other.kind && one.size_bytes == other.size_bytes &&
         one.mode == other.mode && one.mtime_ns == other.mtime_ns && one.target == other.target &&
         one.digest == other.digest && one.failure == other.failure && one.attributes == other.attributes;
}

void check(const Entry& entry) {
  const bool is_top = entry.path == catalog::kTop && entry.kind == EntryKind::kDirectory;
  const std::string around = is_top ? "/top/" : "/" + entry.path + "/";
  fuzz::require(around.find("//") == std::string::npos && around.find("/../") == std::string::npos &&
                    around.find("/./") == std::string::npos && around.find('\0') == std::string::npos,
                "a path that leads nowhere else");
  fuzz::require(entry.path.size() <= 4096 && entry.target.size() <= 4096, "as long as paths may be");
  fuzz::require(static_cast<uint8_t>(entry.kind) < catalog::kEntryKinds, "a kind that is known");
  fuzz::require(entry.kind == EntryKind::kFile || entry.size_bytes == 0, "bytes are those of files");
  fuzz::require(entry.kind != EntryKind::kHardLink || catalog::good_path(entry.target), "links to its own");
  fuzz::require(entry.mode <= 07777, "permission bits");
}

void check_index(std::span<const uint8_t> pack) {
  const Result<tree::Index> index = tree::read_index(pack);
  if (!index) {
    fuzz::require(index.error().code == ErrorCode::kIncompatible && !index.error().message.empty(),
                  "it says why");
    return;
  }
  fuzz::require(index->data_at >= tree::kPackHeadBytes && index->data_at <= pack.size(), "behind the index");
  uint64_t left = pack.size() - index->data_at;
  for (const Entry& entry : index->entries) {
    check(entry);
    fuzz::require(entry.size_bytes <= left, "no more bytes than there are");
    left -= entry.size_bytes;
  }
  // Written again, without the files' bytes.
  std::vector<Entry> entries = index->entries;
  for (Entry& entry : entries) entry.size_bytes = 0;
  std::vector<uint8_t> again(tree::layout_of(entries).size_bytes);
  tree::write_index(entries, again);
  const Result<tree::Index> back = tree::read_index(again);
  fuzz::require(back && back->entries.size() == entries.size(), "it can be written again");
  for (size_t i = 0; i < entries.size(); ++i)
    fuzz::require(same(back->entries[i], entries[i]), "and is the same");
}

void check_list(std::string_view bytes) {
  const Result<std::vector<Entry>> list = tree::from_bytes(bytes);
  if (!list) return;
  for (const Entry& entry : *list) check(entry);
  const Result<std::vector<Entry>> back = tree::from_bytes(tree::to_bytes(*list));
  fuzz::require(back && back->size() == list->size(), "it can be kept again");
  for (size_t i = 0; i < list->size(); ++i) {
    fuzz::require(same((*back)[i], (*list)[i]) && (*back)[i].ctime_ns == (*list)[i].ctime_ns,
                  "and is the same");
  }
}

}  // namespace

// The first byte chooses: a pack, the index of one with a right head, or a list.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  const uint32_t form = input.below(3);
  const std::span<const uint8_t> bytes = input.rest();
  if (form == 0) check_index(bytes);
  if (form == 2) check_list({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  if (form != 1) return 0;
  constexpr size_t kFileBytes = 100;
  std::vector<uint8_t> pack(tree::kPackHeadBytes + bytes.size() + kFileBytes);
  wire::store_be64(pack.data(), 0x534c5549'43455031);
  wire::store_be64(pack.data() + 8, bytes.size());
  wire::store_be64(pack.data() + 16, tree::kPackHeadBytes + bytes.size());
  std::copy(bytes.begin(), bytes.end(), pack.begin() + tree::kPackHeadBytes);
  check_index(pack);
  return 0;
}
