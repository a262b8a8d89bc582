// SPDX-License-Identifier: Apache-2.0
#include "dataplane/base/config/problems.h"

#include <arpa/inet.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <filesystem>
#include <string>

#include "dataplane/base/config/config.h"
#include "dataplane/core/wire.h"

namespace sluice::config {
namespace {

// An address a host can have: neither unspecified nor multicast nor broadcast.
bool host_address(int family, std::string_view text) {
  uint8_t raw[16] = {};
  if (text.find('\0') != std::string_view::npos) return false;
  if (inet_pton(family, std::string(text).c_str(), raw) != 1) return false;
  if (family == AF_INET) return raw[0] != 0 && raw[0] < 224;
  const uint8_t none[16] = {};
  return raw[0] != 0xff && !std::equal(raw, raw + 16, none);
}

bool address_with_prefix(int family, std::string_view text, unsigned bits_max) {
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos) return false;
  const std::string_view bits_text = text.substr(slash + 1);
  unsigned bits = 0;
  const auto [end, failure] = std::from_chars(bits_text.data(), bits_text.data() + bits_text.size(), bits);
  if (failure != std::errc{} || end != bits_text.data() + bits_text.size() || bits_text.empty()) return false;
  return bits >= 1 && bits <= bits_max && host_address(family, text.substr(0, slash));
}

}  // namespace

std::string_view name_problem(std::string_view text) {
  return valid_node_name(text) ? ""
                               : "must be 1 to 63 of a-z, 0-9, '_' and '-', beginning with a letter or digit";
}

std::string_view user_problem(std::string_view text) {
  const bool good = !text.empty() && text.size() <= 256 && std::ranges::none_of(text, [](char c) {
    return static_cast<unsigned char>(c) <= ' ' || c == ':' || c == '/';
  });
  return good ? "" : "must be the name of a user of this host, or \"*\"";
}

std::string_view listen_problem(std::string_view text) {
  return text == "none" || parse_host_port(text) ? "" : "must be \"host:port\", \"[v6]:port\" or \"none\"";
}

std::string_view address4_problem(std::string_view text) {
  const bool good = text.empty() || address_with_prefix(AF_INET, text, 32);
  return good ? "" : "must be an IPv4 host address with its prefix length, such as \"10.77.0.1/24\"";
}
std::string_view address6_problem(std::string_view text) {
  const bool good = text.empty() || address_with_prefix(AF_INET6, text, 128);
  return good ? "" : "must be an IPv6 host address with its prefix length, such as \"fd77::1/64\"";
}
std::string_view gateway4_problem(std::string_view text) {
  return text.empty() || host_address(AF_INET, text)
             ? ""
             : "must be an IPv4 host address, such as \"10.77.0.254\"";
}
std::string_view gateway6_problem(std::string_view text) {
  return text.empty() || host_address(AF_INET6, text) ? ""
                                                      : "must be an IPv6 host address, such as \"fd77::fe\"";
}

std::string_view neighbours_problem(std::string_view text) {
  return text.find('\0') == std::string_view::npos && parse_neighbours(text)
             ? ""
             : "must be up to 16 of ADDRESS=MAC with blanks between, such as "
               "\"10.77.0.2=02:00:5e:10:00:02\", each address once";
}

std::string_view device_problem(std::string_view text) {
  constexpr std::string_view kAllowed =
      "must be \"udp\", or a DPDK device without blanks, such as \"0000:01:00.0\"";
  for (const char c : text) {
    if (c <= ' ' || c > '~') return kAllowed;
  }
  return text.empty() ? kAllowed : "";
}

bool can_vanish(std::string_view device) {
  const std::string_view name = device.substr(0, device.find(','));
  for (const std::string_view kind : {"net_af_packet", "eth_af_packet", "net_af_xdp"}) {
    if (name.starts_with(kind)) return true;
  }
  // "0000:01:00.0"; all others are DPDK's own.
  return name != kSocketDevice && !name.starts_with("net_") && !name.starts_with("eth_");
}

std::string_view path_problem(std::string_view text) {
  const std::filesystem::path path(text);
  if (text.find('\0') != std::string_view::npos || !path.is_absolute()) return "must be an absolute path";
  for (const auto& part : path) {
    if (part == "..") return "must not contain \"..\"";
  }
  return "";
}

std::string_view optional_path_problem(std::string_view text) {
  return text.empty() ? "" : path_problem(text);
}

std::string_view domain_problem(std::string_view text) {
  constexpr size_t kBytesMax = 190;  // beside a node's name of 63
  const bool letters = text.size() <= kBytesMax && std::ranges::all_of(text, [](char c) {
                         return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
                       });
  const bool dots =
      !text.starts_with('.') && !text.ends_with('.') && text.find("..") == std::string_view::npos;
  return letters && dots ? ""
                         : "must be a DNS domain in lower case, without a dot before or behind it, or empty";
}

// What directories of users call a group is wider than what groupadd makes.
std::string_view group_problem(std::string_view text) {
  constexpr size_t kBytesMax = 255;
  const bool good =
      text.size() <= kBytesMax && std::ranges::all_of(text, [](char c) {
        return (c > ' ' && c < 0x7F && c != ':' && c != '/') || static_cast<unsigned char>(c) >= 0x80;
      });
  return good ? "" : "must be the name of a group, without blanks, ':' and '/', or empty";
}

std::string_view umask_problem(std::string_view text) {
  const bool octal = std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '7'; });
  const bool good = octal && (text.size() == 3 || (text.size() == 4 && text.front() == '0'));
  // Whoever makes a directory goes into it.
  const bool own = good && text[text.size() - 3] == '0';
  return own ? "" : "must be three octal digits of which the first is 0, as \"022\"";
}

std::string_view extents_problem(uint64_t value) {
  return value == 0 || value >= kExtentsMin ? "" : "is too few for sending and receiving";
}

std::string_view power_of_two_problem(uint64_t value) {
  return std::has_single_bit(value) ? "" : "must be a power of two";
}

}  // namespace sluice::config
