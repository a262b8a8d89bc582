// SPDX-License-Identifier: Apache-2.0
#include "control/selection/name_list.h"

#include <fmt/format.h>

#include <algorithm>

#include "dataplane/base/path.h"
#include "dataplane/base/text.h"

namespace sluice::selection {
namespace {

using base::kNameBytesMax;
using base::kPathBytesMax;

Error wrong_list(std::string message) { return {ErrorCode::kUsage, std::move(message)}; }

// What is in a directory stands together.
bool before(std::string_view a, std::string_view b) { return base::compare_paths(a, b) < 0; }

Status check_count(size_t names, size_t bytes) {
  if (names > kNamesMax || bytes > kNamesBytesMax)
    return wrong_list(
        fmt::format("the list has more than {} names, or {} MiB: send parts of it by themselves", kNamesMax,
                    kNamesBytesMax >> 20));
  if (names == 0) return wrong_list("the list names nothing");
  return {};
}

}  // namespace

Result<std::string> clean_name(std::string_view name) {
  const auto wrong = [name](std::string_view why) {
    return wrong_list(
        fmt::format("{}: {}", base::printable(std::string(name.substr(0, kPathBytesMax))), why));
  };
  if (name.size() > kPathBytesMax) return wrong("no path is that long");
  if (name.find('\0') != std::string_view::npos) return wrong("no name has a zero byte");
  std::string clean;
  bool dot = false;  // behind the last component
  for (size_t at = 0; at <= name.size();) {
    const size_t end = std::min(name.find('/', at), name.size());
    const std::string_view component = name.substr(at, end - at);
    at = end + 1;
    if (component.empty()) continue;
    if (component == ".") {
      dot = true;
      continue;
    }
    if (component == "..") return wrong("leads out of the directory; write names without ..");
    if (component.size() > kNameBytesMax) return wrong("has a name of more than 255 bytes");
    // rsync takes what stands before it for no part of the name.
    if (dot && !clean.empty()) return wrong("has /./ in it; write the name without it");
    dot = false;
    if (!clean.empty()) clean += '/';
    clean += component;
  }
  if (clean.empty()) return std::string(kAllOfIt);
  if (dot || name.ends_with('/')) clean += '/';
  return clean;
}

Result<std::vector<std::string>> read_names(std::string_view text, bool zero_bytes) {
  const std::string_view ends = zero_bytes ? std::string_view("\0", 1) : std::string_view("\n\r");
  std::vector<std::string> names;
  size_t bytes = 0;
  size_t number = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find_first_of(ends, at), text.size());
    const std::string_view line = text.substr(at, end - at);
    at = end + 1;
    ++number;
    if (line.empty() || (!zero_bytes && (line[0] == '#' || line[0] == ';'))) continue;
    Result<std::string> name = clean_name(line);
    if (!name) return wrong_list(fmt::format("name {}: {}", number, name.error().message));
    bytes += name->size();
    names.push_back(std::move(*name));
    if (names.size() > kNamesMax || bytes > kNamesBytesMax) break;
  }
  if (Status status = check_count(names.size(), bytes); !status) return status.error();
  return names;
}

Status check_names(const std::vector<std::string>& names) {
  size_t bytes = 0;
  for (const std::string& name : names) bytes += name.size();
  if (Status status = check_count(names.size(), bytes); !status) return status;
  for (const std::string& name : names) {
    const Result<std::string> clean = clean_name(name);
    if (!clean) return clean.error();
    if (*clean != name)
      return wrong_list(fmt::format("{}: write {}", base::printable(name), base::printable(*clean)));
  }
  return {};
}

NameList::NameList(std::vector<std::string> names) : names_(std::move(names)) {
  std::sort(names_.begin(), names_.end(), before);
  names_.erase(std::unique(names_.begin(), names_.end()), names_.end());
}

bool NameList::has(std::string_view path) const {
  return std::binary_search(names_.begin(), names_.end(), path, before) ||
         (!path.empty() && has_contents_of(path));
}

bool NameList::has_contents_of(std::string_view path) const {
  const std::string name = path.empty() ? std::string(kAllOfIt) : std::string(path) + "/";
  return std::binary_search(names_.begin(), names_.end(), name, before);
}

bool NameList::leads_to_more(std::string_view path) const {
  const std::string prefix = std::string(path) + "/";
  const auto found = std::upper_bound(names_.begin(), names_.end(), prefix, before);
  return found != names_.end() && found->starts_with(prefix);
}

}  // namespace sluice::selection
