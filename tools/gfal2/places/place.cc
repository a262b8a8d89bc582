// SPDX-License-Identifier: Apache-2.0
#include "tools/gfal2/places/place.h"

#include <algorithm>
#include <cerrno>

#include "dataplane/base/path.h"
#include "dataplane/base/text.h"
#include "tools/gfal2/places/problem.h"

namespace sluice::gfal {
namespace {

constexpr size_t kShownBytes = 200;

std::string shown(std::string_view url) { return base::printable(url, kShownBytes); }

[[noreturn]] void refuse(int reason, std::string_view url, const std::string& why) {
  throw Problem(reason, shown(url) + ": " + why);
}

int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// A part of a path between two slashes, as the name that it means.
std::string unescaped(std::string_view part, std::string_view url) {
  std::string name;
  for (size_t at = 0; at < part.size(); ++at) {
    if (part[at] == '?' || part[at] == '#')
      refuse(EINVAL, url, "a query or a fragment means nothing here; write %3F and %23 in names");
    if (part[at] != '%') {
      name += part[at];
      continue;
    }
    const int high = at + 1 < part.size() ? digit_of(part[at + 1]) : -1;
    const int low = at + 2 < part.size() ? digit_of(part[at + 2]) : -1;
    if (high < 0 || low < 0)
      refuse(EINVAL, url, "a percent sign begins two hexadecimal digits; write %25 for itself");
    name += static_cast<char>(high * 16 + low);
    at += 2;
  }
  if (name.find('\0') != std::string::npos) refuse(EINVAL, url, "a name has no NUL; take %00 out");
  if (name.find('/') != std::string::npos)
    refuse(EINVAL, url, "a name has no slash; write / between names, not %2F");
  if (name.size() > base::kNameBytesMax) refuse(ENAMETOOLONG, url, "a name has at most 255 bytes");
  return name;
}

void add_part(std::string_view part, std::string_view url, std::string* path) {
  const std::string name = unescaped(part, url);
  if (name.empty() || name == ".") return;
  if (name == "..") refuse(EACCES, url, "leads elsewhere by '..'; name the place itself");
  if (!path->empty()) *path += '/';
  *path += name;
}

void read_authority(std::string_view authority, std::string_view url, Place* place) {
  if (authority.find_first_of("@%?#\\") != std::string_view::npos)
    refuse(EINVAL, url, "name the node as sluice://NODE/EXPORT/PATH, and nobody who asks");
  const size_t colon = authority.rfind(':');
  const bool has_port =
      colon != std::string_view::npos && authority.find(']', colon) == std::string_view::npos;
  place->node = authority.substr(0, has_port ? colon : std::string_view::npos);
  if (has_port) place->port = authority.substr(colon + 1);
  const bool digits =
      std::all_of(place->port.begin(), place->port.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (place->node.empty() || !digits || place->port.size() > 5)
    refuse(EINVAL, url, "names no node; write sluice://NODE/EXPORT/PATH");
}

Place local_place(std::string_view url) {
  std::string_view rest = url.substr(kFileScheme.size());
  // As gfal2's own plug-in for files, which knows no escapes.
  if (rest.starts_with("//")) rest.remove_prefix(2);
  if (rest.starts_with("localhost/")) rest.remove_prefix(9);
  if (!rest.starts_with('/')) refuse(EINVAL, url, "is no absolute path; write file:///PATH");
  if (rest.size() > base::kPathBytesMax) refuse(ENAMETOOLONG, url, "a path has at most 4096 bytes");
  Place place;
  place.path = rest;
  place.names_directory = rest.ends_with('/');
  return place;
}

}  // namespace

std::string Place::shown() const {
  return node.empty() ? base::printable(path, kShownBytes) : node + ":" + base::printable(path, kShownBytes);
}

Place place_of(std::string_view url) {
  if (is_file(url)) return local_place(url);
  if (!is_ours(url)) refuse(EPROTONOSUPPORT, url, "is no URL of Sluice; write sluice://NODE/EXPORT/PATH");
  std::string_view rest = url.substr(kScheme.size());
  Place place;
  const size_t slash = rest.find('/');
  read_authority(rest.substr(0, slash), url, &place);
  rest.remove_prefix(slash == std::string_view::npos ? rest.size() : slash);
  place.names_directory = rest.ends_with('/');
  while (!rest.empty()) {
    rest.remove_prefix(1);
    const size_t end = std::min(rest.find('/'), rest.size());
    add_part(rest.substr(0, end), url, &place.path);
    rest.remove_prefix(end);
  }
  if (place.path.size() > base::kPathBytesMax) refuse(ENAMETOOLONG, url, "a path has at most 4096 bytes");
  return place;
}

std::string last_part(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

std::string parent_part(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

std::string escaped(std::string_view name) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  const bool text = base::is_utf8(name);
  std::string out;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    const bool itself =
        byte >= 0x20 && byte != 0x7F && (byte < 0x80 || text) && c != '%' && c != '?' && c != '#';
    if (itself) {
      out += c;
    } else {
      out += {'%', kHex[byte >> 4U], kHex[byte & 15U]};
    }
  }
  return out;
}

}  // namespace sluice::gfal
