// SPDX-License-Identifier: Apache-2.0
#include "tools/fleet/programs.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>

#include "dataplane/base/unique_fd.h"

extern char** environ;  // NOLINT(readability-redundant-declaration)

namespace sluice::fleet {
namespace {

constexpr size_t kOutputMax = 64U << 20;

struct Pipe {
  UniqueFd read_end;
  UniqueFd write_end;
};

Result<Pipe> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    return Error{ErrorCode::kResources, std::string("no pipe: ") + std::strerror(errno)};
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

Result<pid_t> spawn(const std::vector<std::string>& words, const Pipe& out, const Pipe& err) {
  std::vector<char*> given;
  for (const std::string& word : words) given.push_back(const_cast<char*>(word.c_str()));
  given.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out.write_end.get(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err.write_end.get(), STDERR_FILENO);
  // This process may have blocked signals for its threads.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  pid_t pid = 0;
  const int problem = ::posix_spawnp(&pid, given[0], &actions, &attributes, given.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (problem == 0) return pid;
  return Error{ErrorCode::kConfiguration, fmt::format("cannot run {}: {}; is it installed, and in PATH?",
                                                      words[0], std::strerror(problem))};
}

}  // namespace

Result<Ran> run_program(const std::vector<std::string>& words, double limit_s) {
  Result<Pipe> out = make_pipe();
  if (!out) return out.error();
  Result<Pipe> err = make_pipe();
  if (!err) return err.error();
  const Result<pid_t> pid = spawn(words, *out, *err);
  if (!pid) return pid.error();
  out->write_end.reset();
  err->write_end.reset();
  Ran ran;
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(limit_s);
  std::array<pollfd, 2> open{pollfd{.fd = out->read_end.get(), .events = POLLIN, .revents = 0},
                             pollfd{.fd = err->read_end.get(), .events = POLLIN, .revents = 0}};
  bool late = false;
  while (!late && (open[0].fd >= 0 || open[1].fd >= 0)) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    late = left.count() <= 0;
    if (late || ::poll(open.data(), open.size(), static_cast<int>(left.count())) <= 0) continue;
    for (size_t i = 0; i < open.size(); ++i) {
      if (open[i].fd < 0 || open[i].revents == 0) continue;
      std::array<char, 65536> part{};
      const ssize_t got = ::read(open[i].fd, part.data(), part.size());
      if (got < 0 && errno == EINTR) continue;
      std::string& text = i == 0 ? ran.out : ran.err;
      if (got <= 0)
        open[i].fd = -1;
      else if (text.size() < kOutputMax)
        text.append(part.data(), static_cast<size_t>(got));
    }
  }
  if (late) ::kill(*pid, SIGKILL);
  int status = 0;
  while (::waitpid(*pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (late)
    return Error{ErrorCode::kStalled, fmt::format("{} did not answer within {:.0f} s", words[0], limit_s)};
  ran.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return ran;
}

}  // namespace sluice::fleet
