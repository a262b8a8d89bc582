// SPDX-License-Identifier: Apache-2.0
#include "control/names/words.h"

#include <fmt/format.h>

#include <algorithm>

#include "dataplane/base/text.h"

namespace sluice::names {
namespace {

constexpr size_t kShownBytes = 100;
constexpr uint32_t kModeMax = 07777;

Error incompatible(std::string message) { return {ErrorCode::kIncompatible, std::move(message)}; }

Status check_asked(const std::string& path) {
  if (path.size() <= kPathBytesMax) return {};
  return incompatible(fmt::format("the peer sent a path of {} bytes (\"{}\"): at most {} are allowed",
                                  path.size(), base::printable(path, kShownBytes), kPathBytesMax));
}

Status check_name(std::string_view name, const std::string& path) {
  std::string_view problem;
  if (name.empty()) problem = "an empty name";
  if (name == "." || name == "..") problem = "a name that leads elsewhere";
  if (name.find('\0') != std::string_view::npos) problem = "a name with a NUL";
  if (name.size() > kNameBytesMax) problem = "a name of more than 255 bytes";
  if (problem.empty()) return {};
  return incompatible(fmt::format("the peer sent {} (\"{}\")", problem, base::printable(path, kShownBytes)));
}

Status admit_entry(Entry& entry) {
  if (const Status status = check_asked(entry.path); !status) return status;
  for (std::string_view rest = entry.path; !entry.path.empty();) {
    const size_t slash = rest.find('/');
    if (const Status status = check_name(rest.substr(0, slash), entry.path); !status) return status;
    if (slash == std::string_view::npos) break;
    rest.remove_prefix(slash + 1);
  }
  if (const Status status = check_asked(entry.target); !status) return status;
  const bool odd_target =
      entry.target.find('\0') != std::string::npos || (!entry.target.empty() && entry.type != Type::kLink);
  if (odd_target || entry.mode > kModeMax)
    return incompatible(
        fmt::format("the peer says of \"{}\" what no file can be", base::printable(entry.path, kShownBytes)));
  const bool known = entry.error_code <= static_cast<uint32_t>(kErrorCodeLast);
  if (!known) entry.error_code = static_cast<uint32_t>(ErrorCode::kInternal);
  entry.error = base::printable(entry.error, kTextBytesMax);
  return {};
}

Status admit_entries(std::vector<Entry>& entries) {
  for (Entry& entry : entries) {
    if (Status status = admit_entry(entry); !status) return status;
  }
  return {};
}

Status admit_one(Request& request) {
  if (const auto* move = std::get_if<Move>(&request)) {
    const Status status = check_asked(move->from);
    return status ? check_asked(move->to) : status;
  }
  if (const auto* list = std::get_if<List>(&request)) return check_asked(list->path);
  if (const auto* made = std::get_if<MakeDirectory>(&request)) return check_asked(made->path);
  if (std::holds_alternative<AboutNode>(request)) return {};
  return check_asked(std::get<Remove>(request).path);
}

Status admit_one(Page& page) {
  if (page.entries.empty()) return incompatible("the peer sent a part of a list without an entry");
  if (page.entries.size() <= kEntriesPerPage) return admit_entries(page.entries);
  return incompatible(fmt::format("the peer sent {} entries in one message: at most {} are allowed",
                                  page.entries.size(), kEntriesPerPage));
}

Status admit_one(More&) { return {}; }

Status admit_node(NodeState& node) {
  if (node.spaces.size() > kSpacesMax)
    return incompatible(fmt::format("the peer told of {} exports in one message: at most {} are allowed",
                                    node.spaces.size(), kSpacesMax));
  node.software = base::printable(node.software, kSoftwareBytesMax);
  for (Space& space : node.spaces) space.name = base::printable(space.name, kNameBytesMax);
  return {};
}

Status admit_one(Done& done) {
  if (done.node) {
    if (const Status status = admit_node(*done.node); !status) return status;
  }
  if (done.problems.size() <= kProblemsMax) return admit_entries(done.problems);
  return incompatible(fmt::format("the peer sent {} problems in one message: at most {} are allowed",
                                  done.problems.size(), kProblemsMax));
}

}  // namespace

Status admit(Word* word) {
  return std::visit([](auto& one) { return admit_one(one); }, *word);
}

size_t page_bytes(const Entry& entry) {
  constexpr size_t kNumbers = 80;
  return kNumbers + entry.path.size() + entry.target.size() + entry.error.size();
}

std::string shown(const Request& request) {
  const auto quoted = [](const std::string& path) { return base::printable(path, kShownBytes); };
  if (const auto* list = std::get_if<List>(&request)) return "list of " + quoted(list->path);
  if (const auto* made = std::get_if<MakeDirectory>(&request)) return "mkdir of " + quoted(made->path);
  if (const auto* move = std::get_if<Move>(&request))
    return "mv of " + quoted(move->from) + " to " + quoted(move->to);
  if (std::holds_alternative<AboutNode>(request)) return "a question about the node";
  return "rm of " + quoted(std::get<Remove>(request).path);
}

}  // namespace sluice::names
