// SPDX-License-Identifier: Apache-2.0
#include "control/transfer/pace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "dataplane/base/utc.h"

namespace sluice::transfer {
namespace {

using deadline::Forecast;
using deadline::Policy;

constexpr double kPerNs = 1e-9;
// More than the bare need: it is not known to the last bit, and what is lost is sent again.
constexpr double kReserve = 1.1;
// That the chance has recovered is said somewhat above half, so that it is not said all the time.
constexpr double kRecovered = 0.6;
constexpr double kYearsS = 20 * 365.0 * 86400;

template <typename T>
void keep_last(std::vector<T>& all, T one) {
  if (all.size() == Pace::kSamplesMax) all.erase(all.begin());
  all.push_back(one);
}

double around_bytes() { return rate::datagram_overhead_bytes(true) + rate::kEthernetBytes; }

int64_t later(int64_t unix_ns, double seconds) {
  return unix_ns + static_cast<int64_t>(std::min(seconds, kYearsS) * 1e9);
}

}  // namespace

double data_bps(uint64_t wire_bps, uint32_t chunk_bytes) {
  return static_cast<double>(wire_bps) * chunk_bytes / (chunk_bytes + around_bytes());
}

uint64_t wire_bps(double data_bps, uint32_t chunk_bytes) {
  if (chunk_bytes == 0) return 0;
  return static_cast<uint64_t>(std::min(data_bps, 1e18) * (chunk_bytes + around_bytes()) / chunk_bytes);
}

bool is_generated(const Request& request) {
  const std::vector<std::string>& paths = request.source_paths;
  return request.discards() || std::all_of(paths.begin(), paths.end(), [](const std::string& path) {
           return path.starts_with(kMemoryPrefix);
         });
}

deadline::Load load_of(const Request& request, const std::string& peer, Role role) {
  return {.path = {.peer = peer, .outgoing = role == Role::kSource, .generated = is_generated(request)},
          .order = INT64_MAX,
          .bytes_left = request.source_bytes,
          .cap_bps = data_bps(request.options.rate_bps, request.options.chunk_bytes)};
}

// The newcomer is to have reserved what it needs, as it will once it runs.
deadline::Question foresee(const deadline::Outlook& outlook, const deadline::Load& load, int64_t left_ns,
                           uint64_t now_ns) {
  deadline::Load one = load;
  one.bytes_left = std::max<uint64_t>(1, load.bytes_left);
  const double left_s = static_cast<double>(left_ns) * kPerNs;
  if (left_s > 0) one.reserved_bps = kReserve * 8 * static_cast<double>(one.bytes_left) / left_s;
  return {.bytes_left = one.bytes_left,
          .seconds_left = left_s,
          .besides_s = outlook.besides_s(one.path, one.bytes_left, now_ns),
          .cap_bps = one.cap_bps,
          .speed = outlook.speed(one.path, now_ns),
          .ahead_s = outlook.ahead_s("", one, now_ns).value_or(kYearsS)};
}

// ---- what it knows -----------------------------------------------------------------------------

double Pace::seconds_left(const Sight& sight) const {
  return static_cast<double>(deadline_unix_ns_ - sight.unix_now_ns) * kPerNs;
}

std::optional<deadline::Speed> Pace::own_speed() const {
  std::optional<deadline::Speed> speed = deadline::speed_of(samples_bps_);
  if (speed) speed->limit = deadline::most_of(limits_);
  return speed;
}

deadline::Load Pace::load(const Sight& sight) const {
  deadline::Load load = sight.load;
  load.running = sight.stage == Stage::kMoves;
  load.rate_bps = load.running ? rate_bps_ : 0;
  load.reserved_bps = reserved_bps_;
  return load;
}

deadline::Question Pace::question(const Sight& sight, uint64_t now_ns) const {
  deadline::Question question{.bytes_left = sight.load.bytes_left,
                              .seconds_left = seconds_left(sight),
                              .cap_bps = sight.load.cap_bps};
  if (sight.stage == Stage::kMoves) question.speed = own_speed();
  if (question.speed) return question;  // that is what it has beside the others
  question.speed = outlook_->speed(sight.load.path, now_ns);
  // Once it moves, its beginning is over.
  if (sight.stage != Stage::kMoves)
    question.besides_s = outlook_->besides_s(sight.load.path, sight.load.bytes_left, now_ns);
  question.ahead_s = outlook_->ahead_s(id_, load(sight), now_ns).value_or(kYearsS);
  return question;
}

std::optional<Pace::Prospect> Pace::prospect(const Sight& sight, uint64_t now_ns) const {
  if (!sight.size_known) return std::nullopt;
  const double left_s = seconds_left(sight);
  if (sight.load.bytes_left == 0) return Prospect{.chance = left_s >= 0 ? 1.0 : 0.0, .ends_s = 0};
  const deadline::Question asked = question(sight, now_ns);
  if (!asked.speed) {
    if (left_s <= 0) return Prospect{};
    return std::nullopt;
  }
  deadline::Speed speed = *asked.speed;
  const double bits = 8 * static_cast<double>(asked.bytes_left) + asked.ahead_s.value_or(0) * speed.mean_bps;
  if (asked.cap_bps < speed.mean_bps) {
    speed.deviation_bps = 0;
    speed.mean_bps = asked.cap_bps;
  }
  Prospect prospect{.chance = deadline::chance(speed, bits, left_s - asked.besides_s)};
  if (speed.mean_bps > 0) prospect.ends_s = bits / speed.mean_bps + asked.besides_s;
  return prospect;
}

// ---- looking -----------------------------------------------------------------------------------

void Pace::leave() {
  if (std::exchange(listed_, false)) outlook_->remove(id_);
  stage_ = Stage::kAway;
}

uint64_t Pace::due_ns() const {
  if (deadline_unix_ns_ == 0) return UINT64_MAX;
  return std::min(deadline_ns_, stage_ == Stage::kWaits ? looked_ns_ + kLookNs : UINT64_MAX);
}

// The seconds of the beginning say nothing, and neither does a part of a second.
void Pace::measure(const Sight& sight, uint64_t now_ns) {
  if (stage_ != Stage::kMoves) {
    began_ns_ = now_ns;
    rate_bps_ = 0;
  } else {
    const double seconds = static_cast<double>(now_ns - looked_ns_) * kPerNs;
    const uint64_t bytes = sight.bytes_arrived - std::min(sight.bytes_arrived, bytes_);
    rate_bps_ = 8 * static_cast<double>(bytes) / seconds;
  }
  bytes_ = sight.bytes_arrived;
}

std::optional<Error> Pace::look(const Sight& sight, uint64_t now_ns, Effects& out) {
  const bool whole_second = stage_ == Stage::kMoves && now_ns >= looked_ns_ + kLookNs;
  if (sight.stage == Stage::kMoves) measure(sight, now_ns);
  stage_ = sight.stage;
  looked_ns_ = now_ns;
  const double left_s = seconds_left(sight);
  if (deadline_unix_ns_ != 0) {
    const int64_t left_ns = deadline_unix_ns_ - sight.unix_now_ns;
    deadline_ns_ = left_ns > 0 ? now_ns + static_cast<uint64_t>(left_ns) : UINT64_MAX;
  }
  reserved_bps_ = 0;
  if (deadline_unix_ns_ != 0 && policy_ != Policy::kEnd && left_s > 0 && sight.size_known)
    reserved_bps_ = kReserve * 8 * static_cast<double>(sight.load.bytes_left) / left_s;
  if (stage_ == Stage::kAway || !sight.size_known) {
    if (std::exchange(listed_, false)) outlook_->remove(id_);
  } else {
    outlook_->set(id_, load(sight));
    listed_ = true;
    if (whole_second && stage_ == Stage::kMoves && now_ns >= began_ns_ + kBeginningNs &&
        sight.load.bytes_left != 0) {
      keep_last(samples_bps_, rate_bps_);
      keep_last(limits_, sight.limit);
      outlook_->sample(id_, {.rate_bps = rate_bps_, .limit = sight.limit}, now_ns);
    }
  }
  if (deadline_unix_ns_ == 0) return std::nullopt;
  return judge(sight, now_ns, out);
}

std::optional<Error> Pace::judge(const Sight& sight, uint64_t now_ns, Effects& out) {
  const double left_s = seconds_left(sight);
  if (left_s <= 0) {
    if (std::exchange(passed_, true)) return std::nullopt;
    const std::string what = fmt::format("the deadline {} is over", base::utc_text(deadline_unix_ns_));
    if (policy_ != Policy::kStop && policy_ != Policy::kEnd) {
      out.log(LogLevel::kWarn, what + ": the session goes on and will be late");
      return std::nullopt;
    }
    return Error{
        ErrorCode::kDeadline,
        fmt::format("{}, as --deadline-policy {} has it the session ends: begin it again with a later "
                    "one",
                    what, policy_ == Policy::kEnd ? "end" : "stop")};
  }
  if (policy_ == Policy::kEnd) return std::nullopt;
  if (!sight.size_known || stage_ == Stage::kAway) return std::nullopt;
  if (admission_ != DeadlineAdmission::kNone) {
    say_chance(sight, now_ns, out);
    return std::nullopt;
  }
  const bool measured = samples_bps_.size() >= kForecastSamples;
  if (std::exchange(foreseen_, true) && !measured) return std::nullopt;
  const deadline::Question asked = question(sight, now_ns);
  Forecast forecast = deadline::judge(asked);
  if (forecast.answer == Forecast::Answer::kUnknown) return std::nullopt;
  judged_ = true;
  admission_ = DeadlineAdmission::kAdmitted;
  if (forecast.answer == Forecast::Answer::kKept) return std::nullopt;
  // It would be in time alone: what holds it are the others.
  const double all_bps = forecast.have_bps + outlook_->others_bps(id_, sight.load.path);
  if (measured && forecast.limit != deadline::Limit::kCap && all_bps > forecast.have_bps &&
      all_bps >= forecast.needed_bps) {
    forecast.limit = deadline::Limit::kQueue;
    forecast.have_bps = all_bps;
  }
  Error error = deadline::refusal(forecast, asked, deadline_unix_ns_, sight.unix_now_ns);
  if (policy_ != Policy::kWarn) return error;
  admission_ = DeadlineAdmission::kDoubtful;
  unlikely_ = true;
  out.log(LogLevel::kWarn, error.message);
  return std::nullopt;
}

void Pace::say_chance(const Sight& sight, uint64_t now_ns, Effects& out) {
  const std::optional<Prospect> prospect = this->prospect(sight, now_ns);
  if (!prospect) return;
  if (unlikely_ ? prospect->chance < kRecovered : prospect->chance >= deadline::kAdmittedChance) return;
  unlikely_ = !unlikely_;
  const std::string end =
      prospect->ends_s && *prospect->ends_s < kYearsS
          ? "its end is expected at " + base::utc_text(later(sight.unix_now_ns, *prospect->ends_s))
          : "no end is in sight";
  out.log(unlikely_ ? LogLevel::kWarn : LogLevel::kInfo,
          fmt::format("the chance to keep the deadline {} {} {:.0f} %: {}", base::utc_text(deadline_unix_ns_),
                      unlikely_ ? "has fallen to" : "is again", 100 * prospect->chance, end));
}

// ---- for others --------------------------------------------------------------------------------

std::optional<DeadlineView> Pace::view(const Sight& sight, uint64_t now_ns) const {
  if (deadline_unix_ns_ == 0) return std::nullopt;
  DeadlineView view{.deadline_unix_ns = deadline_unix_ns_};
  view.state = admission_ == DeadlineAdmission::kAdmitted   ? DeadlineState::kAdmitted
               : admission_ == DeadlineAdmission::kDoubtful ? DeadlineState::kDoubtful
                                                            : DeadlineState::kMeasuring;
  if (sight.unix_now_ns > deadline_unix_ns_) {
    view.state = DeadlineState::kLate;
    view.late_ns = static_cast<uint64_t>(sight.unix_now_ns - deadline_unix_ns_);
  }
  const std::optional<Prospect> prospect =
      policy_ == Policy::kEnd ? std::nullopt : this->prospect(sight, now_ns);
  if (!prospect) return view;
  view.chance = prospect->chance;
  if (prospect->ends_s && *prospect->ends_s < kYearsS)
    view.expected_end_unix_ns = later(sight.unix_now_ns, *prospect->ends_s);
  return view;
}

std::optional<DeadlineView> deadline_of_end(int64_t deadline_unix_ns, int64_t ended_unix_ns, bool succeeded) {
  if (deadline_unix_ns == 0) return std::nullopt;
  const bool late = ended_unix_ns > deadline_unix_ns;
  return DeadlineView{.deadline_unix_ns = deadline_unix_ns,
                      .state = succeeded && !late ? DeadlineState::kKept : DeadlineState::kMissed,
                      .late_ns = late ? static_cast<uint64_t>(ended_unix_ns - deadline_unix_ns) : 0};
}

Error late_error(const DeadlineView& deadline) {
  return {ErrorCode::kLate, fmt::format("done and verified, but {:.1f} s after the deadline {}",
                                        static_cast<double>(deadline.late_ns) * kPerNs,
                                        base::utc_text(deadline.deadline_unix_ns))};
}

}  // namespace sluice::transfer
