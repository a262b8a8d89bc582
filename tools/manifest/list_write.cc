// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "dataplane/base/text.h"
#include "tools/manifest/list.h"

namespace sluice::manifest {
namespace {

std::string escaped_name(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (c == '\n')
      out += "\\n";
    else if (c == '\r')
      out += "\\r";
    else if (c == '\\')
      out += "\\\\";
    else
      out += c;
  }
  return out;
}

std::string percent_encoded(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (c == '\n')
      out += "%0A";
    else if (c == '\r')
      out += "%0D";
    else if (c == '%')
      out += "%25";
    else
      out += c;
  }
  return out;
}

std::string upper(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return out;
}

}  // namespace

Status check_format(Format format, const std::vector<Kind>& kinds) {
  if ((format == Format::kSum || format == Format::kBagit) && kinds.size() > 1)
    return Error{ErrorCode::kUsage, "a list of format " + std::string(name_of(format)) +
                                        " has one digest; give one, or --manifest-format tag"};
  for (const Kind kind : kinds) {
    if (format == Format::kHashdeep && kind != Kind::kMd5 && kind != Kind::kSha1 && kind != Kind::kSha256)
      return Error{ErrorCode::kUsage, "hashdeep has no " + std::string(name_of(kind)) +
                                          ": give md5, sha1 or sha256, or --manifest-format tag"};
  }
  return {};
}

Status check_name(Format format, std::string_view list_name, std::string_view name) {
  if (format == Format::kHashdeep && name.find_first_of("\n\r") != std::string_view::npos)
    return Error{ErrorCode::kUsage, base::printable(name) +
                                        ": a list of hashdeep cannot have a name with a line's end; give "
                                        "another --manifest-format"};
  if (format == Format::kBagit && !kind_of_bag(list_name) &&
      name.find_first_of("\n\r%") != std::string_view::npos)
    return Error{ErrorCode::kUsage, base::printable(name) +
                                        ": only a manifest of a bag can have this name; call the list as RFC "
                                        "8493 does, such as manifest-sha256.txt"};
  return {};
}

std::string head_of(Format format, const std::vector<Kind>& kinds) {
  if (format != Format::kHashdeep) return "";
  std::string head = "%%%% HASHDEEP-1.0\n%%%% size,";
  for (const Kind kind : kinds) head += std::string(name_of(kind)) + ",";
  return head + "filename\n";
}

Result<std::string> lines_of(Format format, std::string_view list_name, const Entry& entry) {
  if (Status possible = check_name(format, list_name, entry.name); !possible) return possible.error();
  if (format == Format::kBagit) return entry.values.front().hex + "  " + percent_encoded(entry.name) + "\n";
  const bool odd = entry.name.find_first_of("\n\r\\") != std::string::npos;
  if (format == Format::kHashdeep) {
    std::string line = std::to_string(entry.size_bytes.value_or(0)) + ",";
    for (const Value& value : entry.values) line += value.hex + ",";
    return line + entry.name + "\n";
  }
  std::string lines;
  for (const Value& value : entry.values) {
    const std::string name = odd ? escaped_name(entry.name) : entry.name;
    lines += odd ? "\\" : "";
    lines += format == Format::kTag ? upper(name_of(value.kind)) + " (" + name + ") = " + value.hex
                                    : value.hex + "  " + name;
    lines += "\n";
  }
  return lines;
}

}  // namespace sluice::manifest
