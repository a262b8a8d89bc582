// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/when.h"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <ctime>
#include <optional>
#include <regex>

namespace sluice::cli {
namespace {

constexpr int64_t kSecondNs = 1'000'000'000;
constexpr int64_t kSpanMaxS = 10LL * 365 * 86400;

enum class Side : uint8_t { kAhead, kPast };

Error usage(const std::string& text, const std::string& why) {
  return {ErrorCode::kUsage, "'" + text + "' " + why +
                                 ": give a span (2h30m, 90s), a time of day (18:00), or a date and time "
                                 "(2026-11-22T18:00:00Z)"};
}

int64_t number(const std::ssub_match& match) { return match.matched ? std::stoll(match.str()) : 0; }

std::optional<int64_t> span_s(const std::smatch& m) {
  // Nine digits at most: no sum of these overflows.
  const int64_t seconds = number(m[1]) * 86400 + number(m[2]) * 3600 + number(m[3]) * 60 + number(m[4]);
  return seconds > 0 && seconds <= kSpanMaxS ? std::optional(seconds) : std::nullopt;
}

bool is_time_of_day(const std::tm& time) {
  return time.tm_hour <= 23 && time.tm_min <= 59 && time.tm_sec <= 59;
}

// A date that there is: the calendar gives it back unchanged.
std::optional<int64_t> utc_s(const std::tm& time) {
  std::tm same = time;
  const std::time_t seconds = ::timegm(&same);
  if (same.tm_mday != time.tm_mday || same.tm_mon != time.tm_mon) return std::nullopt;
  return seconds;
}

int64_t local_s(std::tm time) {
  time.tm_isdst = -1;
  return std::mktime(&time);
}

// Seconds that a zone is ahead of UTC.
std::optional<int64_t> zone_s(const std::string& zone) {
  if (zone == "Z" || zone == "z") return 0;
  const int64_t hours = std::stoll(zone.substr(1, 2));
  const int64_t minutes = std::stoll(zone.substr(zone.size() - 2));
  if (hours > 14 || minutes > 59) return std::nullopt;
  return (zone[0] == '-' ? -1 : 1) * (hours * 3600 + minutes * 60);
}

std::tm local_day(int64_t unix_s) {
  const std::time_t seconds = unix_s;
  std::tm day{};
  ::localtime_r(&seconds, &day);
  return day;
}

// The next one, or the last one.
Result<int64_t> time_of_day(const std::string& text, const std::smatch& m, int64_t now_s, Side side) {
  std::tm time = local_day(now_s);
  time.tm_hour = static_cast<int>(number(m[1]));
  time.tm_min = static_cast<int>(number(m[2]));
  time.tm_sec = static_cast<int>(number(m[3]));
  if (!is_time_of_day(time)) return usage(text, "is no time of day");
  int64_t seconds = local_s(time);
  if (side == Side::kAhead ? seconds <= now_s : seconds > now_s) {
    time.tm_mday += side == Side::kAhead ? 1 : -1;
    seconds = local_s(time);
  }
  return seconds;
}

Result<int64_t> date_and_time(const std::string& text, const std::smatch& m) {
  std::tm time{};
  time.tm_year = static_cast<int>(number(m[1])) - 1900;
  time.tm_mon = static_cast<int>(number(m[2])) - 1;
  time.tm_mday = static_cast<int>(number(m[3]));
  time.tm_hour = static_cast<int>(number(m[4]));
  time.tm_min = static_cast<int>(number(m[5]));
  time.tm_sec = static_cast<int>(number(m[6]));
  const std::optional<int64_t> seconds = utc_s(time);
  if (time.tm_year < 70 || !seconds || !is_time_of_day(time)) return usage(text, "is no date and time");
  if (!m[7].matched) return local_s(time);
  const std::optional<int64_t> ahead_s = zone_s(m[7].str());
  if (!ahead_s) return usage(text, "has no such time zone");
  return *seconds - *ahead_s;
}

const std::regex& span_pattern() {
  static const std::regex span(R"(\+?(?:(\d{1,9})d)?(?:(\d{1,9})h)?(?:(\d{1,9})m)?(?:(\d{1,9})s)?)");
  return span;
}

Result<int64_t> moment_ns(const std::string& text, int64_t unix_now_ns, Side side) {
  static const std::regex day_time(R"((\d{1,2}):(\d{2})(?::(\d{2}))?)");
  static const std::regex date_time(
      R"((\d{4})-(\d{2})-(\d{2})(?:[Tt ](\d{2}):(\d{2})(?::(\d{2}))?([Zz]|[+-]\d{2}:?\d{2})?)?)");
  std::smatch m;
  if (std::regex_match(text, m, span_pattern())) {
    const std::optional<int64_t> seconds = span_s(m);
    if (!seconds) return usage(text, "is no span between a second and ten years");
    return unix_now_ns + (side == Side::kAhead ? *seconds : -*seconds) * kSecondNs;
  }
  Result<int64_t> seconds = usage(text, "is no time");
  if (std::regex_match(text, m, day_time)) {
    seconds = time_of_day(text, m, unix_now_ns / kSecondNs, side);
  } else if (std::regex_match(text, m, date_time) && (side == Side::kPast || m[4].matched)) {
    seconds = date_and_time(text, m);  // a deadline on a day could mean its beginning or its end
  }
  if (!seconds) return seconds.error();
  if (*seconds - unix_now_ns / kSecondNs > kSpanMaxS)  // also more than nanoseconds can say
    return usage(text, side == Side::kAhead ? "is more than ten years away" : "is yet to come");
  return *seconds * kSecondNs;
}

}  // namespace

Result<int64_t> parse_when(const std::string& text, int64_t unix_now_ns) {
  const Result<int64_t> when_ns = moment_ns(text, unix_now_ns, Side::kAhead);
  if (!when_ns) return when_ns.error();
  if (*when_ns <= unix_now_ns) return usage(text, "has passed");
  return when_ns;
}

Result<int64_t> parse_since(const std::string& text, int64_t unix_now_ns) {
  const Result<int64_t> when_ns = moment_ns(text, unix_now_ns, Side::kPast);
  if (when_ns && *when_ns > unix_now_ns) return usage(text, "is yet to come");
  return when_ns;
}

Result<int64_t> parse_span(const std::string& text) {
  std::smatch m;
  const bool is_span = std::regex_match(text, m, span_pattern());
  if (const auto seconds = is_span ? span_s(m) : std::nullopt) return *seconds;
  return Error{ErrorCode::kUsage,
               "'" + text + "' is no span between a second and ten years: write 90s, 2h30m or 365d"};
}

int64_t unix_now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::string format_date(int64_t unix_ns, int64_t unix_now_ns) {
  constexpr std::array kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                  "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  constexpr int64_t kHalfYearNs = 182 * 86'400 * kSecondNs;
  const std::tm when = local_day(unix_ns / kSecondNs);
  const std::string day =
      fmt::format("{} {:>2}", kMonths[static_cast<size_t>(when.tm_mon) % kMonths.size()], when.tm_mday);
  const int64_t away_ns = unix_now_ns > unix_ns ? unix_now_ns - unix_ns : unix_ns - unix_now_ns;
  if (away_ns >= kHalfYearNs) return fmt::format("{}  {:04}", day, when.tm_year + 1900);
  return fmt::format("{} {:02}:{:02}", day, when.tm_hour, when.tm_min);
}

std::string format_when(int64_t unix_ns, int64_t unix_now_ns) {
  const std::tm when = local_day(unix_ns / kSecondNs);
  const std::tm today = local_day(unix_now_ns / kSecondNs);
  std::string text;
  if (when.tm_year != today.tm_year || when.tm_yday != today.tm_yday)
    text = fmt::format("{:04}-{:02}-{:02} ", when.tm_year + 1900, when.tm_mon + 1, when.tm_mday);
  return text + fmt::format("{:02}:{:02}:{:02}", when.tm_hour, when.tm_min, when.tm_sec);
}

}  // namespace sluice::cli
