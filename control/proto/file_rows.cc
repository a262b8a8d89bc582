// SPDX-License-Identifier: Apache-2.0
#include "control/proto/file_rows.h"

#include <memory>
#include <utility>

#include "control/proto/digest_fields.h"
#include "control/proto/fields.h"
#include "control/proto/journal.pb.h"
#include "control/proto/range_fields.h"
#include "dataplane/base/file_time.h"

namespace sluice::journal {
namespace {

void put_digested(const digests::Digested& from, FileRecord* to) {
  to->set_digests_wanted(from.wanted);
  peer::put_digests(from.expected, to->mutable_expected());
  for (const digests::Named& name : from.found) peer::put_named(name, to->add_digests());
}

digests::Digested digested_of(const FileRecord& from) {
  digests::Digested to{
      .wanted = from.digests_wanted(), .expected = peer::digests_of(from.expected()), .found = {}};
  for (const peer::NamedDigests& name : from.digests()) to.found.push_back(peer::named_of(name));
  return to;
}

}  // namespace

std::string encode(const catalog::File& file) {
  FileRecord to;
  to.set_state(static_cast<FileRecord::State>(file.state));
  to.set_name(file.name);
  to.set_shown(file.shown);
  to.set_path(file.path);
  to.set_size(file.size_bytes);
  to.set_mode(file.mode);
  base::put_file_time(file.mtime_ns, &to);
  to.set_device(file.identity.device);
  to.set_inode(file.identity.inode);
  to.set_generation(file.identity.generation);
  to.set_birth_ns(file.identity.birth_ns);
  to.set_ctime_ns(file.ctime_ns);
  to.set_digest(file.digest);
  to.set_overwrite(file.overwrite);
  to.set_peer_path(file.peer_path);
  to.set_suspect(file.suspect);
  to.set_verify(file.verify);
  // A version that knows no parts takes none for a whole file.
  to.set_kind(static_cast<uint32_t>(file.kind) + (selection::is_part(file.part) ? catalog::kFileKinds : 0));
  to.set_list_state(static_cast<uint32_t>(file.list));
  to.set_members(file.pack.members);
  if (file.pack.list) to.set_list(*file.pack.list);
  to.set_failed(file.missing.failed);
  to.set_left_out(file.missing.left_out);
  peer::set_failures(file.missing.names, &to);
  peer::set_ranges(to.mutable_holes(), file.holes);
  to.set_keep(file.keep.bits());
  catalog::put_attributes(file.attributes, &to);
  peer::put_part(file.part, &to);
  if (file.whole_digest) to.set_whole_digest(*file.whole_digest);
  put_digested(file.digests, &to);
  return to.SerializeAsString();
}

std::optional<catalog::File> decode_file(const std::string& bytes) {
  FileRecord from;
  if (!from.ParseFromString(bytes) || !FileRecord::State_IsValid(from.state())) return std::nullopt;
  const uint32_t kind = from.kind() - (from.has_part() ? catalog::kFileKinds : 0);
  if (kind >= catalog::kFileKinds || from.list_state() >= catalog::kListStates) return std::nullopt;
  catalog::Pack pack{.members = from.members(), .list = nullptr};
  catalog::Shortfall missing{
      .failed = from.failed(), .left_out = from.left_out(), .names = peer::failures_of(from)};
  if (!from.list().empty()) pack.list = std::make_shared<const std::string>(from.list());
  return catalog::File{.name = from.name(),
                       .shown = from.shown(),
                       .path = from.path(),
                       .peer_path = from.peer_path(),
                       .size_bytes = from.size(),
                       .mode = from.mode(),
                       .mtime_ns = base::file_time_of(from),
                       .ctime_ns = from.ctime_ns(),
                       .identity = {.device = from.device(),
                                    .inode = from.inode(),
                                    .generation = from.generation(),
                                    .birth_ns = from.birth_ns()},
                       .digest = from.digest(),
                       .state = static_cast<catalog::FileState>(from.state()),
                       .overwrite = from.overwrite(),
                       .suspect = from.suspect(),
                       .verify = from.verify(),
                       .kind = static_cast<catalog::FileKind>(kind),
                       .list = static_cast<catalog::ListState>(from.list_state()),
                       .pack = std::move(pack),
                       .missing = std::move(missing),
                       .holes = peer::ranges_of(from.holes()),
                       .keep = selection::Keep::of(from.keep()),
                       .attributes = catalog::attributes_of(from),
                       .part = peer::part_of(from),
                       .whole_digest = peer::whole_digest_of(from),
                       .digests = digested_of(from)};
}

}  // namespace sluice::journal
