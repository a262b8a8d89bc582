// SPDX-License-Identifier: Apache-2.0
#include "dataplane/base/utc.h"

#include <array>
#include <cstdio>
#include <ctime>

namespace sluice::base {
namespace {

constexpr int64_t kSecondNs = 1'000'000'000;
constexpr int64_t kMicrosecondNs = 1000;

int64_t seconds_of(int64_t unix_ns) { return unix_ns / kSecondNs - (unix_ns % kSecondNs < 0 ? 1 : 0); }

std::string seconds_text(int64_t unix_ns) {
  const std::time_t seconds = seconds_of(unix_ns);
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  std::array<char, 32> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &parts)};
}

}  // namespace

std::string utc_text(int64_t unix_ns) { return seconds_text(unix_ns) + "Z"; }

std::string utc_text_us(int64_t unix_ns) {
  std::array<char, 16> fraction{};
  std::snprintf(fraction.data(), fraction.size(), ".%06dZ",
                static_cast<int>((unix_ns - seconds_of(unix_ns) * kSecondNs) / kMicrosecondNs));
  return seconds_text(unix_ns) + fraction.data();
}

}  // namespace sluice::base
