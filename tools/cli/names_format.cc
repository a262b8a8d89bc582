// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/names_format.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>

#include "control/client/json.h"
#include "dataplane/base/file_time.h"
#include "tools/cli/format.h"

namespace sluice::cli {
namespace {

std::string escape_of(char c) {
  switch (c) {
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    case '\\':
      return "\\\\";
    default:
      return fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
}

std::string time_text(const api::NameEntry& entry) {
  const std::time_t seconds = base::whole_seconds(base::file_time_of(entry));
  std::tm local{};
  if (::localtime_r(&seconds, &local) == nullptr) return "?";
  return fmt::format("{:%Y-%m-%d %H:%M:%S}", local);
}

}  // namespace

std::string path_beneath(const std::string& directory, const std::string& name) {
  return directory.empty() || directory.ends_with('/') ? directory + name : directory + "/" + name;
}

std::string escaped(std::string_view bytes) {
  std::string text;
  while (!bytes.empty()) {
    const base::Decoded next = base::decode(bytes);
    const size_t length = std::max<size_t>(next.length, 1);
    const std::string_view one = bytes.substr(0, length);
    const bool shown = next.length != 0 && one != "\\" && base::printable(one) == one;
    if (shown) {
      text += one;
    } else {
      for (const char c : one) text += escape_of(c);
    }
    bytes.remove_prefix(length);
  }
  return text;
}

std::string mode_text(const api::NameEntry& entry) {
  constexpr std::string_view kTypes = "?-dlpscb";
  const auto type = static_cast<size_t>(entry.type());
  std::string text(1, type < kTypes.size() ? kTypes[type] : '?');
  constexpr std::string_view kBits = "rwxrwxrwx";
  for (size_t i = 0; i < kBits.size(); ++i) text += (entry.mode() >> (8 - i) & 1) != 0 ? kBits[i] : '-';
  const std::array<std::pair<uint32_t, size_t>, 3> special = {{{04000, 3}, {02000, 6}, {01000, 9}}};
  for (const auto& [bit, at] : special) {
    if ((entry.mode() & bit) == 0) continue;
    const bool runs = text[at] == 'x';
    text[at] = bit == 01000 ? (runs ? 't' : 'T') : (runs ? 's' : 'S');
  }
  return text;
}

std::string long_line(const api::NameEntry& entry, const std::string& path) {
  std::string line = fmt::format("{} {:>3} {:>5} {:>5} {:>14} {} {}", mode_text(entry), entry.links(),
                                 entry.uid(), entry.gid(), entry.size(), time_text(entry), escaped(path));
  if (entry.type() == api::NameEntry::LINK) line += " -> " + escaped(entry.target());
  return line + "\n";
}

std::string stat_text(const api::NameEntry& entry, const std::string& path) {
  std::string text = fmt::format("path       {}\n", escaped(path));
  text += fmt::format("type       {}\n", api::type_name(entry.type()));
  if (entry.type() == api::NameEntry::LINK) text += fmt::format("target     {}\n", escaped(entry.target()));
  text += fmt::format("size       {} ({} bytes)\n", format_bytes(entry.size()), entry.size());
  text += fmt::format("allocated  {}\n", format_bytes(entry.allocated_bytes()));
  text += fmt::format("mode       {} ({:04o})\n", mode_text(entry), entry.mode());
  text += fmt::format("owner      {}, group {}\n", entry.uid(), entry.gid());
  text += fmt::format("links      {}\n", entry.links());
  text += fmt::format("modified   {}.{:09}\n", time_text(entry),
                      base::rest_of_second_ns(base::file_time_of(entry)));
  return text;
}

}  // namespace sluice::cli
