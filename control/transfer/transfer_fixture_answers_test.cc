// What the board, files, workers and the journal of a test make of what a transfer asks of them
// (transfer_fixture.h).
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>

#include "control/transfer/transfer_fixture.h"

namespace sluice::transfer::test {
namespace {}  // namespace

std::optional<Event> World::answer_of_board(const Effect& effect, const Status& status) {
  if (const auto* claim = std::get_if<ClaimFlows>(&effect)) {
    line(claim->leg).claim = *claim;
  } else if (const auto* dropped = std::get_if<DropClaim>(&effect)) {
    if (std::exchange(line(dropped->leg).claim, std::nullopt)) return FlowsClaimed{.leg = dropped->leg};
  } else if (const auto* wish = std::get_if<ReserveFlows>(&effect)) {
    FlowsReserved reserved{.leg = wish->leg, .status = status, .session = SessionSlotId(3)};
    for (uint32_t i = 0; status && i < wish->lanes; ++i) {
      line(wish->leg).slots.push_back(std::make_unique<board::FlowSlot>());
      reserved.grants.push_back({.slot = FlowSlotId(16 * wish->leg.value() + i),
                                 .local_port = static_cast<uint16_t>(47000 + i),
                                 .random = 99});
    }
    return reserved;
  } else if (const auto* buffers = std::get_if<ReserveBuffers>(&effect)) {
    return BuffersReserved{.leg = buffers->leg,
                           .status = status,
                           .credit_extents = std::vector<uint32_t>(line(buffers->leg).slots.size(), 4)};
  } else if (const auto* shrink = std::get_if<ShrinkLanes>(&effect)) {
    auto& slots = line(shrink->leg).slots;
    slots.resize(std::min<size_t>(slots.size(), shrink->lanes));
  } else if (const auto* flow = std::get_if<OpenFlow>(&effect)) {
    const uint64_t refusal = status ? 0 : EINVAL;
    return flow_event(board::EventKind::kFlowOpened, {flow->leg, flow->lane}, {.value = refusal});
  } else if (const auto* close = std::get_if<CloseFlow>(&effect)) {
    return flow_event(board::EventKind::kFlowClosed, {close->leg, close->lane});
  } else if (const auto* ask = std::get_if<AskPlace>(&effect)) {
    ticket = ask->ticket;
    priority_asked = ask->priority;
    return PlaceTold{.ticket = ask->ticket, .place = place, .places = place};
  } else if (const auto* drain = std::get_if<DrainEvents>(&effect)) {
    return EventsDrained{drain->leg};
  } else if (const auto* given = std::get_if<ReleaseFlows>(&effect)) {
    line(given->leg).slots.clear();
    // The objects are closed with the slot: no flow may be left that would look for them.
    for (const Line& each : lines_) EXPECT_TRUE(given->keep_objects || each.slots.empty());
    return FlowsReleased{given->leg};
  } else if (const auto* open = std::get_if<OpenObject>(&effect)) {
    if (status) in_memory_.insert(open->object);
    summed_[open->object] = open->sums & dataplane_sums;
    return ObjectOpened{.object = open->object, .status = status};
  } else if (const auto* shut = std::get_if<CloseObject>(&effect)) {
    return ObjectClosed{shut->object};
  } else if (const auto* fetch = std::get_if<FetchObject>(&effect)) {
    if (fetched_found) in_memory_.insert(fetch->object);
    return ObjectFetched{.object = fetch->object, .found = fetched_found};
  }
  return std::nullopt;
}

std::optional<Event> World::answer_of_files(const Effect& effect, const Status& status) {
  const auto or_error = [&](auto value) {
    return status ? Result<decltype(value)>(std::move(value)) : Result<decltype(value)>(status.error());
  };
  if (const auto* sources = std::get_if<OpenSources>(&effect))
    return SourcesOpened{.files = or_error(first_files()), .of_leg = sources->of_leg};
  if (const auto* more = std::get_if<ReadList>(&effect)) {
    if (!status) listed_.reset();
    return status ? read_list(*more) : ListRead{.tag = more->tag, .files = status.error()};
  }
  if (std::holds_alternative<ReopenSources>(effect)) {
    SourcesReopened reopened;
    if (!status) reopened.failed.emplace_back(ObjectId(0), status.error());
    return reopened;
  }
  if (const auto* check = std::get_if<CheckSource>(&effect)) {
    return SourceChecked{.object = check->object,
                         .status = status,
                         .otherwise = check->otherwise,
                         .ctime_ns = source_ctime_ns,
                         .names = check->otherwise ? changed_names : std::vector<catalog::FailedName>()};
  }
  if (const auto* read = std::get_if<ReadExtents>(&effect)) {
    std::vector<uint64_t> crcs;
    for (const recovery::Range& range : read->ranges)
      crcs.push_back(read_back(read->object, range) ^ source_change);
    return ExtentsRead{.object = read->object, .first = read->first, .crcs = or_error(std::move(crcs))};
  }
  if (const auto* create = std::get_if<CreateFiles>(&effect)) {
    std::vector<catalog::File> files = create->files;
    uint64_t inode = 100 + (transfer_->job().has_end() ? transfer_->job().catalog()->file_count() : 0);
    for (catalog::File& file : files) {
      file.path = file.shown = create->destination + file.name;
      file.identity.inode = inode++;
    }
    return FilesCreated{or_error(std::move(files))};
  }
  if (std::holds_alternative<RecoverFiles>(effect)) {
    FilesRecovered found;
    for (const catalog::File& file : transfer_->job().catalog()->files()) {
      const bool done = file.state == catalog::FileState::kDone;
      const Recovered open = file.packed() ? Recovered::kAway : recovered;
      found.objects.push_back(!done ? open : names_gone ? Recovered::kAway : Recovered::kNamed);
    }
    return found;
  }
  if (const auto* reopen = std::get_if<ReopenFile>(&effect)) {
    const bool found = is_pack(reopen->object) ? in_memory_.contains(reopen->object) : reopened_found;
    return FileReopened{.object = reopen->object, .found = or_error(bool{found})};
  }
  if (const auto* recreate = std::get_if<RecreateFile>(&effect)) {
    in_memory_.erase(recreate->object);
    return FileRecreated{.object = recreate->object, .identity = or_error(catalog::FileIdentity{1, 900})};
  }
  if (const auto* sync = std::get_if<SyncObject>(&effect)) return ObjectSynced{sync->object, status};
  if (const auto* finish = std::get_if<FinishObject>(&effect)) {
    EXPECT_TRUE(!is_pack(finish->object) || in_memory_.contains(finish->object)) << "nothing is left of it";
    return ObjectFinished{finish->object, status};
  }
  if (const auto* back = std::get_if<ReadBackObject>(&effect)) {
    ObjectReadBack read{
        .object = back->object, .range = back->range, .crc = or_error(read_back(back->object, back->range))};
    if (back->range.end() == content.sizes[back->object.value()])
      for (const digests::Kind kind : digests::kinds_of(back->digests))
        read.digests.push_back({.kind = kind, .hex = std::string(digests::hex_digits_of(kind), 'a')});
    if (back->digests != 0) read.took_ns = 5;
    if (back->sums != 0)
      for (const sums::Subtree& subtree : sums::subtrees_of(back->shape, back->range))
        read.sums.push_back({.subtree = subtree});
    return read;
  }
  if (const auto* name = std::get_if<NameObject>(&effect)) {
    const bool lacks = status && scene.packs && name->object == ObjectId(0);
    if (status) in_memory_.erase(name->object);
    return ObjectNamed{.object = name->object,
                       .status = status,
                       .given = static_cast<bool>(status),
                       .away = !status && unfinished_away,
                       .missing = lacks ? peer.missing : catalog::Shortfall(),
                       .identity = status ? stands_there : std::nullopt,
                       .failure = status ? catalog::Failure::kNone : why};
  }
  if (const auto* drop = std::get_if<DropFile>(&effect)) {
    in_memory_.erase(drop->object);
    return FileDropped{drop->object, status};
  }
  if (const auto* release = std::get_if<ReleaseFiles>(&effect)) {
    in_memory_.clear();
    listed_.reset();
    return FilesReleased{.left = release->keep ? 0 : files_stay};
  }
  return std::nullopt;
}

uint64_t World::read_back(ObjectId object, recovery::Range range) const {
  const recovery::ExtentMap map(content.layout(object));
  uint64_t crc = 0;
  for (uint64_t at = range.offset; at < range.end();) {
    const ExtentId extent = map.extent_at(at);
    const uint64_t bytes = map.range_of(extent).length;
    const uint64_t its_crc = Content::crc(object, extent) ^ (damaged.contains({object, extent}) ? 1 : 0);
    crc = crc::shift(content.layout(object).crc_kind, crc, bytes) ^ its_crc;
    at += bytes;
  }
  return crc;
}

// ---- data --------------------------------------------------------------------------------------

FlowEvent World::flow_event(board::EventKind kind, FlowRef flow, const board::Event& about) {
  FlowEvent event{.leg = flow.leg, .lane = flow.lane, .event = about};
  event.event.kind = kind;
  return event;
}

// What a worker makes of a command.
void World::work(const recovery::LaneCommand& command) {
  const auto tell = [&](board::EventKind kind, recovery::Range range, uint64_t digest = 0) {
    events_.push_back(flow_event(kind, command.flow,
                                 {.object = command.object.value(),
                                  .tag = command.tag,
                                  .offset = range.offset,
                                  .length = range.length,
                                  .digest = digest}));
  };
  const recovery::ExtentMap map(content.layout(command.object));
  if (command.kind == board::CommandKind::kPartition && data) {
    for (uint64_t at = command.range.offset; at < command.range.end(); at += kExtent) {
      const ExtentId extent = map.extent_at(at);
      tell(board::EventKind::kExtentSent, map.range_of(extent), Content::crc(command.object, extent));
    }
    tell(board::EventKind::kPartitionSent, command.range);
  }
  if (!workers_answer) return;
  if (command.kind == board::CommandKind::kQueryWork) tell(board::EventKind::kWorkEnd, {});
  if (command.kind == board::CommandKind::kGiveUp) tell(board::EventKind::kGivenUp, {});
  if (command.kind != board::CommandKind::kQueryMissing &&
      command.kind != board::CommandKind::kQueryUnwritten) {
    return;
  }
  // Nothing of it has come.
  if (command.range.length != 0) tell(board::EventKind::kMissing, command.range);
  tell(board::EventKind::kMissingEnd, {});
}

// What the peer sends comes at once, and is written.
void World::arrive() {
  const std::vector<HonestPeer::Wanted> wanted = peer.take_wanted();
  const bool asked = peer.take_asked();
  if (scene.role != Role::kDestination || (wanted.empty() && !asked)) return;
  LegId leg;  // by which it comes
  while (leg.value() + 1 < lines_.size() && !lines_[leg.value()].stream) ++leg;
  for (const auto& [object, range] : wanted) {
    const recovery::ExtentMap map(content.layout(object));
    for (uint64_t at = range.offset; at < range.end(); at += kExtent) {
      const ExtentId extent = map.extent_at(at);
      damaged.erase({object, extent});
      events_.push_back(flow_event(board::EventKind::kExtentWritten, {.leg = leg, .lane = {}},
                                   {.object = object.value(),
                                    .tag = summed_[object],
                                    .offset = map.range_of(extent).offset,
                                    .length = map.range_of(extent).length,
                                    .digest = Content::crc(object, extent)}));
    }
  }
  say(peer.all_was_sent(), leg);
}

std::vector<catalog::File> World::first_files() {
  std::vector<catalog::File> files = source_files();
  if (scene.grows == 0) return files;
  files.resize(scene.grows);
  files.back().list = catalog::ListState::kGrowing;
  listed_ = scene.grows;
  return files;
}

// A control that has not read of it knows from its catalog what it has.
ListRead World::read_list(const ReadList& effect) {
  const std::vector<catalog::File> files = source_files();
  if (!listed_) listed_ = transfer_->job().catalog()->file_count();
  ListRead read{.tag = effect.tag, .files = std::vector<catalog::File>()};
  if (*listed_ < files.size()) read.files->push_back(files[(*listed_)++]);
  read.ended = *listed_ == files.size() && (!scene.bare_end || read.files->empty());
  return read;
}

std::vector<catalog::File> World::source_files() const {
  std::vector<catalog::File> files;
  for (size_t i = 0; i < scene.sizes.size(); ++i) {
    const std::string name = "f" + std::to_string(i);
    files.push_back({.name = name,
                     .shown = "/from/" + name,
                     .path = "/from/" + name,
                     .size_bytes = scene.sizes[i],
                     .ctime_ns = files_ctime_ns,
                     .identity = {.device = 1, .inode = i + 1},
                     .suspect = scene.suspect});
    if (!scene.packs || kind_in_tree(i, scene.sizes.size()) == catalog::FileKind::kFile) continue;
    files.back().name.clear();
    files.back().suspect = false;
    files.back().kind = kind_in_tree(i, scene.sizes.size());
    files.back().pack.members = kMembers;
  }
  return files;
}

// ---- the journal -------------------------------------------------------------------------------

void World::write(const Batch& batch) {
  if (batch.record) {
    std::optional<Request> request = std::move(journal.record.request);
    journal.record = *batch.record;
    if (!journal.record.request) journal.record.request = std::move(request);
  }
  if (batch.record) journal_empty = false;
  if (batch.drop_blocks) journal.blocks.clear();
  if (batch.drop_files) journal.files.clear();
  for (const FileRow& row : batch.files) {
    if (journal.files.size() <= row.file.value()) journal.files.resize(row.file.value() + 1);
    journal.files[row.file.value()] = row.record;
  }
  const auto blocks_of = [&](ObjectId object) -> std::vector<recovery::Block>& {
    if (!journal.blocks.contains(object)) journal.blocks.resize(object.value() + 1);
    return journal.blocks[object];
  };
  for (const ObjectId object : batch.restart) blocks_of(object).clear();
  for (const BlockRows& rows : batch.blocks) {
    std::vector<recovery::Block>& known = blocks_of(rows.object);
    for (const recovery::Block& block : rows.blocks) {
      std::erase_if(known, [&](const recovery::Block& other) { return other.id == block.id; });
      known.push_back(block);
    }
  }
}

}  // namespace sluice::transfer::test
