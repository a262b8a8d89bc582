// SPDX-License-Identifier: Apache-2.0
#include "control/identity/user_map.h"

#include <algorithm>
#include <optional>
#include <unordered_set>

#include "control/identity/list_file.h"
#include "control/identity/node_files.h"
#include "control/names/glob.h"

namespace sluice::identity {
namespace {

constexpr ListFile kUsersMapFile = {.key = "users_map_file",
                                    .bytes_max = UserMap::kBytesMax,
                                    .content = "lines USER@NODE LOCAL",
                                    .guard = Guard::kGroupAndOthers};  // who writes it says who anybody is
constexpr std::string_view kSame = "*";
constexpr std::string_view kDeny = "deny";
constexpr std::string_view kRoot = "root";

// What a node's name, or a pattern of it, is made of.
bool is_node_pattern(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
           std::string_view("-_*?[]!").find(c) != std::string_view::npos;
  });
}

// As useradd and directories of users have it. Wildcards in it are a mistake.
bool is_local_name(std::string_view text) {
  return !text.empty() && text.size() <= 255 && std::ranges::none_of(text, [](char c) {
    return static_cast<unsigned char>(c) <= ' ' || c == 0x7F ||
           std::string_view(":/*?[").find(c) != std::string_view::npos;
  });
}

// What is wrong with a line; empty: nothing is.
std::string problem_of(std::string_view who, std::string_view local, bool more) {
  if (local.empty() || more) return "a line has USER@NODE and LOCAL, such as: alice@alpha asmith";
  const size_t at = who.rfind('@');
  if (at == std::string_view::npos)
    return "'" + shown_word(who) + "' has no @; write USER@NODE, or @NODE for the operators of a node";
  if (!is_node_pattern(who.substr(at + 1)))
    return "'" + shown_word(who.substr(at + 1)) +
           "' is no node name, nor a pattern of one; use a-z, 0-9, _, -, and the wildcards *, ? and [a-z]";
  if (local == kDeny) return "";
  if (local == kSame)
    return at == 0 ? "operators have no name that could be the same here; name a user of this host, or deny"
                   : "";
  if (local == kRoot) return "nobody is root here; name another user of this host, or deny";
  if (!is_local_name(local))
    return "'" + shown_word(local) + "' is no name of a user; name a user of this host, * or deny";
  return "";
}

}  // namespace

Result<UserMap> UserMap::parse(std::string_view text, const std::string& origin) {
  UserMap map;
  map.origin_ = origin;
  for (size_t number = 1; !text.empty(); ++number) {
    std::string_view line = next_line(&text);
    const std::string_view who = next_word(&line);
    if (who.empty() || who.front() == '#') continue;
    const std::string_view local = next_word(&line);
    const std::string_view more = next_word(&line);
    const auto wrong = [&](const std::string& why) {
      return configuration(origin + ":" + std::to_string(number) + ": " + why);
    };
    const bool comment = local.starts_with('#');
    if (const std::string problem =
            problem_of(who, comment ? "" : local, !more.empty() && !more.starts_with('#'));
        !problem.empty())
      return wrong(problem);
    if (map.lines_.size() == kLinesMax)
      return wrong("more than " + std::to_string(kLinesMax) + " lines; use patterns");
    const size_t at = who.rfind('@');
    map.lines_.push_back({.number = number,
                          .user = std::string(who.substr(0, at)),
                          .node = std::string(who.substr(at + 1)),
                          .local = std::string(local)});
  }
  // Cut short on its way here, it would let everybody in as whom the node itself is.
  if (map.lines_.empty())
    return configuration(origin +
                         ": has no line, so nobody would be mapped; write one, such as: *@* deny, or take "
                         "users_map_file out of node.toml");
  return map;
}

Result<std::shared_ptr<const UserMap>> UserMap::load(const std::filesystem::path& file) {
  const auto read = read_list_file(file, kUsersMapFile, std::nullopt);
  if (!read) return read.error();
  Result<UserMap> map = parse((*read)->text, file.string());
  if (!map) return map.error();
  return std::make_shared<const UserMap>(std::move(*map));
}

UserMap::Verdict UserMap::judge(std::string_view node, std::string_view user) const {
  bool named = false;
  for (const Line& line : lines_) {
    if (!names::matches(line.node, node)) continue;
    named = true;
    if (line.user.empty() != user.empty() || !names::matches(line.user, user)) continue;
    const bool same = line.local == kSame;
    const std::string local = same ? std::string(user) : line.local;
    if (line.local == kDeny || (same && (local == kRoot || !is_local_name(local))))
      return {.answer = Answer::kDenied, .line = line.number};
    return {.answer = Answer::kLocal, .local = local, .line = line.number};
  }
  return {.answer = named && !user.empty() ? Answer::kDenied : Answer::kAsToday};
}

std::vector<std::pair<std::string, size_t>> UserMap::named_here() const {
  std::vector<std::pair<std::string, size_t>> all;
  std::unordered_set<std::string_view> known{kSame, kDeny};
  for (const Line& line : lines_) {
    if (known.insert(line.local).second) all.emplace_back(line.local, line.number);
  }
  return all;
}

bool UserMap::has_lines_for(std::string_view node) const {
  return std::ranges::any_of(lines_, [&](const Line& line) { return names::matches(line.node, node); });
}

}  // namespace sluice::identity
