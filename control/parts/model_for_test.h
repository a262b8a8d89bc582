// Sources in virtual time for the real planner: how long a session of several legs would take.
//
// A source sends what it was asked for in order, an extent a lane at a time, at the rate of its path. Its
// rate doubles each round trip at the beginning, as that of Sluice does. A message takes half a round trip
// each way. An extent is confirmed some time after its last byte, since a source looks at its file again
// before it says digests. The model goes in steps of a millisecond, and has neither loss nor chance.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "control/parts/planner.h"

namespace sluice::parts {

inline constexpr double kMbit = 1e6 / 8;  // bytes per second
inline constexpr double kModelStepS = 0.001;

inline uint64_t model_ns(double seconds) { return static_cast<uint64_t>(seconds * 1e9); }

struct ModelLeg {
  double rate = 0;  // bytes per second
  double rtt_s = 0.08;
  bool expected = true;   // the node remembers the path's rate,
  double remembered = 1;  // times so much
  uint32_t lanes = 1;
  double dies_at_s = 1e9;
  double changes_at_s = 1e9;
  double changed_rate = 0;
};

struct ModelPlan {
  std::vector<ModelLeg> legs;
  std::vector<uint64_t> objects;  // sizes
  Planner::Kind kind = Planner::Kind::kDivisible;
  double client_rate = 1e12;
  uint64_t extent_bytes = 1U << 20;
  uint64_t tick_ms = 5;
  double confirm_s = 0.06;
  double start_bytes = 40 * 8192;  // of the first round trip (control/rate/adaptive_rate.cc)
};

struct ModelResult {
  double seconds = 0;  // until the last extent is confirmed
  std::vector<uint64_t> sent;
  uint64_t copied = 0;
  uint64_t stolen = 0;
  uint64_t wants = 0;
};

class Model {
 public:
  explicit Model(const ModelPlan& plan);
  ModelResult run();

 private:
  struct Begun {
    Place place;
    double left = 0;
  };
  struct Source {
    ModelLeg facts;
    double ramp = 0;      // bytes per second
    double sent = 0;      // not told the planner yet
    double in_round = 0;  // seconds since the rate was doubled
    std::deque<std::pair<double, Want>> words;
    std::deque<Place> queue;
    std::vector<Begun> begun;
    std::deque<std::pair<double, double>> bytes;   // on their way: when, how many
    std::deque<std::pair<double, Place>> extents;  // to be confirmed
  };

  uint64_t bytes_of(Place place) const;
  void hear(Source& source);
  void send(Source& source, double share);
  double wish(Source& source);
  void arrive(LegId leg, Source& source);
  void perform();

  ModelPlan plan_;
  Planner planner_;
  std::vector<Source> sources_;
  double now_s_ = 0;
  ModelResult result_;
  std::deque<std::pair<double, std::pair<LegId, ObjectId>>> opening_;  // when the replicas are compared
};

inline Model::Model(const ModelPlan& plan)
    : plan_(plan), planner_({.extent_bytes = static_cast<uint32_t>(plan.extent_bytes)}) {
  for (size_t object = 0; object < plan.objects.size(); ++object) {
    planner_.add(ObjectId(static_cast<uint32_t>(object)), plan.objects[object], plan.kind);
  }
  for (const ModelLeg& leg : plan.legs) {
    const LegId id(static_cast<uint32_t>(sources_.size()));
    Source source{.facts = leg};
    source.ramp = std::min(leg.rate, plan.start_bytes / std::max(leg.rtt_s, 0.004));
    sources_.push_back(source);
    planner_.join(
        id,
        {.rtt_ns = model_ns(leg.rtt_s),
         .expected_rate_bps = leg.expected ? static_cast<uint64_t>(leg.rate * leg.remembered * 8) : 0,
         .lanes = leg.lanes},
        0);
  }
  result_.sent.resize(plan.legs.size());
}

inline uint64_t Model::bytes_of(Place place) const {
  const uint64_t offset = place.extent.value() * plan_.extent_bytes;
  return std::min(plan_.extent_bytes, plan_.objects[place.object.value()] - offset);
}

inline void Model::hear(Source& source) {
  while (!source.words.empty() && source.words.front().first <= now_s_) {
    const Want want = source.words.front().second;
    source.words.pop_front();
    for (const Range& range : want.portion.ranges) {
      for (uint64_t offset = range.offset; offset < range.end(); offset += plan_.extent_bytes) {
        const Place place{.object = want.portion.object, .extent = ExtentId(offset / plan_.extent_bytes)};
        if (want.withdrawn) {
          std::erase(source.queue, place);
        } else {
          source.queue.push_back(place);
        }
      }
    }
  }
}

// How many bytes it would send in this step.
inline double Model::wish(Source& source) {
  if (now_s_ >= source.facts.dies_at_s) return 0;
  const double rate = now_s_ >= source.facts.changes_at_s ? source.facts.changed_rate : source.facts.rate;
  while (source.begun.size() < source.facts.lanes && !source.queue.empty()) {
    source.begun.push_back(
        {.place = source.queue.front(), .left = static_cast<double>(bytes_of(source.queue.front()))});
    source.queue.pop_front();
  }
  if (source.begun.empty()) return 0;
  source.in_round += kModelStepS;
  if (source.in_round >= std::max(source.facts.rtt_s, 0.004)) {
    source.in_round = 0;
    source.ramp = std::min(source.ramp * 2, source.facts.rate);
  }
  return std::min(rate, source.ramp) * kModelStepS;
}

inline void Model::send(Source& source, double bytes) {
  const double arrives_s = now_s_ + source.facts.rtt_s / 2;
  double sent = 0;
  while (sent < bytes - 1e-6 && !source.begun.empty()) {
    const double share = (bytes - sent) / static_cast<double>(source.begun.size());
    double least = share;
    for (const Begun& begun : source.begun) least = std::min(least, begun.left);
    for (Begun& begun : source.begun) begun.left -= least;
    sent += least * static_cast<double>(source.begun.size());
    for (const Begun& begun : source.begun) {
      if (begun.left < 1e-6) source.extents.emplace_back(arrives_s + plan_.confirm_s, begun.place);
    }
    std::erase_if(source.begun, [](const Begun& begun) { return begun.left < 1e-6; });
    while (source.begun.size() < source.facts.lanes && !source.queue.empty()) {
      source.begun.push_back(
          {.place = source.queue.front(), .left = static_cast<double>(bytes_of(source.queue.front()))});
      source.queue.pop_front();
    }
  }
  if (sent > 0) source.bytes.emplace_back(arrives_s, sent);
}

inline void Model::arrive(LegId leg, Source& source) {
  while (!source.bytes.empty() && source.bytes.front().first <= now_s_) {
    source.sent += source.bytes.front().second;
    source.bytes.pop_front();
  }
  if (source.sent >= 1) {
    const auto bytes = static_cast<uint64_t>(source.sent);
    planner_.received(leg, bytes, model_ns(now_s_));
    result_.sent[leg.value()] += bytes;
    source.sent -= static_cast<double>(bytes);
  }
  while (!source.extents.empty() && source.extents.front().first <= now_s_) {
    const Place place = source.extents.front().second;
    source.extents.pop_front();
    planner_.arrived(leg, place.object, place.extent, model_ns(now_s_));
  }
}

inline void Model::perform() {
  const Planner::Actions actions = planner_.take_actions();
  for (const Want& want : actions.wants) {
    Source& source = sources_[want.portion.leg.value()];
    if (now_s_ < source.facts.dies_at_s) source.words.emplace_back(now_s_ + source.facts.rtt_s / 2, want);
    ++result_.wants;
  }
  for (const ObjectId object : actions.compare) {
    double slowest_s = 0;
    for (const Source& source : sources_) slowest_s = std::max(slowest_s, source.facts.rtt_s);
    for (size_t leg = 0; leg < sources_.size(); ++leg) {
      opening_.push_back({now_s_ + slowest_s + 0.01, {LegId(static_cast<uint32_t>(leg)), object}});
    }
  }
  while (!opening_.empty() && opening_.front().first <= now_s_) {
    planner_.open_to(opening_.front().second.first, opening_.front().second.second);
    opening_.pop_front();
  }
}

inline ModelResult Model::run() {
  for (uint64_t step = 0; planner_.missing_bytes() != 0 && step < 600'000; ++step) {
    now_s_ = static_cast<double>(step) * kModelStepS;
    double sum = 0;
    std::vector<double> wishes;
    for (Source& source : sources_) {
      hear(source);
      wishes.push_back(wish(source));
      sum += wishes.back();
    }
    const double share = std::min(1.0, plan_.client_rate * kModelStepS / std::max(sum, 1.0));
    for (size_t leg = 0; leg < sources_.size(); ++leg) {
      send(sources_[leg], wishes[leg] * share);
      if (step % plan_.tick_ms == 0) arrive(LegId(static_cast<uint32_t>(leg)), sources_[leg]);
    }
    if (step % plan_.tick_ms != 0) continue;
    planner_.tick(model_ns(now_s_));
    perform();
  }
  result_.seconds = now_s_;
  result_.stolen = planner_.stolen_bytes();
  result_.copied = planner_.copied_bytes();
  return result_;
}

// Seconds that the model takes.
inline double seconds_of(const ModelPlan& plan) { return Model(plan).run().seconds; }

// The best that one of the legs takes alone.
inline double best_alone(const ModelPlan& plan) {
  double best = 1e9;
  for (const ModelLeg& leg : plan.legs) {
    ModelPlan alone = plan;
    alone.legs = {leg};
    best = std::min(best, seconds_of(alone));
  }
  return best;
}

}  // namespace sluice::parts
