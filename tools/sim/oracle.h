// The judge: knows what the source holds and what was promised, and compares. Shares no code with what it
// judges but this folder's file system.
//
// Pure. The first thing that is wrong is kept, as a sentence. Frames are read by the tables of docs/WIRE.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tools/sim/file_system.h"
#include "tools/sim/owners.h"
#include "tools/sim/plan.h"

namespace sluice::sim {

// How a session ends.
enum class End : uint8_t { kNone, kDone, kIntegrity, kCancelled, kFailed };
const char* end_name(End end);

class Oracle {
 public:
  explicit Oracle(const Plan& plan);

  void fail(const std::string& what) {
    if (failure_.empty()) failure_ = what;
  }
  const std::string& failure() const { return failure_; }

  // The source's files: as they were, as they are after a change, and as a liar among several sources has
  // them.
  const std::vector<uint8_t>& content(uint32_t object, uint32_t version) const {
    return version == 0 ? content_[object] : version == 1 ? changed_[object] : others_[object];
  }
  void source_changed(uint32_t object) { changed_now_.insert(object); }
  void misread() { misread_ = true; }

  // An end other than done is right only after a fault that causes it.
  void allow(End end) { allowed_.insert(end); }
  bool may_end(End end) const { return allowed_.contains(end); }
  void ended(End end);

  // An operator of this node was told that the session is paused, or asked to continue it.
  void paused(uint32_t node, const std::string& session, bool yes) {
    yes ? void(paused_[node].insert(session)) : void(paused_[node].erase(session));
  }
  // An operator of this node was told that the session is cancelled: nothing of it is moved there from then
  // on. The same may be asked for once more, as another session.
  void cancelled(uint32_t node, const std::string& session) { cancelled_[node].insert(session); }
  // It has lost its journal: nobody can hold it to what it was told.
  void forgot(uint32_t node) {
    paused_[node].clear();
    cancelled_[node].clear();
    destination_forgot_ |= node == kDestination;
  }
  // Flows are opened at this node, or gone on with.
  void moves(uint32_t node, const std::string& session) {
    if (paused_[node].contains(session)) fail("a pause that was acknowledged is forgotten");
    if (cancelled_[node].contains(session)) fail("a cancel that was acknowledged is forgotten");
  }
  // Of what may write at the destination where more than two nodes take part (owners.h).
  Owners& owners() { return owners_; }

  // The destination's disk and journal.
  void bind(uint64_t inode, uint32_t object, const std::string& session) {
    objects_[inode] = object;
    owners_.bind(inode, session);
    const auto nameless = nameless_.find(object);
    if (nameless != nameless_.end() && nameless->second != inode) nameless_.erase(nameless);
  }
  // Somebody took the name from this unfinished file. Who has it open writes on, and the power takes it.
  void name_removed(uint32_t object, uint64_t inode) { nameless_[object] = inode; }
  void written(uint64_t inode, uint64_t offset, const uint8_t* data, uint64_t length);
  void reported_durable(uint32_t object, uint64_t offset, uint64_t length);
  void reported_done(uint32_t object) {
    done_.insert(object);
    if (failed_.contains(object)) fail("a file is called done after it had failed");
  }
  // Nothing of it has a name, or will.
  void reported_failed(uint32_t object);
  // Its unfinished file is removed, although the transfer goes on.
  void dropped(uint32_t object);
  // This inode stands under the object's name at the destination, and is none of this session's.
  void taken(uint32_t object, uint64_t inode) {
    taken_[object] = inode;
    allow_failures();
  }
  bool is_taken(uint32_t object, uint64_t inode) const {
    const auto at = taken_.find(object);
    return at != taken_.end() && at->second == inode;
  }
  std::optional<uint32_t> object_of(uint64_t inode) const {
    const auto at = objects_.find(inode);
    return at == objects_.end() ? std::nullopt : std::optional(at->second);
  }
  // A fault for which single files may fail.
  void allow_failures() { may_fail_ = true; }
  // The transfer has ended without success: its unfinished files go.
  void given_up() {
    std::erase_if(durable_, [this](const auto& each) { return !done_.contains(each.first); });
  }
  // The destination's volume went back in time: what was promised of it is void. A transfer may end for that
  // only if files are gone that had their names.
  void volume_went_back(bool names_are_gone) {
    durable_.clear();
    done_.clear();
    written_.clear();
    failed_.clear();
    allow_failures();
    if (names_are_gone) allow(End::kIntegrity);
  }
  // It got its name, right, before the destination lost its journal, and may have failed after that.
  bool given_and_forgotten(uint32_t object, FileSystem& files) const;
  bool was_reported_done(uint32_t object) const { return done_.contains(object); }
  // Written and not reported durable: what a crash of this moment makes the source send again, at most.
  uint64_t undurable_bytes() const;
  // After a loss of power, before anything runs again.
  void power_lost(FileSystem& files);
  // A destination control has started: this range is what it still knows to be durable.
  void begin_restored() { restored_.clear(); }
  void restored(uint32_t object, uint64_t offset, uint64_t length);
  void end_restored();

  // A data frame is handed to the source's device at this time; then, the frame as it leaves.
  void frame_built(uint32_t node, uint64_t now_ns, uint64_t frame_bytes);
  // A lane's pacer begins anew, or goes on with another share of the rate.
  void share_changed(uint32_t node) { pace_[node].level -= std::min(pace_[node].level, lane_burst()); }
  void frame_leaves(uint32_t node, std::span<const uint8_t> frame);
  // At the end of a run that is done.
  void check_files(FileSystem& files);

  uint64_t payload_bytes_sent() const { return payload_bytes_sent_; }
  // What a leg may have begun when another one brings it as well.
  uint64_t window_bytes() const { return uint64_t{plan_.lanes} * (plan_.credit + 1) * plan_.extent_bytes; }
  uint64_t payload_bytes_of(uint32_t node) const { return sent_by_[node]; }
  uint64_t bytes_written() const { return bytes_written_; }
  // Of a replica whole, and never of two: where sources have different files. A list says of which.
  bool mixed(uint32_t object, const std::vector<uint8_t>& now) const {
    if (plan_.several.listed && kind_of(plan_, object) == catalog::FileKind::kFile)
      return now != content_[object];
    const bool other = plan_.several.lie == Lie::kOtherFiles && now == others_[object];
    const bool changed = changed_now_.contains(object) && now == changed_[object];
    return now != content_[object] && !other && !changed;
  }
  static std::string final_name(uint32_t object) { return "file" + std::to_string(object); }
  static std::string temporary_name(uint32_t object) { return "." + final_name(object) + ".part"; }

 private:
  uint64_t lane_burst() const;
  bool same(uint32_t object, uint64_t offset, const uint8_t* data, uint64_t length) const;
  void add_sectors(std::vector<uint8_t>* sectors, uint32_t object, uint64_t offset, uint64_t length) const;

  const Plan& plan_;
  std::string failure_;
  std::vector<std::vector<uint8_t>> content_;
  std::vector<std::vector<uint8_t>> changed_;
  std::vector<std::vector<uint8_t>> others_;
  std::set<uint32_t> changed_now_;
  std::map<uint32_t, uint64_t> nameless_;  // inodes of unfinished files whose names were removed
  std::map<uint32_t, uint64_t> taken_;     // object -> inode
  bool misread_ = false;
  bool destination_forgot_ = false;  // it has lost its journal
  std::set<End> allowed_;
  std::array<std::set<std::string>, kNodesMax> paused_;
  std::array<std::set<std::string>, kNodesMax> cancelled_;
  Owners owners_;
  std::map<uint64_t, uint32_t> objects_;              // inode at the destination -> object
  std::map<uint32_t, std::vector<uint8_t>> durable_;  // reported, by 512 bytes
  std::map<uint32_t, std::vector<uint8_t>> restored_;
  std::map<uint32_t, std::vector<uint8_t>> written_;  // since the last loss of power
  std::set<uint32_t> done_;
  std::set<uint32_t> failed_;
  bool may_fail_ = false;
  struct Pace {
    uint64_t paced_ns = 0;
    uint64_t level = 0;  // of the bucket, in bits times 1e9
  };
  std::array<Pace, kNodesMax> pace_;
  uint64_t payload_bytes_sent_ = 0;
  std::array<uint64_t, kNodesMax> sent_by_{};
  uint64_t bytes_written_ = 0;
};

}  // namespace sluice::sim
