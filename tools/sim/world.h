// One run of one plan: its nodes, the wire, the streams, and what befalls them.
//
// Safety phase: faults strike, and whatever happens, no promise is broken. Then everything is healed and
// restarted, and the session must end within bounded virtual time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/sim/control.h"
#include "tools/sim/network.h"
#include "tools/sim/papers.h"
#include "tools/sim/unaware.h"

namespace sluice::sim {

struct Outcome {
  std::string failure;  // empty: all held
  End end = End::kNone;
  uint64_t hash = 0;
  uint64_t events = 0;
  uint64_t virtual_ns = 0;
  uint64_t told_ns = 0;  // users of the initiator heard of the end by then
  uint64_t crashes = 0;
  uint64_t faults = 0;
  uint64_t frames = 0;
  uint64_t bytes = 0;       // of the files
  uint64_t bytes_sent = 0;  // payload, repetitions included
  Reached reached;
  std::string tail;  // last events, when something failed
};

class World {
 public:
  explicit World(const Plan& plan, bool print = false);
  ~World();
  Outcome run();

 private:
  struct Down {
    uint64_t dataplane_ns = 0;  // until then
    uint64_t control_ns = 0;
    uint64_t dataplane_life = 0;
    uint64_t control_life = 0;
  };
  void make_source(uint32_t node);
  void schedule();
  void schedule_blackholes();
  void schedule_losses();
  void change_source(uint32_t node);
  void trouble(const Trouble& trouble);
  void lose_journal();
  void lose_journal_of_called();
  void remove_unfinished();
  void crash(uint32_t node, CrashKind kind, uint64_t down_ns);
  void check_lag();
  void change_volume();
  void kill_dataplane(uint32_t node, uint64_t down_ns);
  void kill_control(uint32_t node, uint64_t down_ns, bool power);
  void kill_leg(const LegDeath& death);
  void start_dataplane(uint32_t node);
  void start_control(uint32_t node);
  void tick(uint32_t node, uint64_t life);
  void act(const Action& action);
  void finish_stop(uint32_t node);
  void operate();  // what the operators do by themselves: ask, ask again, and continue what was held
  // Who asks for a transfer: the initiator. More than two nodes: each that thinks it is to begin it.
  struct Asker {
    uint32_t node = 0;
    uint64_t from_ns = 0;  // since the start
    bool once = false;
    std::optional<transfer::Lease> lease = {};
    uint64_t asked = 0;   // how often
    std::string id = {};  // the last time
  };
  void ask(Asker& asker);
  bool is_content(const Asker& asker) const;  // with the end of what it asked for, and does not ask again
  std::string next_id(const Asker& asker) const;
  void heal();
  bool over() const;
  static bool is_quiet(const std::unique_ptr<Host>& host);
  End end_of(uint32_t node, const std::string& id) const;
  End end_of(uint32_t node) const { return end_of(node, asked_id()); }
  bool unconfirmed() const;
  void tell_what_has_failed();
  void check_failed();
  void judge(Outcome* out);
  void judge_ends(const Outcome& out);
  // world_course.cc: where more than two nodes take part
  void begin_course();
  void schedule_course();
  void leave_for_good(uint32_t node);
  void show_again();  // a grant
  void clocks_jump(int64_t by_ns);
  bool course_is_over() const;
  void judge_course(const Outcome& out);
  void judge_sources(const Outcome& out);
  void judge_rivals();
  void judge_grant(const Outcome& out);
  void check_what_stands();
  const std::string& asked_id() const { return askers_.front().id; }

  const Plan plan_;
  std::map<uint64_t, int> unreadable_;  // inodes of the source, and their errors
  std::map<uint32_t, int> unwritable_;  // objects at the destination
  Scheduler scheduler_;
  Trace trace_;
  Oracle oracle_;
  Random random_;
  std::vector<std::unique_ptr<Host>> hosts_;
  std::array<Down, kNodesMax> down_;
  std::array<bool, kNodesMax> gone_{};  // for good
  std::unique_ptr<Wire> wire_;
  std::unique_ptr<Streams> streams_;
  uint64_t started_ns_ = 0;
  uint64_t crashes_ = 0;
  std::vector<Asker> askers_;
  Papers papers_;
  uint64_t shown_again_ns_ = 0;  // a grant, after its session had ended
  bool journal_lost_ = false;    // of the initiator
  bool called_forgot_ = false;
  bool healed_ = false;
  Unaware unaware_;
};

}  // namespace sluice::sim
