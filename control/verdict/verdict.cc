// SPDX-License-Identifier: Apache-2.0
#include "control/verdict/verdict.h"

#include <fmt/format.h>

#include <algorithm>

#include "dataplane/base/counted.h"

namespace sluice::verdict {
namespace {

using board::Load;
using rate::Condition;

// A worker that has something to do for so much of the time has none left: it polls in between.
constexpr double kFull = 0.85;
constexpr double kMostly = 0.5;  // of a worker that waited for nothing besides
// A disk that is written or read for so much of the time is what is waited for, when something is.
constexpr double kDiskBusy = 0.5;
// What held it for less of the time than this does not explain its rate.
constexpr double kTelling = 0.3;
// Unless the source's disk has work all the time: then little of it is enough, whatever else waits for it.
constexpr double kTellingOfDisk = 0.1;
constexpr double kNearly = 0.95;
// Loss below this is noise: nothing yields to it, and a repair hides in a round trip.
constexpr double kLossTells = 1e-3;
constexpr double kHoldsCredit = 0.01;  // of chunks lost: extents with holes hold the window
constexpr uint64_t kEnoughShare = 2;   // half of what is wanted fills the path (board::memory_wait)

double share_of(uint64_t part, uint64_t all) {
  return all == 0 ? 0 : std::min(1.0, static_cast<double>(part) / static_cast<double>(all));
}

std::string percent(double share) { return fmt::format("{:.0f} %", share * 100); }
// Losses are small numbers that matter.
std::string fine_percent(double share) { return fmt::format("{:.2f} %", share * 100); }
std::string gbps(uint64_t bps) {
  return bps < 1'000'000'000 ? fmt::format("{:.1f} Mbit/s", static_cast<double>(bps) * 1e-6)
                             : fmt::format("{:.2f} Gbit/s", static_cast<double>(bps) * 1e-9);
}
std::string ms(uint64_t ns) { return fmt::format("{:.1f} ms", static_cast<double>(ns) * 1e-6); }

std::string cpu_line(std::string_view whose, const Load& load) {
  return fmt::format("the busiest worker {} had something to do, or not its core, {} of the time", whose,
                     percent(load.busy));
}
std::string write_line(const Load& load) {
  return fmt::format("the destination was writing {} of the time, a write took {}", percent(load.writing),
                     ms(load.write_ns));
}
std::string ring_line(const Load& load) {
  return fmt::format("the destination's receive ring had no room for {} datagrams", load.missed);
}

// What the judge works with: how much of the time each thing held the sender.
class Judge {
 public:
  explicit Judge(const Sight& sight) : s_(sight), time_ns_(sight.interval_ns * std::max(1U, sight.lanes)) {}

  Verdict verdict() const {
    if (s_.interval_ns == 0) return {};
    if (!s_.nothing_arrives.empty())
      return {.cause = Cause::kNetwork, .share = 1, .evidence = s_.nothing_arrives};
    if (s_.all_sent) return finishing();
    const double source = share_of(s_.blocked.source_ns, time_ns_);
    const double credit = share_of(s_.blocked.credit_ns, time_ns_);
    const double memory = share_of(s_.blocked.memory_ns, time_ns_);
    const double pacing = share_of(s_.blocked.pacing_ns, time_ns_);
    const double most = std::max({source, credit, memory, pacing});
    if (disk_advises() && most > source) return destination_disk(std::max(most, s_.there->writing));
    // A worker without time finds less to wait for: what it waits for is what it has not looked at.
    if (s_.here.busy >= kFull && most < 1 - kFull + kTelling) return sender_cpu();
    const bool reads_always = s_.here.reading >= kFull && source >= kTellingOfDisk;
    if (reads_always && source >= std::max(credit, memory)) return source_disk(source);
    if (most < kTelling) return unblocked(1 - std::min(1.0, source + credit + memory + pacing));
    if (most == source) return source_disk(source);
    if (most == pacing) return paced(pacing);
    return held(std::max(credit, memory), memory > credit);
  }

 private:
  double loss() const { return share_of(s_.lost, s_.sent); }
  bool receiver_is_full() const { return s_.there && s_.there->busy >= kFull; }
  bool receiver_writes() const { return s_.there && s_.there->writing >= kDiskBusy; }
  // Its disk has work all the time and keeps up with less than the session might send: whatever else takes
  // time.
  bool disk_advises() const {
    return s_.rate.advice_bps != 0 && receiver_writes() &&
           static_cast<double>(s_.rate.advice_bps) <= kNearly * static_cast<double>(s_.rate.cap_bps);
  }
  // What was lost was lost at the destination's door.
  bool ring_overflows() const { return s_.there && s_.there->missed != 0 && 2 * s_.there->missed >= s_.lost; }
  std::string loss_line() const {
    return fmt::format("{} of the chunks were lost on the way", fine_percent(loss()));
  }
  std::string rtt_line() const {
    return fmt::format("the round trip is {}, and {} on an empty path", ms(s_.rtt_ns), ms(s_.rtt_min_ns));
  }
  std::string rate_line() const {
    return fmt::format("paced at {}, of {} that it may have", gbps(s_.rate.now_bps), gbps(s_.rate.cap_bps));
  }

  Verdict finishing() const {
    Verdict verdict{.cause = Cause::kDestinationDisk, .share = 1};
    verdict.evidence.emplace_back("everything has been sent: the destination is making it durable");
    if (s_.there && s_.there->writing > 0) verdict.evidence.push_back(write_line(*s_.there));
    return verdict;
  }

  Verdict source_disk(double share) const {
    Verdict verdict{.cause = Cause::kSourceDisk, .share = share};
    verdict.evidence.push_back(fmt::format("the sender waited {} of the time for reads", percent(share)));
    if (s_.here.reading > 0) {
      verdict.evidence.push_back(fmt::format("the source was reading {} of the time, a read took {}",
                                             percent(s_.here.reading), ms(s_.here.read_ns)));
    }
    return verdict;
  }

  Verdict sender_cpu() const {
    return {
        .cause = Cause::kSenderCpu, .share = s_.here.busy, .evidence = {cpu_line("of the source", s_.here)}};
  }

  // It sent all the time, or had nothing to send.
  Verdict unblocked(double share) const {
    if (s_.rate.condition >= Condition::kCrawling) return silent(share);
    if (receiver_is_full()) return receiver_cpu(s_.there->busy);
    if (s_.there && s_.there->writing >= kFull) {
      return {
          .cause = Cause::kDestinationDisk, .share = s_.there->writing, .evidence = {write_line(*s_.there)}};
    }
    // It waited for nothing: what else took its time was its own work, or others who had its core.
    if (s_.refused == 0) return s_.here.busy >= kMostly ? sender_cpu() : Verdict{};
    return {.cause = Cause::kNetwork,
            .share = share,
            .evidence = {fmt::format("the source's device took no more {}: the link is full",
                                     base::counted(s_.refused, "time")),
                         rate_line()}};
  }

  Verdict receiver_cpu(double share) const {
    Verdict verdict{.cause = Cause::kReceiverCpu,
                    .share = share,
                    .evidence = {cpu_line("of the destination", *s_.there)}};
    if (s_.there->missed != 0) verdict.evidence.push_back(ring_line(*s_.there));
    return verdict;
  }

  Verdict destination_disk(double share) const {
    Verdict verdict{.cause = Cause::kDestinationDisk, .share = share};
    if (s_.rate.advice_bps != 0) {
      verdict.evidence.push_back(
          fmt::format("the destination says that its disk keeps up with {}", gbps(s_.rate.advice_bps)));
    }
    if (s_.no_room != 0) {
      verdict.evidence.push_back(
          fmt::format("the destination had no buffer for {} until its disk had written others",
                      base::counted(s_.no_room, "chunk")));
    }
    if (s_.there) verdict.evidence.push_back(write_line(*s_.there));
    if (s_.rate.advice_bps == 0 && s_.no_room == 0) {
      verdict.evidence.push_back(
          fmt::format("the sender waited {} of the time for extents to be written", percent(share)));
    }
    return verdict;
  }

  Verdict limit(double share) const {
    Verdict verdict{.cause = Cause::kLimit, .share = share};
    static constexpr std::array<std::string_view, 3> kWhose = {
        "of --rate, or of a [port] rate", "of 'session limit' here",
        "of the destination: its --rate, or 'session limit' there"};
    verdict.evidence.push_back(
        fmt::format("the sender waited {} of the time because it may send no faster", percent(share)));
    verdict.evidence.push_back(s_.rate.condition == Condition::kRamping
                                   ? rate_line() + ": it is still ramping up"
                                   : fmt::format("paced at {}, the limit {}", gbps(s_.rate.now_bps),
                                                 kWhose[static_cast<size_t>(s_.rate.cap_of)]));
    return verdict;
  }

  Verdict network(double share, std::string line) const {
    Verdict verdict{.cause = Cause::kNetwork, .share = share, .evidence = {rate_line(), std::move(line)}};
    if (s_.rtt_ns != 0) verdict.evidence.push_back(rtt_line());
    return verdict;
  }

  // The rate of the crawl says nothing of the path.
  Verdict silent(double share) const {
    Verdict verdict{.cause = Cause::kNetwork,
                    .share = share,
                    .evidence = {"the destination has not been heard for a while"}};
    if (s_.rtt_ns != 0) verdict.evidence.push_back(rtt_line());
    return verdict;
  }

  // Loss or a queue: on the path, or at the destination's door.
  Verdict congested(double share, std::string line) const {
    if (receiver_is_full()) return receiver_cpu(share);
    if (ring_overflows()) {
      return {.cause = Cause::kReceiverRing,
              .share = share,
              .evidence = {ring_line(*s_.there), loss_line(), cpu_line("of the destination", *s_.there)}};
    }
    return network(share, std::move(line));
  }

  // Data was ready, and the pacer held it.
  Verdict paced(double share) const {
    const Sight::Rate& rate = s_.rate;
    const auto now_bps = static_cast<double>(rate.now_bps);
    const bool at_cap = now_bps >= kNearly * static_cast<double>(rate.cap_bps);
    // Advice comes and goes as buffers fill up and are free again, and the rate with it.
    const bool advised = rate.advice_bps != 0 &&
                         (receiver_writes() || static_cast<double>(rate.advice_bps) * kNearly <= now_bps);
    if (advised && (receiver_writes() || !at_cap)) return destination_disk(share);
    if (rate.condition >= Condition::kCrawling) return silent(share);
    if (at_cap) return limit(share);
    if (s_.no_room > s_.lost) return destination_disk(share);
    if (rate.condition == Condition::kYielding || loss() >= kLossTells) return congested(share, loss_line());
    if (rate.condition == Condition::kRamping) return limit(share);
    if (receiver_writes()) return destination_disk(share);
    return congested(share, rate.condition == Condition::kYieldingToOthers
                                ? "other traffic fills the path's queue"
                                : "the path carries no more without a queue");
  }

  // All that the sender may have on its way is on its way.
  Verdict held(double share, bool by_memory) const {
    const uint64_t enough = s_.window.wanted / kEnoughShare;
    if (by_memory && s_.window.used == 0) {
      return {.cause = Cause::kSenderMemory,
              .share = share,
              .evidence = {"other sessions hold all buffers: raise [dataplane] memory_mib at the source"}};
    }
    if (by_memory && s_.window.used < enough) {
      return {.cause = Cause::kSenderMemory,
              .share = share,
              .evidence = {fmt::format("buffers for {} of {} extents that the path takes: raise [dataplane] "
                                       "memory_mib at the source",
                                       s_.window.used, s_.window.wanted)}};
    }
    if (!by_memory && s_.window.granted < enough && !receiver_writes()) {
      return {.cause = Cause::kCredit,
              .share = share,
              .evidence = {fmt::format("the sender waited {} of the time for credit", percent(share)),
                           fmt::format("credit for {} of {} extents that the path takes: raise [dataplane] "
                                       "memory_mib at the destination",
                                       s_.window.granted, s_.window.wanted)}};
    }
    if (receiver_writes() || s_.rate.advice_bps != 0 || s_.no_room > s_.lost) return destination_disk(share);
    if (receiver_is_full()) return receiver_cpu(share);
    if (loss() >= kHoldsCredit) return congested(share, loss_line());
    return destination_disk(share);
  }

  const Sight& s_;
  const uint64_t time_ns_;
};

}  // namespace

std::string_view cause_name(Cause cause) { return kCauseNames[static_cast<size_t>(cause)]; }

Cause cause_of(uint64_t number) {
  return number < kCauseNames.size() ? static_cast<Cause>(number) : Cause::kNone;
}

Verdict judge(const Sight& sight) { return Judge(sight).verdict(); }

Verdict judge(const ReceiverSight& sight) {
  const Load& here = sight.here;
  if (here.writing >= kDiskBusy && (sight.no_room != 0 || here.writing >= kFull))
    return {.cause = Cause::kDestinationDisk, .share = here.writing, .evidence = {write_line(here)}};
  if (here.busy >= kFull)
    return {
        .cause = Cause::kReceiverCpu, .share = here.busy, .evidence = {cpu_line("of the destination", here)}};
  if (here.missed != 0 && 2 * here.missed >= sight.lost) {
    return {.cause = Cause::kReceiverRing,
            .share = share_of(here.missed, here.missed + sight.came),
            .evidence = {ring_line(here)}};
  }
  return {};
}

}  // namespace sluice::verdict
