// One bottleneck, some senders on its one side and their receivers on its other: to try laws of rate control
// with packets, in virtual time.
//
// The link serves datagrams in the order in which they came, drops what its queue does not hold, and loses
// some at random behind it. Each receiver reports as docs/WIRE.md 1.6 says.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <vector>

#include "control/rate/controller.h"

namespace sluice::rate {

struct Link {
  double capacity_bps = 1e9;
  double buffer_bytes = 12.5e6;
  double loss = 0;         // at random, of datagrams
  double status_loss = 0;  // of what the receivers report
  double jitter_s = 0;     // of the delay, uniform, order kept
  double policer_bps = 0;  // drops what exceeds it, without any queue
};

class Dumbbell {
 public:
  static constexpr double kDatagramBytes = 8300;
  static constexpr uint64_t kStartNs = 1'000'000'000;

  struct Flow {
    std::unique_ptr<Controller> controller;  // nothing: a TCP with CUBIC (RFC 9438)
    double rtt_s = 0.02;
    double start_s = 0;
    double clock_drift = 0;
    // What it did, summed up since reset().
    double delivered_bytes = 0;
    double sent_bytes = 0;
    double dropped_bytes = 0;

    uint64_t sent = 0;
    uint64_t arrived_end = 0;
    uint64_t arrived = 0;
    uint64_t lost = 0;
    double next_send_s = 0;
    struct Datagram {
      double at_s;
      double sent_s;
      uint64_t number;
    };
    std::deque<Datagram> on_the_way;
    double next_status_s = 0;
    double delay_min_s = 1e9;
    double delay_max_s = -1e9;
    double newest_sent_s = -1;
    double newest_at_s = 0;
    PathReport report;
    // TCP
    double window = 10;
    double threshold = 1e9;
    double window_max = 0;
    double epoch_s = 0;
    double k = 0;
    double cut_s = -1;
    uint64_t acked = 0;
    uint64_t lost_seen = 0;
    struct Ack {
      double at_s;
      bool lost;
    };
    std::deque<Ack> acks;
    double in_flight = 0;
  };

  explicit Dumbbell(const Link& one, uint64_t seed = 1) : link(one), random_(seed) {}

  Flow& add(std::unique_ptr<Controller> controller, double rtt_s, double start_s = 0) {
    flows.push_back(std::make_unique<Flow>());
    Flow& flow = *flows.back();
    flow.controller = std::move(controller);
    flow.rtt_s = rtt_s;
    flow.start_s = flow.next_send_s = flow.next_status_s = start_s;
    flow.report.datagram_bytes = static_cast<uint32_t>(kDatagramBytes);
    return flow;
  }

  // Runs on until `until_s`; `each_tick` sees every tick.
  void run(double until_s, const std::function<void(double)>& each_tick = {}) {
    for (; now_s < until_s; now_s += tick_s) {
      for (auto& flow : flows) {
        if (now_s < flow->start_s) continue;
        flow->controller ? hear(*flow) : acknowledge(*flow);
      }
      serve();
      queue_s.push_back(std::max(0.0, busy_until_s_ - now_s));
      if (each_tick) each_tick(now_s);
    }
  }
  void reset() {
    for (auto& flow : flows) flow->delivered_bytes = flow->sent_bytes = flow->dropped_bytes = 0;
    queue_s.clear();
    reset_s = now_s;
  }
  // Of the capacity and what random loss leaves of it.
  double utilisation() const {
    double bytes = 0;
    for (const auto& flow : flows) bytes += flow->delivered_bytes;
    const double capacity =
        link.policer_bps > 0 ? std::min(link.policer_bps, link.capacity_bps) : link.capacity_bps;
    return bytes * 8 / ((now_s - reset_s) * capacity * (1 - link.loss));
  }
  double overdrive() const {
    double sent = 0;
    double delivered = 0;
    for (const auto& flow : flows) {
      sent += flow->sent_bytes;
      delivered += flow->delivered_bytes;
    }
    return sent / delivered * (1 - link.loss);
  }
  double jain() const {
    double sum = 0;
    double squares = 0;
    for (const auto& flow : flows) {
      sum += flow->delivered_bytes;
      squares += flow->delivered_bytes * flow->delivered_bytes;
    }
    return sum * sum / (squares * static_cast<double>(flows.size()));
  }
  double share(size_t flow) const {
    double sum = 0;
    for (const auto& each : flows) sum += each->delivered_bytes;
    return flows[flow]->delivered_bytes / sum;
  }
  double queue_quantile(double q) {
    if (queue_s.empty()) return 0;
    const auto at = queue_s.begin() + static_cast<ptrdiff_t>(q * static_cast<double>(queue_s.size() - 1));
    std::nth_element(queue_s.begin(), at, queue_s.end());
    return *at;
  }

  Link link;
  double tick_s = 1e-3;
  double now_s = 0;
  double reset_s = 0;
  std::vector<std::unique_ptr<Flow>> flows;
  std::vector<double> queue_s;

 private:
  uint64_t at_ns(double s) const { return kStartNs + static_cast<uint64_t>(s * 1e9); }
  double chance() { return std::uniform_real_distribution<double>(0, 1)(random_); }

  // The statuses that have come, then the law.
  void hear(Flow& flow) {
    make_statuses(flow);
    flow.report.sent = flow.sent;
    flow.controller->step(flow.report, at_ns(now_s));
  }
  void make_statuses(Flow& flow) {
    constexpr double interval_s = 1e-3;
    while (flow.next_status_s <= now_s) {
      const double at_s = flow.next_status_s;
      flow.next_status_s += interval_s;
      while (!flow.on_the_way.empty() && flow.on_the_way.front().at_s <= at_s) {
        const Flow::Datagram& datagram = flow.on_the_way.front();
        ++flow.arrived;
        flow.arrived_end = std::max(flow.arrived_end, datagram.number + 1);
        const double delay_s = datagram.at_s * (1 + flow.clock_drift) - datagram.sent_s;
        flow.delay_min_s = std::min(flow.delay_min_s, delay_s);
        flow.delay_max_s = std::max(flow.delay_max_s, delay_s);
        flow.newest_sent_s = datagram.sent_s;
        flow.newest_at_s = datagram.at_s;
        flow.delivered_bytes += kDatagramBytes;
        flow.on_the_way.pop_front();
      }
      PathReport status;
      status.received_end = flow.arrived_end;
      status.received = flow.arrived;
      flow.lost = std::max(flow.lost, flow.arrived_end - flow.arrived);
      status.lost = flow.lost;
      status.bytes_received = flow.arrived * 8192;
      status.delay_known = flow.delay_min_s < 1e8;
      status.delay_min_ns = static_cast<int64_t>(status.delay_known ? flow.delay_min_s * 1e9 : 0);
      if (status.delay_known)
        status.delay_spread_ns = static_cast<uint64_t>((flow.delay_max_s - flow.delay_min_s) * 1e9);
      if (flow.newest_sent_s >= 0) {  // without the time that the receiver held it
        status.rtt_ns = static_cast<uint64_t>((flow.newest_at_s - flow.newest_sent_s + flow.rtt_s / 2) * 1e9);
      }
      flow.delay_min_s = 1e9;
      flow.delay_max_s = -1e9;
      if (chance() >= link.status_loss) pending_.push_back({&flow, at_s + flow.rtt_s / 2, status});
    }
    for (auto it = pending_.begin(); it != pending_.end();) {
      if (it->flow == &flow && it->at_s <= now_s) {
        PathReport next = it->status;
        next.last_peer_ns = at_ns(it->at_s);
        next.rtt_min_ns = flow.report.rtt_min_ns;
        if (next.rtt_ns == 0) next.rtt_ns = flow.report.rtt_ns;
        if (next.rtt_ns != 0)
          next.rtt_min_ns = next.rtt_min_ns == 0 ? next.rtt_ns : std::min(next.rtt_min_ns, next.rtt_ns);
        next.statuses = flow.report.statuses + 1;
        next.datagram_bytes = flow.report.datagram_bytes;
        if (!next.delay_known) next.delay_min_ns = flow.report.delay_min_ns;
        flow.report = next;
        it = pending_.erase(it);
      } else {
        ++it;
      }
    }
  }

  struct Sending {
    double at_s;
    Flow* flow;
  };
  void serve() {
    sendings_.clear();
    for (auto& flow : flows) {
      if (now_s < flow->start_s) continue;
      if (!flow->controller) {
        const double room = std::floor(flow->window - flow->in_flight);
        const double gap = flow->rtt_s / std::max(1.0, flow->window);
        for (int i = 0; i < room && i * gap < tick_s; ++i) sendings_.push_back({now_s + i * gap, flow.get()});
        continue;
      }
      const double rate_bps = static_cast<double>(flow->controller->rate_bps());
      flow->next_send_s = std::max(flow->next_send_s, now_s);
      while (rate_bps > 0 && flow->next_send_s < now_s + tick_s) {
        sendings_.push_back({flow->next_send_s, flow.get()});
        flow->next_send_s += kDatagramBytes * 8 / rate_bps;
      }
    }
    std::stable_sort(sendings_.begin(), sendings_.end(),
                     [](const Sending& a, const Sending& b) { return a.at_s < b.at_s; });
    for (const Sending& each : sendings_) send(*each.flow, each.at_s);
  }
  void send(Flow& flow, double at_s) {
    const uint64_t number = flow.sent++;
    flow.sent_bytes += kDatagramBytes;
    flow.in_flight += 1;
    const double frame_s = kDatagramBytes * 8 / link.capacity_bps;
    if (link.policer_bps > 0) {
      bucket_bytes_ =
          std::min(64 * kDatagramBytes, bucket_bytes_ + (at_s - bucket_s_) * link.policer_bps / 8);
      bucket_s_ = at_s;
      if (bucket_bytes_ < kDatagramBytes) return drop(flow, at_s);
      bucket_bytes_ -= kDatagramBytes;
    }
    const double waits_s = std::max(0.0, busy_until_s_ - at_s);
    if (waits_s * link.capacity_bps / 8 + kDatagramBytes > link.buffer_bytes + kDatagramBytes)
      return drop(flow, at_s);
    busy_until_s_ = std::max(busy_until_s_, at_s) + frame_s;
    if (chance() < link.loss) return drop(flow, busy_until_s_);
    double arrives_s = busy_until_s_ + flow.rtt_s / 2 + chance() * link.jitter_s;
    if (flow.controller) {
      if (!flow.on_the_way.empty()) arrives_s = std::max(arrives_s, flow.on_the_way.back().at_s);
      flow.on_the_way.push_back({arrives_s, at_s, number});
    } else {
      flow.acks.push_back({arrives_s + flow.rtt_s / 2, false});
      flow.delivered_bytes += kDatagramBytes;
    }
  }
  void drop(Flow& flow, double at_s) {
    flow.dropped_bytes += kDatagramBytes;
    // Three later ones tell of it about a round trip later.
    if (!flow.controller) flow.acks.push_back({std::max(at_s, busy_until_s_) + flow.rtt_s, true});
  }

  // ---- a TCP -----------------------------------------------------------------------------------
  void acknowledge(Flow& flow) {
    while (!flow.acks.empty() && flow.acks.front().at_s <= now_s) {
      const Flow::Ack ack = flow.acks.front();
      flow.acks.pop_front();
      flow.in_flight -= 1;
      ack.lost ? cut(flow, ack.at_s) : grow(flow, ack.at_s);
    }
  }
  static void grow(Flow& flow, double at_s) {
    if (flow.window < flow.threshold) {
      flow.window += 1;
      return;
    }
    const double t = at_s - flow.epoch_s;
    const double cubic = 0.4 * std::pow(t - flow.k, 3) + flow.window_max;
    const double reno = flow.window_max * 0.7 + 0.53 * t / flow.rtt_s;
    const double target = std::min(std::max(cubic, reno), 1.5 * flow.window);
    if (target > flow.window) flow.window += (target - flow.window) / flow.window;
  }
  static void cut(Flow& flow, double at_s) {
    if (at_s - flow.cut_s < flow.rtt_s) return;
    flow.cut_s = at_s;
    flow.window_max = flow.window < flow.window_max ? flow.window * 0.85 : flow.window;
    flow.window = flow.threshold = std::max(2.0, 0.7 * flow.window);
    flow.epoch_s = at_s;
    flow.k = std::cbrt(flow.window_max * 0.3 / 0.4);
  }

  struct Pending {
    Flow* flow;
    double at_s;
    PathReport status;
  };
  std::mt19937_64 random_;
  double busy_until_s_ = 0;
  double bucket_bytes_ = 0;
  double bucket_s_ = 0;
  std::vector<Sending> sendings_;
  std::deque<Pending> pending_;
};

}  // namespace sluice::rate
