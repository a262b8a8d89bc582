// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/child.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "dataplane/base/unique_fd.h"
#include "dataplane/base/write_all.h"
#include "tools/cli/format.h"

namespace sluice::cli {
namespace {

constexpr size_t kHeardBytesMax = 1U << 20;

struct Pipe {
  UniqueFd read;
  UniqueFd write;
  bool open() {
    int ends[2] = {-1, -1};
    if (::pipe2(ends, O_CLOEXEC) != 0) return false;
    read.reset(ends[0]);
    write.reset(ends[1]);
    return true;
  }
};

Error cannot_start(const std::string& program, int error) {
  return {ErrorCode::kConfiguration, "cannot start " + printable(program) + ": " + std::strerror(error)};
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> all;
  for (std::string& word : words) all.push_back(word.data());
  all.push_back(nullptr);
  return all;
}

// Until both are at their ends.
void hear(const UniqueFd& out, const UniqueFd& err, Heard& heard) {
  pollfd fds[2] = {{.fd = out.get(), .events = POLLIN, .revents = 0},
                   {.fd = err.get(), .events = POLLIN, .revents = 0}};
  std::string* const texts[2] = {&heard.out, &heard.err};
  while (fds[0].fd >= 0 || fds[1].fd >= 0) {
    if (::poll(fds, 2, -1) < 0) continue;
    for (int i = 0; i < 2; ++i) {
      if (fds[i].fd < 0 || fds[i].revents == 0) continue;
      char part[4096];
      const ssize_t got = ::read(fds[i].fd, part, sizeof part);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) fds[i].fd = -1;
      if (got > 0 && texts[i]->size() < kHeardBytesMax) texts[i]->append(part, static_cast<size_t>(got));
    }
  }
}

// In the child, where nothing but calls of the system is safe.
[[noreturn]] void become(const StartOptions& options, char* const* words, char* const* environment, int log,
                         int failed) {
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  ::signal(SIGXFSZ, SIG_DFL);
  if (options.daemon) {
    ::setsid();
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    const int nothing = ::open("/dev/null", O_RDONLY);
    if (nothing >= 0) ::dup2(nothing, STDIN_FILENO);
  }
  if (log >= 0) {
    ::dup2(log, STDOUT_FILENO);
    ::dup2(log, STDERR_FILENO);
  }
  ::execvpe(words[0], words, environment);
  const int reason = errno;
  [[maybe_unused]] const ssize_t told = ::write(failed, &reason, sizeof reason);
  ::_exit(127);
}

}  // namespace

int exit_status(int wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

Result<Heard> run_program(const std::vector<std::string>& words, const std::string& in) {
  Pipe to_it, its_out, its_err;
  if (!to_it.open() || !its_out.open() || !its_err.open()) return cannot_start(words[0], errno);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, to_it.read.get(), STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, its_out.write.get(), STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, its_err.write.get(), STDERR_FILENO);
  posix_spawnattr_t attributes;
  sigset_t none;
  sigemptyset(&none);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  std::vector<std::string> mine = words;
  pid_t pid = 0;
  const int reason =
      ::posix_spawnp(&pid, mine[0].c_str(), &actions, &attributes, pointers(mine).data(), environ);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  if (reason != 0) return cannot_start(words[0], reason);
  to_it.read.reset();
  its_out.write.reset();
  its_err.write.reset();
  // Where that fails it has ended, and said why. It is short: a pipe holds it.
  (void)base::write_all(to_it.write.get(), in.data(), in.size());
  to_it.write.reset();
  Heard heard;
  hear(its_out.read, its_err.read, heard);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  heard.status = exit_status(status);
  return heard;
}

Started start_program(const StartOptions& options) {
  std::vector<std::string> words = options.words;
  std::vector<std::string> added = options.environment;
  std::vector<char*> environment;
  for (char** one = environ; *one != nullptr; ++one) {
    const std::string_view text = *one;
    const auto same = [&text](const std::string& mine) {
      return text.substr(0, text.find('=')) == std::string_view(mine).substr(0, mine.find('='));
    };
    bool replaced = false;
    for (const std::string& mine : added) replaced = replaced || same(mine);
    if (!replaced) environment.push_back(*one);
  }
  for (std::string& mine : added) environment.push_back(mine.data());
  environment.push_back(nullptr);
  const std::vector<char*> arguments = pointers(words);
  UniqueFd log;
  if (!options.log.empty()) {
    log.reset(::open(options.log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    if (!log) return {.pid = 0, .reason = errno};
  }
  Pipe failed;
  if (!failed.open()) return {.pid = 0, .reason = errno};
  const pid_t pid = ::fork();
  if (pid < 0) return {.pid = 0, .reason = errno};
  if (pid == 0) become(options, arguments.data(), environment.data(), log.get(), failed.write.get());
  failed.write.reset();
  int reason = 0;
  ssize_t got = 0;
  while ((got = ::read(failed.read.get(), &reason, sizeof reason)) < 0 && errno == EINTR) {
  }
  if (got != sizeof reason) return {.pid = pid, .reason = 0};
  ::waitpid(pid, nullptr, 0);
  return {.pid = 0, .reason = reason};
}

}  // namespace sluice::cli
