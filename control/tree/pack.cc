// SPDX-License-Identifier: Apache-2.0
#include "control/tree/pack.h"

#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <algorithm>
#include <cstring>

#include "control/proto/digest_fields.h"
#include "control/proto/journal.pb.h"
#include "control/proto/peer.pb.h"
#include "dataplane/base/check.h"
#include "dataplane/base/file_time.h"
#include "dataplane/base/path.h"
#include "dataplane/base/text.h"
#include "dataplane/core/wire.h"

namespace sluice::tree {
namespace {

using catalog::EntryKind;
using catalog::Failure;
using catalog::good_path;
using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

constexpr uint64_t kMagic = 0x534c5549'43455031;  // "SLUICEP1"
// Of one entry beside its path and target: tags, lengths and numbers, each as long as it can become.
constexpr uint64_t kEntryBytesMax = 72;
// And of a time that is told in seconds.
constexpr uint64_t kFarTimeBytesMax = 17;
// And of its owner and group, where these are kept, beside their names; of an extended attribute beside its
// name and its value; of an entry of an ACL beside its name.
constexpr uint64_t kAttributesBytesMax = 32;
constexpr uint64_t kXattrBytesMax = 16;
constexpr uint64_t kAclEntryBytesMax = 24;
// And of a digest that is expected, beside its value.
constexpr uint64_t kDigestBytesMax = 8;
// And with them, whatever a later version adds.
constexpr uint32_t kEntryBytesRead = (16U << 10) + 2 * catalog::kKeptBytesMax;

Error wrong(std::string what) { return {ErrorCode::kIncompatible, "a pack of files " + std::move(what)}; }

void put(const Entry& from, peer::PackEntry* to) {
  to->set_path(from.path);
  to->set_kind(static_cast<peer::PackEntry::Kind>(from.kind));
  to->set_size(from.size_bytes);
  to->set_mode(from.mode);
  base::put_file_time(from.mtime_ns, to);
  to->set_target(from.target);
  to->set_digest(from.digest);
  to->set_failure(static_cast<uint32_t>(from.failure));
  catalog::put_attributes(from.attributes, to);
  peer::put_digests(from.expected, to->mutable_expected());
}

Entry take(const peer::PackEntry& from) {
  return {.path = from.path(),
          // A kind that is not known stays one.
          .kind = static_cast<EntryKind>(std::min(static_cast<uint32_t>(from.kind()), 255U)),
          .size_bytes = from.size(),
          .mode = from.mode() & 07777,
          .mtime_ns = base::file_time_of(from),
          .target = from.target(),
          .digest = from.digest(),
          .failure = catalog::failure_of(from.failure()),
          .attributes = catalog::attributes_of(from),
          .expected = peer::digests_of(from.expected())};
}

// What an honest source can have written.
Status check(const Entry& entry) {
  const bool is_top = entry.path == catalog::kTop && entry.kind == EntryKind::kDirectory;
  if (!is_top && !good_path(entry.path))
    return wrong(fmt::format("has the path \"{}\"", base::printable(entry.path)));
  if (static_cast<uint8_t>(entry.kind) >= catalog::kEntryKinds)
    return wrong(fmt::format("has {} of a kind that is not known here", base::printable(entry.path)));
  if (entry.kind != EntryKind::kFile && entry.size_bytes != 0)
    return wrong(fmt::format("has bytes for {}, which is no file", base::printable(entry.path)));
  if (entry.kind == EntryKind::kHardLink && !good_path(entry.target))
    return wrong(fmt::format("links {} to a path outside", base::printable(entry.path)));
  const bool target_is_good = !entry.target.empty() && entry.target.size() < base::kPathBytesMax &&
                              entry.target.find('\0') == std::string::npos;
  if (entry.kind == EntryKind::kSymlink && !target_is_good && entry.failure == Failure::kNone)
    return wrong(fmt::format("has the link {} to nothing", base::printable(entry.path)));
  return {};
}

// One after the other, and only what is known of it: what it is in memory is in proportion to its bytes, also
// where these say next to nothing a million times.
bool take_entries(std::span<const uint8_t> bytes, std::vector<Entry>* entries) {
  constexpr uint32_t kEntriesTag = WireFormatLite::MakeTag(peer::PackIndex::kEntriesFieldNumber,
                                                           WireFormatLite::WIRETYPE_LENGTH_DELIMITED);
  CodedInputStream in(bytes.data(), static_cast<int>(bytes.size()));
  peer::PackEntry entry;
  size_t kept = 0;
  while (const uint32_t tag = in.ReadTag()) {
    if (tag != kEntriesTag) {
      if (!WireFormatLite::SkipField(&in, tag)) return false;
      continue;
    }
    uint32_t length = 0;
    if (!in.ReadVarint32(&length) || length > kEntryBytesRead || entries->size() == kEntriesMax) return false;
    const CodedInputStream::Limit limit = in.PushLimit(static_cast<int>(length));
    if (in.BytesUntilLimit() != static_cast<int>(length)) return false;  // longer than what it is in
    entry.Clear();
    if (!entry.MergeFromCodedStream(&in) || !in.ConsumedEntireMessage() || in.BytesUntilLimit() != 0)
      return false;
    in.PopLimit(limit);
    entries->push_back(take(entry));
    kept += kept_count(entries->back().attributes);
    if (kept > kKeptMax) return false;
  }
  return in.ConsumedEntireMessage() && in.CurrentPosition() == static_cast<int>(bytes.size());
}

uint64_t acl_bytes(const catalog::Acl& acl) {
  uint64_t bytes = 0;
  for (const catalog::AclEntry& each : acl) bytes += kAclEntryBytesMax + each.name.size();
  return bytes;
}
uint64_t kept_bytes(const catalog::Attributes& kept) {
  if (kept.empty()) return 0;
  uint64_t bytes = kAttributesBytesMax + kept.user.size() + kept.group.size() + acl_bytes(kept.acl) +
                   acl_bytes(kept.default_acl);
  for (const catalog::Xattr& each : kept.xattrs)
    bytes += kXattrBytesMax + each.name.size() + each.value.size();
  return bytes;
}

uint64_t digest_bytes(const digests::Values& expected) {
  uint64_t bytes = 0;
  for (const digests::Value& value : expected) bytes += kDigestBytesMax + value.hex.size() / 2;
  return bytes;
}

}  // namespace

size_t kept_count(const catalog::Attributes& attributes) {
  return attributes.xattrs.size() + attributes.acl.size() + attributes.default_acl.size();
}

uint64_t bytes_in_pack(const Entry& entry) {
  const uint64_t time_bytes = base::fits_64_bits(entry.mtime_ns) ? 0 : kFarTimeBytesMax;
  return kEntryBytesMax + time_bytes + entry.path.size() + entry.target.size() +
         kept_bytes(entry.attributes) + digest_bytes(entry.expected) + entry.size_bytes;
}

PackLayout layout_of(std::span<const Entry> entries) {
  PackLayout layout;
  for (const Entry& entry : entries) {
    layout.data_at += bytes_in_pack(entry) - entry.size_bytes;
    layout.size_bytes += bytes_in_pack(entry);
  }
  return layout;
}

void write_index(std::span<const Entry> entries, std::span<uint8_t> pack) {
  const PackLayout layout = layout_of(entries);
  peer::PackIndex index;
  for (const Entry& entry : entries) put(entry, index.add_entries());
  const size_t bytes = index.ByteSizeLong();
  CHECK(kPackHeadBytes + bytes <= layout.data_at && layout.size_bytes <= pack.size(),
        "an index is never longer than was thought");
  wire::store_be64(pack.data(), kMagic);
  wire::store_be64(pack.data() + 8, bytes);
  wire::store_be64(pack.data() + 16, layout.data_at);
  CHECK(index.SerializeToArray(pack.data() + kPackHeadBytes, static_cast<int>(bytes)), "there is room");
}

Result<Index> read_index(std::span<const uint8_t> pack) {
  if (pack.size() < kPackHeadBytes || wire::load_be64(pack.data()) != kMagic)
    return wrong("does not begin as one");
  const uint64_t index_bytes = wire::load_be64(pack.data() + 8);
  Index index{.entries = {}, .data_at = wire::load_be64(pack.data() + 16)};
  const uint64_t room = pack.size() - kPackHeadBytes;
  if (pack.size() > kPackBytesMax || index_bytes > room || index.data_at > pack.size() ||
      index.data_at < kPackHeadBytes + index_bytes)
    return wrong("has an index that reaches beyond it");
  if (!take_entries(pack.subspan(kPackHeadBytes, index_bytes), &index.entries))
    return wrong("has an index that cannot be read");
  uint64_t left = pack.size() - index.data_at;
  for (const Entry& entry : index.entries) {
    if (const Status status = check(entry); !status) return status.error();
    if (entry.size_bytes > left) return wrong("has an index that tells of more bytes than there are");
    left -= entry.size_bytes;
  }
  return index;
}

std::string to_bytes(std::span<const Entry> entries) {
  journal::PackList list;
  for (const Entry& entry : entries) {
    journal::PackMember* const member = list.add_members();
    put(entry, member->mutable_entry());
    member->set_ctime_ns(entry.ctime_ns);
  }
  return list.SerializeAsString();
}

Result<std::vector<Entry>> from_bytes(std::string_view bytes) {
  journal::PackList list;
  if (!list.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return Error{ErrorCode::kStorage, "the journal's list of a pack cannot be read"};
  std::vector<Entry> entries;
  for (const journal::PackMember& member : list.members()) {
    entries.push_back(take(member.entry()));
    entries.back().ctime_ns = member.ctime_ns();
    if (const Status status = check(entries.back()); !status) return status.error();
  }
  return entries;
}

}  // namespace sluice::tree
