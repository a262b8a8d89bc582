// What befalls a session in which more than two nodes take part, and how such a world is judged.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "tools/sim/world.h"

namespace sluice::sim {
namespace {

constexpr uint64_t kForGoodNs = 1'000'000'000'000'000;
constexpr int64_t kLateNs = 400'000'000'000;       // a grant is to be used within 300 s, and 60 s more
constexpr uint64_t kHoldsStillNs = 3'000'000'000;  // by then each call has been tried again

}  // namespace

// ---- the beginning -------------------------------------------------------------------------------

void World::begin_course() {
  askers_.push_back({.node = plan_.initiator});
  if (plan_.course == Course::kRivals) {
    const std::string name = "the work that is shared";
    askers_.front().lease = transfer::Lease{.name = name, .epoch = plan_.rivals.epochs[0]};
    askers_.push_back({.node = kRival,
                       .from_ns = plan_.rivals.second_ns,
                       .lease = transfer::Lease{.name = name, .epoch = plan_.rivals.epochs[1]}});
    for (const End end : {End::kFailed, End::kCancelled}) oracle_.allow(end);
  }
  // A file that sources have otherwise fails alone, where there are others, and one of which a witness lies.
  if (plan_.course == Course::kSources && plan_.several.lie != Lie::kNone) {
    oracle_.allow(End::kIntegrity);
    oracle_.allow_failures();
  }
  if (plan_.course != Course::kGrant) return;
  const int64_t unix_ns = hosts_.front()->unix_ns();
  papers_ = make_papers(fmt::format("{:032x}", (plan_.seed << 8) + 1), "files/", unix_ns);
  for (const auto& host : hosts_) host->papers = &papers_;
  oracle_.owners().granted(papers_.grant.id, {.holder = kSource,
                                              .start_by_unix_ns = papers_.grant.start_by_unix_ns,
                                              .end_by_unix_ns = papers_.grant.end_by_unix_ns});
  switch (plan_.grant.what) {
    case GrantCase::kHonest:
      break;
    case GrantCase::kLate:
      clocks_jump(kLateNs);
      break;
    case GrantCase::kStolen:
      askers_.push_back({.node = kThief, .from_ns = plan_.grant.at_ns, .once = true});
      [[fallthrough]];
    case GrantCase::kEnds:
    case GrantCase::kReplayed:
    case GrantCase::kForgotten:
      for (const End end : {End::kFailed, End::kCancelled}) oracle_.allow(end);
      break;
  }
}

void World::schedule_course() {
  const SourcesPlan& several = plan_.several;
  if (several.changes_ns != 0)
    scheduler_.at(started_ns_ + several.changes_ns, [this] { change_source(plan_.several.changes); });
  if (several.dies_ns != 0)
    scheduler_.at(started_ns_ + several.dies_ns, [this] { leave_for_good(plan_.several.dies); });
  if (several.slows_ns != 0)
    scheduler_.at(started_ns_ + several.slows_ns, [this] { wire_->slow_down(plan_.several.slows); });
  if (plan_.course != Course::kGrant) return;
  if (plan_.grant.what == GrantCase::kReplayed || plan_.grant.what == GrantCase::kForgotten)
    scheduler_.at(started_ns_ + plan_.grant.at_ns, [this] { show_again(); });
  if (plan_.grant.what != GrantCase::kEnds) return;
  scheduler_.at(started_ns_ + plan_.grant.at_ns, [this] {
    trace_.add(scheduler_.now_ns(), kSource, "a grant ends");
    clocks_jump(Papers::kEndsAfterNs + 61'000'000'000);
  });
  // Each node looks at it every 2 s; and a control may have stood still, or been away.
  const uint64_t seen_ns = std::max(plan_.grant.at_ns, plan_.safety_ns) + 5'000'000'000;
  scheduler_.at(started_ns_ + seen_ns, [this] { oracle_.owners().grants_are_over(); });
}

void World::clocks_jump(int64_t by_ns) {
  for (const auto& host : hosts_) host->unix_ahead_ns += by_ns;
}

void World::leave_for_good(uint32_t node) {
  if (healed_) return;
  trace_.add(scheduler_.now_ns(), node, "is gone");
  ++crashes_;
  kill_dataplane(node, kForGoodNs);
  kill_control(node, kForGoodNs, true);
  gone_[node] = true;
}

// The holder has lost its journal, and shows its grant as if for the first time.
void World::show_again() {
  if (end_of(kSource) == End::kNone || end_of(kDestination) != End::kDone) {
    if (end_of(kSource) == End::kNone || end_of(kDestination) == End::kNone)
      scheduler_.after(50'000'000, [this] { show_again(); });
    return;
  }
  trace_.add(scheduler_.now_ns(), kSource, "shows its grant again");
  shown_again_ns_ = scheduler_.now_ns();
  kill_control(kSource, 1'000'000, false);
  hosts_[kSource]->journal = Journal();
  oracle_.forgot(kSource);
  if (plan_.grant.what != GrantCase::kForgotten) return;
  clocks_jump(kLateNs);
  kill_control(kDestination, 1'000'000, false);
  hosts_[kDestination]->journal = Journal();
  oracle_.forgot(kDestination);
  oracle_.owners().forgot();
}

// ---- the end -------------------------------------------------------------------------------------

bool World::course_is_over() const {
  const auto ended = [this](const Asker& asker) {
    if (!asker.once) return is_content(asker);
    return scheduler_.now_ns() >= started_ns_ + asker.from_ns + kHoldsStillNs;  // it was refused by then
  };
  const auto quiet = [this](const auto& host) {
    return gone_[host->node] || (plan_.course == Course::kGrant && host->node == kThief) || is_quiet(host);
  };
  const bool again = plan_.grant.what == GrantCase::kReplayed || plan_.grant.what == GrantCase::kForgotten;
  // Who is refused waits for its operator, who lets it try again for ever.
  if (plan_.grant.what == GrantCase::kLate || shown_again_ns_ != 0) {
    const uint64_t since_ns = std::max(started_ns_ + plan_.safety_ns, shown_again_ns_);
    return healed_ && scheduler_.now_ns() >= since_ns + kHoldsStillNs;
  }
  if (const End there = end_of(kDestination); again && (there == End::kNone || there == End::kDone))
    return false;
  return std::all_of(askers_.begin(), askers_.end(), ended) &&
         std::all_of(hosts_.begin(), hosts_.end(), quiet);
}

void World::judge_course(const Outcome& out) {
  switch (plan_.course) {
    case Course::kTwoNodes:
      return;
    case Course::kSources:
      return judge_sources(out);
    case Course::kRivals:
      return judge_rivals();
    case Course::kGrant:
      return judge_grant(out);
  }
}

// What has a name is one replica, whole.
void World::check_what_stands() {
  FileSystem& files = hosts_[kDestination]->files;
  for (uint32_t object = 0; object < plan_.sizes.size(); ++object) {
    const uint64_t number = files.find(Oracle::final_name(object));
    if (number != 0 && oracle_.mixed(object, files.inode(number)->now))
      oracle_.fail(fmt::format("file {} has other bytes than its source", object));
  }
}

// A source that is wrong may end a session, which then names it. It never makes a file wrong.
void World::judge_sources(const Outcome& out) {
  const SourcesPlan& several = plan_.several;
  oracle_.ended(out.end);
  check_what_stands();
  if (out.end == End::kIntegrity) {
    const transfer::Record& record = hosts_[kDestination]->journal.sessions().at(asked_id()).record;
    const auto named = [&](uint32_t node) {
      return record.error->message.find(node_name(node)) != std::string::npos;
    };
    const bool lies = several.lie != Lie::kNone && named(several.liar);
    const bool changed = several.changes_ns != 0 && named(several.changes);
    // What came before a restart is of a source that nobody knows any more; and a source that has read all of
    // its file compares the copy with it.
    const std::string& words = record.error->message;
    const bool of_a_former_life = down_[kDestination].control_life > 1 &&
                                  words.find("what has arrived of it already:") != std::string::npos;
    const bool by_a_source = words.find("do not trust the copy") != std::string::npos;
    // What the only source that was there has brought.
    const bool by_the_list = several.listed && words.find("differs from the list") != std::string::npos;
    if (!lies && !changed && !of_a_former_life && !by_a_source && !by_the_list)
      oracle_.fail(fmt::format("it is not said which source is wrong: {}", record.error->message));
    ++trace_.reached.liars_named;
    return;
  }
  if (out.end != End::kDone) return;
  ++trace_.reached.of_several;
  tell_what_has_failed();
  oracle_.check_files(hosts_[kDestination]->files);
  // A queue that is too short for what is sent loses, and what was lost is sent again.
  const bool slow = std::any_of(plan_.path.begin(), plan_.path.begin() + plan_.nodes(),
                                [](const emulator::Settings& path) { return path.rate.bits_per_s != 0; });
  const bool repairs = plan_.fec != options::Fec::kOff || plan_.expected_loss_ppm != 0;
  if (!several.calm || slow || repairs || several.lie != Lie::kNone) return;
  const uint64_t most = plan_.bytes() + plan_.sources * oracle_.window_bytes();
  if (oracle_.payload_bytes_sent() > most)
    oracle_.fail(fmt::format("{} bytes were sent for {}: at most {}", oracle_.payload_bytes_sent(),
                             plan_.bytes(), most));
}

// Whoever has the work does it, unless the other one had done it.
void World::judge_rivals() {
  check_what_stands();
  const bool done = std::any_of(askers_.begin(), askers_.end(), [this](const Asker& asker) {
    return end_of(asker.node, asker.id) == End::kDone;
  });
  if (done) return oracle_.check_files(hosts_[kDestination]->files);
  for (uint32_t object = 0; object < plan_.sizes.size(); ++object) {
    if (hosts_[kDestination]->files.find(Oracle::final_name(object)) == 0)
      oracle_.fail("neither of two nodes has done the work");
  }
}

void World::judge_grant(const Outcome& out) {
  FileSystem& files = hosts_[kDestination]->files;
  check_what_stands();
  if (plan_.grant.what == GrantCase::kLate) {
    if (files.find(Oracle::final_name(0)) != 0)
      oracle_.fail("a grant that had to be used before stored a file");
    return;
  }
  if (shown_again_ns_ != 0) return oracle_.check_files(files);
  oracle_.ended(out.end);
  if (out.end == End::kDone || end_of(kDestination) == End::kDone) oracle_.check_files(files);
}

}  // namespace sluice::sim
