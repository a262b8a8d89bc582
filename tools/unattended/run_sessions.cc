// SPDX-License-Identifier: Apache-2.0
#include "tools/unattended/run_sessions.h"

#include <algorithm>
#include <vector>

#include "tools/unattended/words.h"

namespace sluice::unattended {

RunSessions::RunSessions(std::string_view text) {
  for (const std::string_view line : lines_of(text)) {
    const std::vector<std::string_view> words = words_of(line);
    if (words.size() != 3 || (words[0] != "session" && words[0] != "held")) continue;
    sessions_[std::string(words[1])] = {
        .id = std::string(words[2]), .held = words[0] == "held", .earlier = true};
  }
}

std::string RunSessions::text() const {
  std::string text;
  for (const auto& [transfer, session] : sessions_)
    text += (session.held ? "held " : "session ") + transfer + " " + session.id + "\n";
  return text;
}

std::optional<RunSessions::Session> RunSessions::take(const std::string& transfer) {
  const auto found = sessions_.find(transfer);
  if (found == sessions_.end()) return std::nullopt;
  Session taken = found->second;
  found->second.earlier = false;
  return taken;
}

void RunSessions::began(const std::string& transfer, const std::string& id) {
  sessions_[transfer] = {.id = id};
}

void RunSessions::ended(const std::string& transfer) { sessions_.erase(transfer); }

bool RunSessions::hold(const std::string& id, bool held) {
  const auto found = std::ranges::find_if(sessions_, [&](const auto& one) { return one.second.id == id; });
  if (found == sessions_.end() || found->second.held == held) return false;
  found->second.held = held;
  return true;
}

}  // namespace sluice::unattended
