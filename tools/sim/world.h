// One run of one plan: two nodes, the wire, the stream, and what befalls them.
//
// Safety phase: faults strike, and whatever happens, no promise is broken. Then everything is healed and
// restarted, and the session must end within bounded virtual time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <map>
#include <memory>
#include <string>

#include "tools/sim/control.h"
#include "tools/sim/network.h"
#include "tools/sim/unaware.h"

namespace sluice::sim {

struct Outcome {
  std::string failure;  // empty: all held
  End end = End::kNone;
  uint64_t hash = 0;
  uint64_t events = 0;
  uint64_t virtual_ns = 0;
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
  void make_source();
  void schedule();
  void schedule_blackholes();
  void schedule_losses();
  void change_source();
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
  void heal();
  bool over() const;
  End end_of(uint32_t node) const;
  bool unconfirmed() const;
  void tell_what_has_failed();
  void check_failed();
  void judge(Outcome* out);

  const Plan plan_;
  std::map<uint64_t, int> unreadable_;  // inodes of the source, and their errors
  std::map<uint32_t, int> unwritable_;  // objects at the destination
  Scheduler scheduler_;
  Trace trace_;
  Oracle oracle_;
  Random random_;
  std::array<std::unique_ptr<Host>, 2> hosts_;
  std::array<Down, 2> down_;
  std::unique_ptr<Wire> wire_;
  std::unique_ptr<Streams> streams_;
  uint64_t started_ns_ = 0;
  uint64_t crashes_ = 0;
  uint64_t asked_ = 0;         // how often the initiator's operator asked for the transfer
  std::string asked_id_;       // the last time
  bool journal_lost_ = false;  // of the initiator
  bool called_forgot_ = false;
  bool healed_ = false;
  Unaware unaware_;
};

}  // namespace sluice::sim
