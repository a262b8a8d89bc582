// How fast a session gets on, what it tells the outlook of its node about that, and whether it will be in
// time. It judges its deadline before it begins and again when it has measured its own speed, and watches it
// to the end.
//
// Pure. Whoever owns it looks about once a second (due()), and ends the session when look() says why.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "control/deadline/forecast.h"
#include "control/deadline/outlook.h"
#include "control/transfer/view.h"
#include "control/words/effects.h"
#include "control/words/terms.h"

namespace sluice::transfer {

// What a wire rate leaves for data, and what data needs of the wire (IPv4, as an estimate).
double data_bps(uint64_t wire_bps, uint32_t chunk_bytes);
uint64_t wire_bps(double data_bps, uint32_t chunk_bytes);

// Nobody's disk gives or takes what is generated, or thrown away.
bool is_generated(const Request& request);
// The load of a session that is asked for: nobody waits behind it.
deadline::Load load_of(const Request& request, const std::string& peer, Role role);
// The question about a session that has not begun, from what the node knows. One byte stands for a size that
// is not known: then only the cap and the time are judged.
deadline::Question foresee(const deadline::Outlook& outlook, const deadline::Load& load, int64_t left_ns,
                           uint64_t now_ns);

class Pace {
 public:
  static constexpr uint64_t kLookNs = kSecondNs;
  // The rate is still being found: that is not how fast the session will be.
  static constexpr uint64_t kBeginningNs = 3 * kSecondNs;
  // From so many samples on, one a second, the session knows enough of itself to be judged.
  static constexpr size_t kForecastSamples = 8;
  static constexpr size_t kSamplesMax = 60;

  enum class Stage : uint8_t { kAway, kWaits, kMoves };
  struct Sight {
    Stage stage = Stage::kAway;
    bool size_known = false;
    deadline::Load load;         // its path, what is left, its cap; the rest is filled in here
    uint64_t bytes_arrived = 0;  // of this attempt, as exact as can be
    deadline::Limit limit = deadline::Limit::kPath;  // what held it since the look before
    int64_t unix_now_ns = 0;
  };

  Pace(const ThisNode& settings, std::string id) : outlook_(settings.outlook), id_(std::move(id)) {}
  Pace(const Pace&) = delete;
  Pace& operator=(const Pace&) = delete;
  ~Pace() { leave(); }
  // 0: none.
  void set_deadline(int64_t unix_ns, deadline::Policy policy) {
    deadline_unix_ns_ = unix_ns;
    policy_ = policy;
  }
  void restore(DeadlineAdmission admission) { admission_ = admission; }

  bool due(Stage stage, uint64_t now_ns) const {
    return stage != stage_ || now_ns >= looked_ns_ + kLookNs || now_ns >= deadline_ns_;
  }
  // kDeadline when the session shall end.
  std::optional<Error> look(const Sight& sight, uint64_t now_ns, Effects& out);
  // The session runs and waits no more.
  void leave();
  // When a look is due that no event brings about; UINT64_MAX: never.
  uint64_t due_ns() const;
  // The journal should know of the admission: true once.
  bool take_judged() { return std::exchange(judged_, false); }

  DeadlineAdmission admission() const { return admission_; }
  // What the session needs of its path to be in time, bit/s of data; 0: as much as there is.
  double reserved_bps() const { return reserved_bps_; }
  std::optional<DeadlineView> view(const Sight& sight, uint64_t now_ns) const;

 private:
  struct Prospect {
    double chance = 0;
    std::optional<double> ends_s;
  };
  std::optional<deadline::Speed> own_speed() const;
  deadline::Load load(const Sight& sight) const;
  deadline::Question question(const Sight& sight, uint64_t now_ns) const;
  std::optional<Prospect> prospect(const Sight& sight, uint64_t now_ns) const;
  double seconds_left(const Sight& sight) const;
  void measure(const Sight& sight, uint64_t now_ns);
  std::optional<Error> judge(const Sight& sight, uint64_t now_ns, Effects& out);
  void say_chance(const Sight& sight, uint64_t now_ns, Effects& out);

  const std::shared_ptr<deadline::Outlook> outlook_;
  const std::string id_;
  int64_t deadline_unix_ns_ = 0;
  deadline::Policy policy_ = deadline::Policy::kRefuse;
  DeadlineAdmission admission_ = DeadlineAdmission::kNone;
  Stage stage_ = Stage::kAway;
  uint64_t looked_ns_ = 0;
  uint64_t deadline_ns_ = UINT64_MAX;  // on the clock of looks; passed: UINT64_MAX again
  uint64_t began_ns_ = 0;              // to move, in this attempt
  uint64_t bytes_ = 0;                 // that had arrived at the last look
  std::vector<double> samples_bps_;
  std::vector<deadline::Limit> limits_;
  double rate_bps_ = 0;
  double reserved_bps_ = 0;
  bool listed_ = false;    // in the outlook
  bool foreseen_ = false;  // it was judged by what the node knew before
  bool judged_ = false;
  bool unlikely_ = false;  // that was said
  bool passed_ = false;    // the deadline, and that was said
};

// The deadline of a session that has ended: kept or missed, by how much.
std::optional<DeadlineView> deadline_of_end(int64_t deadline_unix_ns, int64_t ended_unix_ns, bool succeeded);
Error late_error(const DeadlineView& deadline);

}  // namespace sluice::transfer
