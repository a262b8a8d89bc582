// A planner between any sources, any operator and any disk: whatever they do, in any order, each extent is
// there, asked for or still to be asked for. At most two legs are asked for it at a time, and each leg has
// heard exactly what the planner takes it to be asked for. Once one source behaves, all arrives.
// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <set>

#include "control/parts/planner.h"
#include "dataplane/base/input_for_fuzz.h"

namespace {

using namespace sluice;
using namespace sluice::parts;

constexpr uint32_t kExtentBytes = 1000;
constexpr uint32_t kLegs = 4;
constexpr uint64_t kMs = 1'000'000;

class World {
 public:
  explicit World(fuzz::Input& input) : input_(input), objects_(1 + input.below(6)) {
    for (uint32_t object = 0; object < objects_; ++object) {
      planner_.add(ObjectId(object), input.take<uint16_t>() % 60'000,
                   input.below(4) == 0 ? Planner::Kind::kWhole : Planner::Kind::kDivisible);
    }
  }

  void operate() {
    const LegId leg(input_.below(kLegs));
    switch (input_.below(15)) {
      case 0:
        planner_.join(leg,
                      {.rtt_ns = input_.below(200) * kMs,
                       .expected_rate_bps = input_.flag() ? 50'000'000U : 0,
                       .lanes = 1 + input_.below(3)},
                      now_ns_);
        break;
      case 1:
        planner_.leave(leg);
        asked_[leg].clear();
        break;
      case 2:
        planner_.open_to(leg, object());
        break;
      case 3:
        planner_.forgotten(object(), run());
        break;
      case 4:
        arrived(leg, {object(), run().first});
        break;
      case 5:
        planner_.holds(object(), {{.offset = input_.take<uint16_t>(), .length = input_.take<uint16_t>()}});
        break;
      case 6:
        now_ns_ += input_.below(256) * 3 * kMs;
        break;
      case 7:
        if (input_.below(16) == 0) planner_.remove(object());
        break;
      case 8:
        planner_.close_to(leg, object());
        break;
      default:
        planner_.received(leg, input_.take<uint16_t>(), now_ns_);
        if (!asked_[leg].empty()) arrived(leg, *asked_[leg].begin());
    }
    now_ns_ += input_.below(20) * kMs;
    if (input_.flag()) planner_.tick(now_ns_);
    look();
  }

  // One source that nothing was heard of before brings all that it is asked for.
  void bring_the_rest() {
    for (uint32_t leg = 0; leg < kLegs; ++leg) {
      planner_.leave(LegId(leg));
      asked_[LegId(leg)].clear();
    }
    const LegId last(kLegs);
    planner_.join(last, {.rtt_ns = kMs}, now_ns_);
    for (uint32_t object = 0; object < objects_; ++object) planner_.open_to(last, ObjectId(object));
    for (int step = 0; step < 2000 && planner_.missing_bytes() != 0; ++step) {
      now_ns_ += 10 * kMs;
      planner_.tick(now_ns_);
      look();
      for (const Place& place : std::set<Place>(asked_[last])) {
        planner_.received(last, kExtentBytes, now_ns_);
        arrived(last, place);
      }
    }
    fuzz::require(planner_.missing_bytes() == 0, "all arrives in the end");
  }

 private:
  ObjectId object() { return ObjectId(input_.below(objects_ + 1)); }
  ExtentRun run() {
    const uint64_t first = input_.below(70);
    return {.first = ExtentId(first), .end = ExtentId(first + 1 + input_.below(5))};
  }
  void arrived(LegId leg, Place place) {
    planner_.arrived(leg, place.object, place.extent, now_ns_);
    asked_[leg].erase(place);
  }
  static std::set<Place> places_of(const Portion& portion) {
    std::set<Place> places;
    for (const Range& range : portion.ranges)
      for (uint64_t offset = range.offset; offset < range.end(); offset += kExtentBytes)
        places.insert({.object = portion.object, .extent = ExtentId(offset / kExtentBytes)});
    return places;
  }
  void look() {
    planner_.check_invariants();
    const Planner::Actions actions = planner_.take_actions();
    for (const Want& want : actions.wants) {
      for (const Place& place : places_of(want.portion)) {
        if (want.withdrawn) {
          asked_[want.portion.leg].erase(place);
        } else {
          asked_[want.portion.leg].insert(place);
        }
      }
    }
    for (const auto& [leg, asked] : asked_) {
      std::set<Place> outstanding;
      for (const Portion& portion : planner_.outstanding(leg)) outstanding.merge(places_of(portion));
      fuzz::require(asked == outstanding, "a leg has heard what it is taken to be asked for");
    }
    for (const ObjectId each : actions.compare) planner_.open_to(LegId(input_.below(kLegs)), each);
  }

  fuzz::Input& input_;
  uint32_t objects_;
  Planner planner_{{.extent_bytes = kExtentBytes}};
  std::map<LegId, std::set<Place>> asked_;  // by the words that they heard
  uint64_t now_ns_ = 1;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  World world(input);
  while (!input.empty()) world.operate();
  world.bring_the_rest();
  return 0;
}
