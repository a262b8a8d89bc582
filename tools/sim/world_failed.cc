// Files that fail by themselves.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "tools/sim/oracle.h"
#include "tools/sim/world.h"

namespace sluice::sim {

// A source that was restarted reads again what it has no CRC of. What it cannot read any more it cannot
// confirm, and it says so, though the destination has stored it.
bool World::unconfirmed() const {
  const FileSystem& there = hosts_[kDestination]->files;
  const End end = end_of(kSource);
  return (end == End::kFailed || end == End::kIntegrity) &&
         std::any_of(plan_.troubles.begin(), plan_.troubles.end(), [&](const Trouble& t) {
           return t.trouble == FileTrouble::kUnreadable && there.find(Oracle::final_name(t.object)) != 0;
         });
}

// What is in memory has no disk, and is given its names whatever stands there.
void World::trouble(const Trouble& t) {
  const bool packed = kind_of(plan_, t.object) != catalog::FileKind::kFile;
  if (healed_ || (packed && t.trouble != FileTrouble::kChanges)) return;
  trace_.add(scheduler_.now_ns(), kSource, trouble_name(t.trouble), t.object);
  oracle_.allow_failures();
  FileSystem& here = hosts_[kSource]->files;
  FileSystem& there = hosts_[kDestination]->files;
  const std::string name = Oracle::final_name(t.object);
  switch (t.trouble) {
    case FileTrouble::kChanges: {
      oracle_.source_changed(t.object);
      oracle_.allow(End::kIntegrity);  // it may be done already
      FileSystem::Inode* const inode = here.inode(here.find(name));
      inode->now = oracle_.content(t.object, 1);
      here.set_durable(inode->number);
      ++inode->version;
      return;
    }
    case FileTrouble::kUnreadable:
      unreadable_[here.find(name)] = EIO;
      hosts_[kSource]->disk.bad_file = [this](uint64_t inode) {
        return unreadable_.contains(inode) ? unreadable_[inode] : 0;
      };
      return;
    case FileTrouble::kTaken: {
      const uint64_t number = there.create(name);
      if (number == 0) return;
      there.resize(number, 7);
      there.set_durable(number);
      there.sync_directory();
      oracle_.taken(t.object, number);
      return;
    }
    case FileTrouble::kUnwritable:
      unwritable_[t.object] = t.error;
      hosts_[kDestination]->disk.bad_file = [this](uint64_t inode) {
        const std::optional<uint32_t> object = oracle_.object_of(inode);
        return object && unwritable_.contains(*object) ? unwritable_[*object] : 0;
      };
      return;
  }
}

// Who asks after the end is told without a session that could be overheard. What a destination does not know
// any more, its source still knows.
void World::tell_what_has_failed() {
  const bool forgot = called_forgot_ && plan_.initiator == kSource;
  const auto& sessions = hosts_[forgot ? kSource : kDestination]->journal.sessions();
  const auto saved = sessions.find(asked_id());
  if (saved == sessions.end()) return;
  for (uint32_t i = 0; i < saved->second.files.size(); ++i) {
    if (saved->second.files[i].failed()) oracle_.reported_failed(i);
  }
}

// Both nodes tell their operators of the same files that they have failed.
void World::check_failed() {
  const auto files_at = [this](uint32_t node) {
    return hosts_[node]->journal.sessions().at(asked_id()).files;
  };
  const std::vector<catalog::File> here = files_at(kSource);
  const std::vector<catalog::File> there = files_at(kDestination);
  for (uint32_t i = 0; i < here.size() && i < there.size(); ++i) {
    const uint64_t number = hosts_[kDestination]->files.find(Oracle::final_name(i));
    const bool stands = number != 0 && !oracle_.is_taken(i, number);
    if (stands && oracle_.given_and_forgotten(i, hosts_[kDestination]->files)) continue;
    if (here[i].failed() == there[i].failed() && there[i].failed() != stands) continue;
    return oracle_.fail(fmt::format("file {} has failed: {} at the source, {} at the destination, and {}", i,
                                    here[i].failed(), there[i].failed(),
                                    stands ? "stands there" : "is away"));
  }
}

}  // namespace sluice::sim
