// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/accounts.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <csignal>
#include <sstream>

#include "dataplane/base/unique_fd.h"

namespace sluice::doctor {
namespace {

constexpr size_t kLineBytesMax = 1U << 20;  // of a group with very many members

// What it prints within the time.
std::string heard(int fd) {
  using std::chrono::steady_clock;
  const auto until = steady_clock::now() + std::chrono::milliseconds(kAnswerMs);
  std::string text;
  char part[4096];
  while (text.size() < kLineBytesMax) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - steady_clock::now());
    pollfd ready{.fd = fd, .events = POLLIN, .revents = 0};
    if (left.count() <= 0 || ::poll(&ready, 1, static_cast<int>(left.count())) <= 0) break;
    const ssize_t got = ::read(fd, part, sizeof part);
    if (got <= 0) break;
    text.append(part, static_cast<size_t>(got));
  }
  return text;
}

// The first line; empty: there is no such entry.
std::string getent(std::string database, std::string key) {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) return "";
  const UniqueFd out(ends[0]);
  UniqueFd in(ends[1]);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, in.get(), STDOUT_FILENO);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  std::string program = "getent";
  std::string rest = "--";
  char* words[] = {program.data(), database.data(), rest.data(), key.data(), nullptr};
  pid_t pid = 0;
  const int reason = ::posix_spawnp(&pid, program.c_str(), &actions, nullptr, words, environ);
  ::posix_spawn_file_actions_destroy(&actions);
  in.reset();
  if (reason != 0) return "";
  const std::string text = heard(out.get());
  ::kill(pid, SIGKILL);  // unless it has ended
  ::waitpid(pid, nullptr, 0);
  const size_t end = text.find('\n');
  return end == std::string::npos ? "" : text.substr(0, end);
}

template <typename Id>
std::optional<Id> id_in(const std::string& text) {
  Id id = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (problem != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return id;
}

std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields;
  std::istringstream text(line);
  for (std::string field; std::getline(text, field, ':');) fields.push_back(field);
  return fields;
}

// NAME:x:UID:GID:...
std::optional<Account> entry_of(const std::string& key) {
  const std::vector<std::string> fields = fields_of(getent("passwd", key));
  if (fields.size() < 4) return std::nullopt;
  const auto uid = id_in<uid_t>(fields[2]);
  const auto gid = id_in<gid_t>(fields[3]);
  if (!uid || !gid) return std::nullopt;
  return Account{.name = fields[0], .uid = *uid, .gid = *gid};
}

}  // namespace

std::optional<Account> account_of(const std::string& name) {
  std::optional<Account> found = entry_of(name);
  if (found && found->name != name) return std::nullopt;  // a number is taken for that of a user
  return found;
}

std::optional<Account> account_of(uid_t uid) { return entry_of(std::to_string(uid)); }

std::string user_name(uid_t uid) {
  const std::optional<Account> account = account_of(uid);
  return account ? account->name : std::to_string(uid);
}

std::optional<gid_t> gid_of(const std::string& group) {
  const std::vector<std::string> fields = fields_of(getent("group", group));
  if (fields.size() < 3 || fields[0] != group) return std::nullopt;
  return id_in<gid_t>(fields[2]);
}

// NAME  GID GID...
std::vector<gid_t> groups_of(const Account& account) {
  std::vector<gid_t> all{account.gid};
  std::istringstream words(getent("initgroups", account.name));
  std::string word;
  words >> word;
  while (words >> word)
    if (const auto gid = id_in<gid_t>(word)) all.push_back(*gid);
  return all;
}

}  // namespace sluice::doctor
