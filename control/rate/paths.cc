// SPDX-License-Identifier: Apache-2.0
#include "control/rate/paths.h"

#include <algorithm>
#include <vector>

#include "control/rate/adaptive_rate.h"
#include "control/rate/cubic_rate.h"
#include "control/rate/fixed_rate.h"
#include "control/rate/lane_shares.h"
#include "control/rate/path_shares.h"
#include "control/rate/silence.h"

namespace sluice::rate {
namespace {

std::unique_ptr<Controller> make_law(const Terms& terms, uint64_t now_ns) {
  switch (terms.mode) {
    case Mode::kFixed:
      return std::make_unique<FixedRate>(terms.cap_bps, terms.expected_loss, now_ns);
    case Mode::kCubic:
      return std::make_unique<CubicRate>(terms.cap_bps, terms.expected_loss, now_ns);
    case Mode::kAdaptive:
      break;
  }
  return std::make_unique<AdaptiveRate>(terms.cap_bps, terms.expected_loss, now_ns);
}

// The peer's disk has a word in every mode: what it cannot take would only wait there, or be lost.
// It is not signed, so it makes nobody silent.
uint64_t with_advice(uint64_t rate_bps, const PathReport& report) {
  if (report.advice_bps == 0) return rate_bps;
  return std::min(rate_bps, std::max(report.advice_bps, fraction_of(rate_bps, Silence::kCrawlFraction)));
}

class OwnRate final : public Share {
 public:
  OwnRate(const Terms& terms, uint64_t now_ns) : law_(make_law(terms, now_ns)), rate_bps_(law_->rate_bps()) {}

  uint64_t step(const PathReport& report, bool /*busy*/, uint64_t now_ns) override {
    return rate_bps_ = with_advice(law_->step(report, now_ns), report);
  }
  void set_cap(uint64_t cap_bps) override {
    law_->set_cap(cap_bps);
    rate_bps_ = std::min(rate_bps_, cap_bps);
  }
  void reserve(uint64_t /*reserved_bps*/) override {}  // all of its rate is
  Condition condition() const override { return law_->condition(); }
  uint64_t rate_bps() const override { return rate_bps_; }
  uint64_t cap_bps() const override { return law_->cap_bps(); }

 private:
  std::unique_ptr<Controller> law_;
  uint64_t rate_bps_;
};

uint64_t sum_up_to_max(uint64_t a, uint64_t b) { return a > UINT64_MAX - b ? UINT64_MAX : a + b; }

}  // namespace

class SharedPath {
 public:
  struct Member {
    uint64_t cap_bps = 0;
    uint64_t reserved_bps = 0;
    uint64_t rate_bps = 0;
    bool busy = true;
    PathReport seen;
  };

  SharedPath(const Terms& terms, uint64_t now_ns) : law_(make_law(terms, now_ns)) {}

  void add(Member& member) {
    members_.push_back(&member);
    caps_changed();
    divide();
  }
  void remove(Member& member) {
    std::erase(members_, &member);
    if (!members_.empty()) caps_changed();
  }
  void caps_changed() {
    uint64_t cap_bps = 0;
    for (const Member* each : members_) cap_bps = sum_up_to_max(cap_bps, each->cap_bps);
    law_->set_cap(cap_bps);
  }
  const Controller& law() const { return *law_; }

  void step(Member& member, const PathReport& report, uint64_t now_ns) {
    const auto more = [](uint64_t now, uint64_t before) { return now > before ? now - before : 0; };
    PathReport& seen = member.seen;
    if (seen.datagram_bytes == 0) seen = report;  // flows may be older than their share (after a restart)
    const bool news = report.statuses != seen.statuses;
    total_.sent += more(report.sent, seen.sent);
    total_.received_end += more(report.received_end, seen.received_end);
    total_.received += more(report.received, seen.received);
    total_.statuses += more(report.statuses, seen.statuses);
    total_.last_peer_ns = std::max(total_.last_peer_ns, report.last_peer_ns);
    total_.datagram_bytes = report.datagram_bytes;
    if (report.rtt_ns != 0) total_.rtt_ns = report.rtt_ns;
    // What a stranger takes back and says again does not count twice.
    const uint64_t received = std::max(seen.received, report.received);
    const uint64_t received_end = std::max(seen.received_end, report.received_end);
    seen = report;
    seen.received = received;
    seen.received_end = received_end;
    total_.rtt_min_ns = 0;
    for (const Member* each : members_) {
      const uint64_t one_ns = each->seen.rtt_min_ns;
      if (one_ns != 0 && (total_.rtt_min_ns == 0 || one_ns < total_.rtt_min_ns)) total_.rtt_min_ns = one_ns;
    }
    total_.delay_known = news && report.delay_known;
    total_.delay_min_ns = report.delay_min_ns;
    total_.delay_spread_ns = report.delay_spread_ns;
    law_->step(total_, now_ns);
    divide();
  }

 private:
  // Those that have nothing to send keep a little, for probes.
  void divide() {
    uint64_t left_bps = law_->rate_bps();
    std::vector<Member*> open;
    for (Member* each : members_) {
      each->rate_bps = std::min(each->cap_bps, law_->rate_bps() / kIdleLaneShare);
      if (each->busy) {
        open.push_back(each);
      } else {
        left_bps -= std::min(left_bps, each->rate_bps);
      }
    }
    std::vector<Demand> demands;
    for (const Member* each : open) {
      demands.push_back(
          {.most_bps = with_advice(each->cap_bps, each->seen), .reserved_bps = each->reserved_bps});
    }
    const std::vector<uint64_t> shares = path_shares(left_bps, demands);
    for (size_t i = 0; i < open.size(); ++i) open[i]->rate_bps = shares[i];
  }

  std::unique_ptr<Controller> law_;
  std::vector<Member*> members_;
  PathReport total_;
};

namespace {

class PathShare final : public Share {
 public:
  PathShare(std::shared_ptr<SharedPath> path, uint64_t cap_bps) : path_(std::move(path)) {
    member_.cap_bps = cap_bps;
    path_->add(member_);
  }
  ~PathShare() override { path_->remove(member_); }

  uint64_t step(const PathReport& report, bool busy, uint64_t now_ns) override {
    member_.busy = busy;
    path_->step(member_, report, now_ns);
    return member_.rate_bps;
  }
  void set_cap(uint64_t cap_bps) override {
    member_.cap_bps = cap_bps;
    member_.rate_bps = std::min(member_.rate_bps, cap_bps);
    path_->caps_changed();
  }
  void reserve(uint64_t reserved_bps) override { member_.reserved_bps = reserved_bps; }
  Condition condition() const override { return path_->law().condition(); }
  uint64_t rate_bps() const override { return member_.rate_bps; }
  uint64_t cap_bps() const override { return member_.cap_bps; }

 private:
  std::shared_ptr<SharedPath> path_;
  SharedPath::Member member_;
};

}  // namespace

std::unique_ptr<Share> Paths::join(const std::string& peer, const Terms& terms, uint64_t now_ns) {
  if (terms.mode == Mode::kFixed) return std::make_unique<OwnRate>(terms, now_ns);
  std::erase_if(paths_, [](const auto& each) { return each.second.expired(); });
  std::weak_ptr<SharedPath>& known = paths_[{peer, terms.mode}];
  std::shared_ptr<SharedPath> path = known.lock();
  if (!path) known = path = std::make_shared<SharedPath>(terms, now_ns);
  return std::make_unique<PathShare>(std::move(path), terms.cap_bps);
}

}  // namespace sluice::rate
