// SPDX-License-Identifier: Apache-2.0
#include "control/deadline/outlook.h"

#include <algorithm>
#include <cmath>

#include "control/rate/path_shares.h"

namespace sluice::deadline {
namespace {

uint64_t whole(double bps) { return static_cast<uint64_t>(std::clamp(bps, 0.0, 1e18)); }

}  // namespace

void Outlook::set(const std::string& id, const Load& load) {
  Entry& entry = entries_[id];
  if (!load.running) entry.sampled = false;
  entry.load = load;
}

bool Outlook::tells(const std::string& id, const Path& path) const {
  for (const auto& [name, entry] : entries_) {
    if (entry.sampled && entry.load.running && entry.load.path == path) return name == id;
  }
  return false;
}

double Outlook::others_bps(const std::string& id, const Path& path) const {
  double sum_bps = 0;
  for (const auto& [name, entry] : entries_) {
    if (name != id && entry.load.running && entry.load.path.shares_with(path)) sum_bps += entry.load.rate_bps;
  }
  return sum_bps;
}

void Outlook::sample(const std::string& id, const Sample& sample, uint64_t now_ns) {
  const auto entry = entries_.find(id);
  if (entry == entries_.end()) return;
  entry->second.sampled = true;
  entry->second.limit = sample.limit;
  const Path& path = entry->second.load.path;
  if (!tells(id, path)) return;
  Measured measured{.at_ns = now_ns, .sample = sample};
  measured.sample.rate_bps += others_bps(id, path);
  for (const auto& [name, other] : entries_) {
    // It would have been faster, had this one not been held down: the path is at least as fast.
    if (name == id || !other.load.running || !other.load.path.shares_with(path)) continue;
    if (measured.sample.limit == Limit::kCap) measured.sample.limit = other.limit;
  }
  heard(path, measured.sample, now_ns);
}

void Outlook::ended(const Path& path, const Whole& whole, uint64_t now_ns) {
  std::deque<Ended>& all = ended_[path];
  all.push_back({.at_ns = now_ns, .whole = whole});
  if (all.size() > kWholesMax) all.pop_front();
}

double Outlook::besides_s(const Path& path, uint64_t bytes, uint64_t now_ns) const {
  const auto found = ended_.find(path);
  if (found == ended_.end()) return 0;
  const std::optional<Speed> speed = this->speed(path, now_ns);
  double sum_s = 0;
  size_t count = 0;
  for (const Ended& each : found->second) {
    const Whole& whole = each.whole;
    if (now_ns - std::min(now_ns, each.at_ns) > kRecentNs || (!speed && whole.bytes > bytes)) continue;
    double rate_bps = whole.cap_bps > 0 ? whole.cap_bps : INFINITY;
    if (speed) rate_bps = std::min(rate_bps, speed->mean_bps);
    sum_s += std::max(0.0, whole.seconds - 8 * static_cast<double>(whole.bytes) / rate_bps);
    ++count;
  }
  return count == 0 ? 0 : sum_s / static_cast<double>(count);
}

void Outlook::heard(const Path& path, const Sample& sample, uint64_t now_ns) {
  std::deque<Measured>& all = measured_[path];
  all.push_back({.at_ns = now_ns, .sample = sample});
  if (all.size() > kSamplesMax) all.pop_front();
}

// One short session tells little: half of what is known is what those before it had.
void Outlook::brief(const Path& path, double rate_bps, uint64_t now_ns) {
  const double before_bps = about_bps(path, now_ns);
  const double mean_bps = before_bps > 0 ? (before_bps + rate_bps) / 2 : rate_bps;
  brief_[path] = {.at_ns = now_ns, .sample = {.rate_bps = mean_bps}};
}

double Outlook::about_bps(const Path& path, uint64_t now_ns) const {
  if (const auto known = speed(path, now_ns)) return known->mean_bps;
  const auto found = brief_.find(path);
  if (found == brief_.end() || now_ns - std::min(now_ns, found->second.at_ns) > kRecentNs) return 0;
  return found->second.sample.rate_bps;
}

std::optional<Speed> Outlook::speed(const Path& path, uint64_t now_ns) const {
  const auto found = measured_.find(path);
  if (found == measured_.end()) return std::nullopt;
  std::vector<double> free;
  std::vector<double> capped;
  std::vector<Limit> limits;
  for (const Measured& each : found->second) {
    if (now_ns - std::min(now_ns, each.at_ns) > kRecentNs) continue;
    const bool is_capped = each.sample.limit == Limit::kCap;
    (is_capped ? capped : free).push_back(each.sample.rate_bps);
    if (!is_capped) limits.push_back(each.sample.limit);
  }
  const auto of_free = speed_of(free);
  std::optional<Speed> of_capped = speed_of(capped);
  if (of_capped) of_capped->at_least = true;
  if (!of_free) return of_capped;
  Speed speed = *of_free;
  speed.limit = most_of(limits);
  // Under a cap it was faster than without: it has become so since.
  if (of_capped && of_capped->mean_bps > speed.mean_bps) return of_capped;
  return speed;
}

// ---- what comes first ----------------------------------------------------------------------------

struct Outlook::Course {
  struct One {
    double bits = 0;
    rate::Demand demand;
    double elsewhere_bps = -1;  // on another path; negative: on ours
    bool asked = false;         // whose end is wanted
    double now_bps = 0;
  };
  std::vector<One> running;
  std::deque<One> waiting;
  double path_bps = 0;

  void divide() {
    std::vector<rate::Demand> demands;
    std::vector<One*> ours;
    for (One& each : running) {
      each.now_bps = each.elsewhere_bps;
      if (each.elsewhere_bps >= 0) continue;
      demands.push_back(each.demand);
      ours.push_back(&each);
    }
    const std::vector<uint64_t> shares = rate::path_shares(whole(path_bps), demands);
    for (size_t i = 0; i < ours.size(); ++i) ours[i]->now_bps = static_cast<double>(shares[i]);
  }

  // Seconds until the one that is asked for has ended: all move as they divide their paths, until one ends
  // and the next has its place.
  std::optional<double> run(size_t places) {
    double at_s = 0;
    for (;;) {
      for (; running.size() < places && !waiting.empty(); waiting.pop_front())
        running.push_back(waiting.front());
      divide();
      double next_s = INFINITY;
      for (const One& each : running) {
        if (each.now_bps > 0) next_s = std::min(next_s, each.bits / each.now_bps);
        if (each.bits <= 0) next_s = 0;
      }
      if (!std::isfinite(next_s)) return std::nullopt;
      at_s += next_s;
      bool over = false;
      std::erase_if(running, [&](One& each) {
        each.bits -= each.now_bps * next_s;
        const bool ended = each.bits < 1;
        over |= ended && each.asked;
        return ended;
      });
      if (over) return at_s;
    }
  }
};

std::optional<double> Outlook::ahead_s(const std::string& id, const Load& load, uint64_t now_ns) const {
  const std::optional<Speed> path_speed = speed(load.path, now_ns);
  if (!path_speed || path_speed->mean_bps <= 0) return 0;
  Course course{.path_bps = path_speed->mean_bps};
  // A newcomer's reservation does not take from those that were admitted before.
  double reserved_bps = 0;
  const auto one_of = [&](const Load& each) {
    Course::One one{.bits = 8 * static_cast<double>(each.bytes_left),
                    .demand = {.most_bps = whole(each.cap_bps), .reserved_bps = whole(each.reserved_bps)}};
    if (each.path.shares_with(load.path)) return one;
    const auto its_speed = speed(each.path, now_ns);
    one.elsewhere_bps = each.rate_bps > 0 ? each.rate_bps : its_speed ? its_speed->mean_bps : 0;
    if (one.elsewhere_bps <= 0) one.bits = 0;  // nobody knows how long it takes: it is not waited for
    return one;
  };
  std::vector<const Load*> in_order;
  for (const auto& [name, entry] : entries_) {
    if (name == id) continue;
    if (entry.load.running) {
      course.running.push_back(one_of(entry.load));
      if (entry.load.path.shares_with(load.path)) reserved_bps += entry.load.reserved_bps;
    } else if (!load.running && entry.load.order < load.order) {
      in_order.push_back(&entry.load);
    }
  }
  std::sort(in_order.begin(), in_order.end(),
            [](const Load* a, const Load* b) { return a->order < b->order; });
  for (const Load* each : in_order) course.waiting.push_back(one_of(*each));
  Course::One own = one_of(load);
  own.asked = true;
  const double free_bps = path_speed->mean_bps * (1 - 1.0 / rate::kUnreservedShare) - reserved_bps;
  own.demand.reserved_bps = std::min(own.demand.reserved_bps, whole(free_bps));
  if (load.running) {
    course.running.push_back(own);
  } else {
    course.waiting.push_back(own);
  }
  const double alone_s = own.bits / std::max(1.0, std::min(load.cap_bps, path_speed->mean_bps));
  const auto ends_s = course.run(std::max<size_t>(places_, course.running.size()));
  if (!ends_s) return std::nullopt;
  return std::max(0.0, *ends_s - alone_s);
}

}  // namespace sluice::deadline
