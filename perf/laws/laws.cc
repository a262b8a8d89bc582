// What the laws of rate control do over time, on one bottleneck with packets in virtual time: the product's
// own laws, and the model of their tests.
//
// One JSON object per scenario on stdout: samples each 50 ms of each flow's goodput on the wire, of the
// datagrams that were lost, and of the queue.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "control/rate/adaptive_rate.h"
#include "control/rate/cubic_rate.h"
#include "control/rate/dumbbell_for_test.h"
#include "control/rate/fixed_rate.h"

namespace {

using namespace sluice::rate;

constexpr double kGbps = 1e9;
constexpr double kSampleS = 0.05;
constexpr uint64_t kCapBps = 10'000'000'000;

uint64_t started_ns(double start_s) { return Dumbbell::kStartNs + static_cast<uint64_t>(start_s * 1e9); }

std::unique_ptr<Controller> adaptive(double start_s = 0) {
  return std::make_unique<AdaptiveRate>(kCapBps, 0, started_ns(start_s));
}
std::unique_ptr<Controller> cubic(double start_s = 0) {
  return std::make_unique<CubicRate>(kCapBps, 0, started_ns(start_s));
}
std::unique_ptr<Controller> fixed(uint64_t rate_bps) {
  return std::make_unique<FixedRate>(rate_bps, 0, started_ns(0));
}

struct Scenario {
  std::string name;
  std::string title;
  Link link;
  double seconds = 0;
  std::vector<std::string> flows;
  std::function<void(Dumbbell&)> add;
  std::function<void(Dumbbell&, double)> change;  // of the path, while it runs
};

std::vector<Scenario> scenarios() {
  const Link gigabit{.capacity_bps = kGbps, .buffer_bytes = 2.5e6};  // of a round trip of 20 ms
  Link long_path = gigabit;
  long_path.buffer_bytes = 12.5e6;
  return {
      {.name = "step",
       .title = "adaptive: 1 Gbit/s, 20 ms; from 5 to 10 s half of it",
       .link = gigabit,
       .seconds = 15,
       .flows = {"adaptive"},
       .add = [](Dumbbell& path) { path.add(adaptive(), 0.02); },
       .change = [](Dumbbell& path,
                    double now_s) { path.link.capacity_bps = now_s >= 5 && now_s < 10 ? kGbps / 2 : kGbps; }},
      {.name = "loss",
       .title = "adaptive: 1 Gbit/s, 100 ms; from 10 s on 2 % are lost at random",
       .link = long_path,
       .seconds = 30,
       .flows = {"adaptive"},
       .add = [](Dumbbell& path) { path.add(adaptive(), 0.1); },
       .change = [](Dumbbell& path, double now_s) { path.link.loss = now_s >= 10 ? 0.02 : 0; }},
      {.name = "share",
       .title = "adaptive: three sources to three peers, 1 Gbit/s, 20 ms",
       .link = gigabit,
       .seconds = 45,
       .flows = {"first", "second", "third"},
       .add =
           [](Dumbbell& path) {
             for (const double start_s : {0.0, 10.0, 20.0}) path.add(adaptive(start_s), 0.02, start_s);
           }},
      {.name = "yield",
       .title = "adaptive beside a TCP with CUBIC from 10 s on, 1 Gbit/s, 20 ms, 1 BDP of buffer",
       .link = gigabit,
       .seconds = 30,
       .flows = {"adaptive", "TCP"},
       .add =
           [](Dumbbell& path) {
             path.tick_s = 2.5e-4;
             path.add(adaptive(), 0.02);
             path.add(nullptr, 0.02, 10);
           }},
      {.name = "cubic",
       .title = "cubic beside a TCP with CUBIC from 10 s on, 1 Gbit/s, 20 ms, 1 BDP of buffer",
       .link = gigabit,
       .seconds = 60,
       .flows = {"cubic", "TCP"},
       .add =
           [](Dumbbell& path) {
             path.tick_s = 2.5e-4;
             path.add(cubic(), 0.02);
             path.add(nullptr, 0.02, 10);
           }},
      {.name = "fixed",
       .title = "fixed: 1.2 Gbit/s were asked for, the path carries 1, 20 ms",
       .link = gigabit,
       .seconds = 30,
       .flows = {"fixed"},
       .add = [](Dumbbell& path) { path.add(fixed(1'200'000'000), 0.02); }},
  };
}

struct Samples {
  std::vector<double> gbps;
  std::vector<double> lost_percent;
  double delivered_bytes = 0;
  double sent_bytes = 0;
  double dropped_bytes = 0;

  void take(const Dumbbell::Flow& flow, double span_s) {
    gbps.push_back((flow.delivered_bytes - delivered_bytes) * 8e-9 / span_s);
    const double sent = flow.sent_bytes - sent_bytes;
    lost_percent.push_back(sent > 0 ? 100 * (flow.dropped_bytes - dropped_bytes) / sent : 0);
    delivered_bytes = flow.delivered_bytes;
    sent_bytes = flow.sent_bytes;
    dropped_bytes = flow.dropped_bytes;
  }
};

void run(const Scenario& scenario) {
  Dumbbell path(scenario.link);
  scenario.add(path);
  std::vector<Samples> flows(path.flows.size());
  std::vector<double> times_s;
  std::vector<double> queue_ms;
  double next_s = kSampleS;
  path.run(scenario.seconds, [&](double now_s) {
    if (scenario.change) scenario.change(path, now_s);
    if (now_s < next_s) return;
    next_s += kSampleS;
    times_s.push_back(now_s);
    queue_ms.push_back(path.queue_s.back() * 1e3);
    for (size_t i = 0; i < flows.size(); ++i) flows[i].take(*path.flows[i], kSampleS);
  });
  fmt::print("{{\"name\": \"{}\", \"title\": \"{}\", \"t_s\": [{:.3f}], \"queue_ms\": [{:.3f}], \"flows\": [",
             scenario.name, scenario.title, fmt::join(times_s, ", "), fmt::join(queue_ms, ", "));
  for (size_t i = 0; i < flows.size(); ++i) {
    fmt::print("{}{{\"name\": \"{}\", \"gbps\": [{:.4f}], \"lost_percent\": [{:.3f}]}}", i == 0 ? "" : ", ",
               scenario.flows[i], fmt::join(flows[i].gbps, ", "), fmt::join(flows[i].lost_percent, ", "));
  }
  fmt::print("]}}\n");
}

}  // namespace

int main() {
  for (const Scenario& scenario : scenarios()) run(scenario);
  return std::fflush(stdout) == 0 ? 0 : 1;
}
