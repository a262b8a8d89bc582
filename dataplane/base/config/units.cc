// Sizes, rates, addresses and names as people write them. Exact: no floating point, no rounding.
// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "dataplane/base/config/config.h"

namespace sluice::config {
namespace {

constexpr size_t kNeighboursMax = 16;

bool digit(char c) { return c >= '0' && c <= '9'; }

// Of a host: not of a group, and not all zero.
bool read_mac(std::string_view text, uint8_t* mac) {
  if (text.size() != 17) return false;
  unsigned sum = 0;
  for (size_t i = 0; i < 6; ++i) {
    const char* const at = text.data() + 3 * i;
    const auto [end, failure] = std::from_chars(at, at + 2, mac[i], 16);
    if (failure != std::errc{} || end != at + 2 || (i < 5 && at[2] != ':')) return false;
    sum += mac[i];
  }
  return (mac[0] & 1) == 0 && sum != 0;
}

// Reads "12" or "2.5" from the front of `text` and multiplies; false when there is no number, when
// the product is not whole or does not fit.
bool scaled_number(std::string_view number, uint64_t multiplier, uint64_t* out) {
  constexpr int kFractionDigitsMax = 12;
  __uint128_t mantissa = 0;
  __uint128_t divisor = 1;
  bool point = false;
  int fraction_digits = 0;
  for (const char c : number) {
    if (c == '.') {
      point = true;
      continue;
    }
    if (point && ++fraction_digits > kFractionDigitsMax) return false;
    mantissa = mantissa * 10 + static_cast<unsigned>(c - '0');
    if (point) divisor *= 10;
    if (mantissa > std::numeric_limits<uint64_t>::max()) return false;
  }
  const __uint128_t product = mantissa * multiplier;
  if (product % divisor != 0) return false;
  const __uint128_t value = product / divisor;
  if (value > std::numeric_limits<uint64_t>::max()) return false;
  *out = static_cast<uint64_t>(value);
  return true;
}

// Length of a leading number: digits, or digits '.' digits. 0 when there is none.
size_t number_length(std::string_view text) {
  size_t n = 0;
  while (n < text.size() && digit(text[n])) ++n;
  if (n == 0) return 0;
  if (n + 1 < text.size() && text[n] == '.' && digit(text[n + 1])) {
    ++n;
    while (n < text.size() && digit(text[n])) ++n;
  }
  return n;
}

// Exponent of a unit letter of either case, 1 for K to 4 for T; 0 when it is none.
unsigned unit_exponent(char c) {
  switch (c) {
    case 'k':
    case 'K':
      return 1;
    case 'm':
    case 'M':
      return 2;
    case 'g':
    case 'G':
      return 3;
    case 't':
    case 'T':
      return 4;
    default:
      return 0;
  }
}

uint64_t power(uint64_t base, unsigned exponent) {
  uint64_t value = 1;
  for (unsigned i = 0; i < exponent; ++i) value *= base;
  return value;
}

// Quotes operator input: one line, bounded.
std::string quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text.substr(0, 40)) out += c < ' ' || c > '~' ? '?' : c;
  return out + (text.size() > 40 ? "...'" : "'");
}

}  // namespace

Result<uint64_t> parse_rate(std::string_view text) {
  const Error error{ErrorCode::kConfiguration,
                    quoted(text) + " is not a rate: write bit/s such as 10G, 2.5G, 800M or 1000000"};
  const size_t digits = number_length(text);
  if (digits == 0) return error;
  std::string_view rest = text.substr(digits);
  const unsigned exponent = rest.empty() ? 0 : unit_exponent(rest[0]);
  if (exponent != 0) rest.remove_prefix(1);
  uint64_t value = 0;
  // "B/s" would be another thing.
  if ((!rest.empty() && rest != "bit/s" && rest != "bps") ||
      !scaled_number(text.substr(0, digits), power(1000, exponent), &value))
    return error;
  return value;
}

Result<uint64_t> parse_size(std::string_view text) {
  const Error error{
      ErrorCode::kConfiguration,
      quoted(text) + " is not a size: write bytes such as 64MiB, 1.5G, 512K or 1048576 (K = 1024)"};
  const size_t digits = number_length(text);
  if (digits == 0) return error;
  std::string_view rest = text.substr(digits);
  const unsigned exponent = rest.empty() ? 0 : unit_exponent(rest[0]);
  if (exponent != 0) rest.remove_prefix(1);
  const bool suffix_good = rest.empty() || (exponent != 0 ? rest == "iB" : rest == "B");
  uint64_t value = 0;
  if (!suffix_good || !scaled_number(text.substr(0, digits), power(1024, exponent), &value)) return error;
  return value;
}

Result<HostPort> parse_host_port(std::string_view text) {
  const Error error{
      ErrorCode::kConfiguration,
      quoted(text) + " is not an address: write host:port, such as 192.0.2.1:7400 or [fd77::1]:7400"};
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return error;
  std::string_view host = text.substr(0, colon);
  const std::string_view port_text = text.substr(colon + 1);
  if (host.front() == '[') {
    if (host.size() < 3 || host.back() != ']') return error;
    host = host.substr(1, host.size() - 2);
    uint8_t raw[16];
    if (inet_pton(AF_INET6, std::string(host.substr(0, host.find('%'))).c_str(), raw) != 1) return error;
  }
  for (const char c : host) {
    const bool v6_only = c == ':' || c == '%';
    if (c <= ' ' || c > '~' || c == '[' || c == ']' || c == '/' || (v6_only && text[0] != '[')) return error;
  }
  HostPort result{std::string(host), 0};
  const char* end = port_text.data() + port_text.size();
  const auto [stop, failure] = std::from_chars(port_text.data(), end, result.port);
  if (port_text.empty() || failure != std::errc{} || stop != end) return error;
  return result;
}

Result<std::vector<NeighbourText>> parse_neighbours(std::string_view text) {
  std::vector<NeighbourText> all;
  while (!text.empty()) {
    const size_t blank = text.find(' ');
    const std::string_view word = text.substr(0, blank);
    text = blank == std::string_view::npos ? "" : text.substr(blank + 1);
    if (word.empty()) continue;
    const Error error{
        ErrorCode::kConfiguration,
        quoted(word) + " is no neighbour: write ADDRESS=MAC, such as 10.77.0.2=02:00:5e:10:00:02"};
    const size_t equals = word.find('=');
    if (equals == std::string::npos) return error;
    NeighbourText one{.address = std::string(word.substr(0, equals))};
    one.ip6 = one.address.find(':') != std::string::npos;
    if (inet_pton(one.ip6 ? AF_INET6 : AF_INET, one.address.c_str(), one.ip) != 1) return error;
    if (!read_mac(word.substr(equals + 1), one.mac)) return error;
    for (const NeighbourText& other : all) {
      if (other.ip6 == one.ip6 && std::equal(one.ip, one.ip + 16, other.ip)) return error;
    }
    if (all.size() == kNeighboursMax) return error;
    all.push_back(std::move(one));
  }
  return all;
}

bool valid_node_name(std::string_view name) {
  if (name.empty() || name.size() > 63) return false;
  const auto letter_or_digit = [](char c) { return (c >= 'a' && c <= 'z') || digit(c); };
  if (!letter_or_digit(name[0])) return false;
  for (const char c : name) {
    if (!letter_or_digit(c) && c != '_' && c != '-') return false;
  }
  return true;
}

}  // namespace sluice::config
