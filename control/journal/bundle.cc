// SPDX-License-Identifier: Apache-2.0
#include "control/journal/bundle.h"

#include <fmt/format.h>

#include <algorithm>

#include "control/journal/codec.h"
#include "control/proto/journal.pb.h"
#include "control/proto/lease_fields.h"
#include "dataplane/base/text.h"

namespace sluice::journal {
namespace {

constexpr uint32_t kBundleVersion = 1;
constexpr std::string_view kMemory = "memory:";

Error no_bundle(std::string_view what) {
  return {ErrorCode::kUsage,
          fmt::format("this is no session that was exported ({}): give the file that 'sluice session export' "
                      "wrote, with one version on both nodes",
                      what)};
}

// It has begun here, has one peer, and is neither somebody else's nor a user's: so an export made it.
bool can_go_on(const transfer::Saved& saved) {
  const transfer::Record& record = saved.record;
  return record.id.size() == 32 && record.initiator && record.role != transfer::Role::kUnknown &&
         record.request && !record.request->user && !record.request->local_files && !record.granted &&
         !record.ordered && record.legs.size() == 1 && record.legs.front().agreement &&
         record.legs.front().flows.empty() && record.state == transfer::RecordState::kPaused &&
         !saved.files.empty() && saved.files.size() <= catalog::kFilesMax &&
         (!record.lease || transfer::check_lease(*record.lease));
}

bool beneath(const std::string& path, const std::string& root) {
  return path == root || path.starts_with(root == "/" ? root : root + "/");
}

// Nothing: it lies in none of `from`.
Result<std::string> placed(const std::string& path, const std::vector<ExportPlace>& from,
                           const std::vector<ExportPlace>& to) {
  if (!path.starts_with('/')) {  // EXPORT/PATH
    const std::string name = path.substr(0, path.find('/'));
    if (std::ranges::find(to, name, &ExportPlace::name) != to.end()) return path;
  }
  const ExportPlace* inner = nullptr;
  for (const ExportPlace& each : from) {
    if (beneath(path, each.path) && (inner == nullptr || each.path.size() > inner->path.size()))
      inner = &each;
  }
  if (inner == nullptr)
    return Error{ErrorCode::kOutsideExports,
                 fmt::format("{}: lies in no export of the node that the session was at: it cannot move",
                             base::printable(path))};
  const auto here = std::ranges::find(to, inner->name, &ExportPlace::name);
  if (here == to.end())
    return Error{
        ErrorCode::kOutsideExports,
        fmt::format("{}: lies in export {} of the node that the session was at, and this node has no such "
                    "export: add it to node.toml, over the same storage",
                    base::printable(path), base::printable(inner->name))};
  const std::string rest = path.substr(inner->path == "/" ? 0 : inner->path.size());
  return (here->path == "/" && rest.starts_with('/') ? "" : here->path) + rest;
}

}  // namespace

std::string encode(const MovedSession& bundle) {
  Bundle to;
  to.set_version(kBundleVersion);
  peer::put_move(bundle.move, to.mutable_move());
  to.set_content(bundle.content);
  return to.SerializeAsString();
}

Result<MovedSession> decode_bundle(const std::string& bytes) {
  if (bytes.size() > kBundleBytesMax) return no_bundle("it is too long");
  Bundle from;
  if (!from.ParseFromString(bytes) || from.version() == 0 || !from.has_move()) return no_bundle("its bytes");
  if (from.version() != kBundleVersion)
    return no_bundle(fmt::format("of version {}, and this node reads {}", from.version(), kBundleVersion));
  return MovedSession{.move = peer::move_of(from.move()), .content = from.content()};
}

std::string encode(const MovedRows& rows) {
  BundleContent to;
  to.set_record(encode(rows.saved.record));
  to.set_request(encode(*rows.saved.record.request));
  for (const catalog::File& file : rows.saved.files) to.add_files(encode(file));
  for (const ExportPlace& place : rows.exports) {
    BundleExport* const one = to.add_exports();
    one->set_name(place.name);
    one->set_path(place.path);
  }
  for (ObjectId object; object < rows.saved.blocks.end_id(); ++object) {
    const std::vector<recovery::Block>& blocks = rows.saved.blocks[object];
    if (blocks.empty()) continue;
    BundleBlocks* const one = to.add_blocks();
    one->set_object(object.value());
    for (const recovery::Block& block : blocks) {
      one->add_ids(block.id.value());
      one->add_contents(block.bytes);
    }
  }
  return to.SerializeAsString();
}

Result<MovedRows> decode_rows(const std::string& bytes) {
  BundleContent from;
  if (!from.ParseFromString(bytes)) return no_bundle("its content");
  std::optional<transfer::Record> record = decode_record(from.record(), from.request());
  if (!record) return no_bundle("its record");
  MovedRows rows{.saved = {.record = std::move(*record)}};
  if (from.files_size() > static_cast<int>(catalog::kFilesMax)) return no_bundle("its files");
  for (const std::string& file : from.files()) {
    std::optional<catalog::File> one = decode_file(file);
    if (!one) return no_bundle("a file");
    rows.saved.files.push_back(std::move(*one));
  }
  rows.saved.blocks.resize(rows.saved.files.size());
  for (const BundleBlocks& each : from.blocks()) {
    if (each.object() >= rows.saved.files.size() || each.ids_size() != each.contents_size())
      return no_bundle("its blocks");
    for (int i = 0; i < each.ids_size(); ++i) {
      rows.saved.blocks[ObjectId(each.object())].push_back(
          {.id = recovery::BlockId(each.ids(i)), .bytes = each.contents(i)});
    }
  }
  for (const BundleExport& place : from.exports()) {
    if (!place.path().starts_with('/')) return no_bundle("its exports");
    rows.exports.push_back({.name = place.name(), .path = place.path()});
  }
  if (!can_go_on(rows.saved)) return no_bundle("it says of no session that could go on");
  return rows;
}

void make_portable(transfer::Saved* saved) {
  transfer::Record& record = saved->record;
  record.state = transfer::RecordState::kPaused;
  record.error.reset();
  record.moved.reset();
  record.files_left = false;
  for (transfer::LegRecord& leg : record.legs) {
    leg.flows.clear();
    leg.board_generation = 0;
    leg.board_session = SessionSlotId();
    leg.peer_unaware = false;
  }
  // What a source has read it reads again, where it is asked for the CRC.
  if (record.role == transfer::Role::kSource)
    for (std::vector<recovery::Block>& blocks : saved->blocks) blocks.clear();
}

Status place(transfer::Saved* saved, const std::vector<ExportPlace>& from,
             const std::vector<ExportPlace>& to) {
  transfer::Request& request = *saved->record.request;
  const auto put = [&](std::string& path) -> Status {
    Result<std::string> here = placed(path, from, to);
    if (!here) return here.error();
    path = std::move(*here);
    return {};
  };
  if (saved->record.role == transfer::Role::kSource) {
    for (std::string& path : request.source_paths) {
      if (path.starts_with(kMemory)) continue;
      if (const Status status = put(path); !status) return status;
    }
  } else if (!request.discards()) {
    if (const Status status = put(request.destination); !status) return status;
  }
  for (catalog::File& file : saved->files) {
    if (file.path.empty()) continue;
    const std::string shown_before = base::printable(file.path);
    if (const Status status = put(file.path); !status) return status;
    if (file.shown == shown_before) file.shown = base::printable(file.path);
  }
  return {};
}

}  // namespace sluice::journal
