// SPDX-License-Identifier: Apache-2.0
#include "control/users/for_caller.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "control/users/server.h"
#include "dataplane/base/sandbox/profiles.h"

namespace sluice::users {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kWishBytesMax = 64U << 20;
constexpr std::chrono::seconds kGreetingAnswer{20};
constexpr std::chrono::seconds kCallAgain{1};
// For so long control may be away: longer than any session waits by default.
constexpr std::chrono::hours kAwayMax{48};

struct Wish {
  std::string socket;
  std::string token;
  Served served;
  bool writes = false;
  bool removes = false;  // the files, and their directories, at the end
};

Error usage(const std::string& what) { return {ErrorCode::kUsage, "sluice-users --for-caller: " + what}; }

// Exactly so many bytes; nothing: they ended before.
bool read_all(int fd, char* to, size_t bytes) {
  while (bytes > 0) {
    const ssize_t got = ::read(fd, to, bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    to += got;
    bytes -= static_cast<size_t>(got);
  }
  return true;
}

Result<std::string> read_wish(int in) {
  std::string length;
  char one = 0;
  while (read_all(in, &one, 1) && one != '\n' && length.size() < 16) length += one;
  size_t bytes = 0;
  const auto parsed = std::from_chars(length.data(), length.data() + length.size(), bytes);
  if (one != '\n' || parsed.ec != std::errc() || parsed.ptr != length.data() + length.size() ||
      bytes > kWishBytesMax)
    return usage("it is started by 'sluice send' and 'sluice get'");
  std::string wish(bytes, '\0');
  if (!read_all(in, wish.data(), bytes)) return usage("what it is to do ended too early");
  return wish;
}

Result<Wish> parse(std::string_view text) {
  std::vector<std::string> fields;
  while (!text.empty()) {
    const size_t end = text.find('\0');
    if (end == std::string_view::npos) return usage("a field has no end");
    fields.emplace_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  constexpr size_t kFirstName = 4;
  if (fields.size() <= kFirstName || !is_token(fields[1])) return usage("fields are missing");
  Wish wish{.socket = fields[0],
            .token = fields[1],
            .served = {},
            .writes = fields[3] == "w",
            .removes = fields[3] == "t"};
  unsigned umask = 0;
  if (std::from_chars(fields[2].data(), fields[2].data() + fields[2].size(), umask, 8).ec != std::errc())
    return usage("the umask is no octal number");
  wish.served.umask = umask & 0777;
  wish.served.names.emplace(fields.begin() + kFirstName, fields.end());
  config::Export all;
  all.name = "files";
  all.path = "/";
  all.read = true;
  all.write = wish.writes;
  wish.served.exports = {all};
  return wish;
}

std::vector<sandbox::PathRule> places_of(const Wish& wish) {
  std::set<std::filesystem::path> places;
  for (const std::string& name : *wish.served.names) {
    const std::filesystem::path path(name);
    places.insert(wish.writes ? path.parent_path() : path);
  }
  std::vector<sandbox::PathRule> rules;
  for (const std::filesystem::path& place : places)
    rules.push_back({place, wish.writes ? sandbox::Access::kChange : sandbox::Access::kRead});
  for (const std::string& name : *wish.served.names) {
    // The directory itself goes as well.
    if (wish.removes)
      rules.push_back({std::filesystem::path(name).parent_path().parent_path(), sandbox::Access::kRemove});
  }
  return rules;
}

// Nothing, and `*error`, if control refuses it; nothing alone, if control is not there.
std::optional<Channel> greet(const Wish& wish, Error* error) {
  UniqueFd socket = connect_to(wish.socket);
  if (!socket) return std::nullopt;
  Channel channel(std::move(socket));
  Parcel parcel;
  if (channel.send(hello_of_caller(wish.token), {}, kGreetingAnswer) != 0 ||
      channel.receive(&parcel, kGreetingAnswer) != 0)
    return std::nullopt;
  const std::optional<Answer> answer = decode_answer(parcel.bytes);
  if (!answer) return std::nullopt;
  *error = answer->error;
  return answer->status() ? std::optional(std::move(channel)) : std::nullopt;
}

// True: to the end. False: control has gone, and did not come back, or wants somebody else.
bool serve_to_the_end(const Wish& wish, Channel first) {
  std::optional<Channel> channel(std::move(first));
  auto last = Clock::now();
  while (Clock::now() - last < kAwayMax) {
    if (channel) {
      if (serve(*channel, wish.served, kAwayMax)) return true;
      last = Clock::now();
    }
    Error error{ErrorCode::kOk, ""};
    channel = greet(wish, &error);
    if (error.code != ErrorCode::kOk) return false;
    if (!channel) std::this_thread::sleep_for(kCallAgain);
  }
  return false;
}

void remove_all(const Wish& wish) {
  for (const std::string& name : *wish.served.names) {
    ::unlink(name.c_str());
    ::rmdir(std::filesystem::path(name).parent_path().c_str());
  }
}

void say(int out, const std::string& line) {
  const std::string text = line + "\n";
  [[maybe_unused]] const ssize_t written = ::write(out, text.data(), text.size());
}

int fail(int out, const Error& error) {
  say(out, std::to_string(static_cast<int>(error.code)) + " " + error.message);
  return static_cast<int>(error.code);
}

}  // namespace

int open_for_caller(int in, int out) {
  // Of the terminal's signals, and of its session, it is no part any more.
  ::setsid();
  for (const int each : {SIGPIPE, SIGXFSZ, SIGHUP, SIGINT, SIGQUIT}) std::signal(each, SIG_IGN);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);  // the command blocks some, to wait for them
  if (::chdir("/") != 0) return fail(out, {ErrorCode::kInternal, "cannot change to /"});
  ::syscall(SYS_close_range, 3U, ~0U, 0);
  const Result<std::string> text = read_wish(in);
  if (!text) return fail(out, text.error());
  const Result<Wish> wish = parse(*text);
  if (!wish) return fail(out, wish.error());
  const auto sandboxed = sandbox::apply(sandbox::caller_profile(places_of(*wish)), true);
  if (!sandboxed) return fail(out, sandboxed.error());
  Error error{ErrorCode::kOk, ""};
  std::optional<Channel> channel = greet(*wish, &error);
  if (error.code != ErrorCode::kOk) return fail(out, error);
  if (!channel)
    return fail(out,
                {ErrorCode::kDaemonNotRunning, "sluice-control does not answer at " + wish->socket + " (" +
                                                   std::strerror(errno) + "): is it of this version?"});
  say(out, "ok");
  std::thread command([in] {
    char one = 0;
    if (!read_all(in, &one, 1)) ::_exit(0);  // no session has begun
    // What is held of the command's goes, so that nobody waits for its end.
    for (const int fd : {STDIN_FILENO, STDOUT_FILENO}) ::close(fd);
  });
  command.detach();
  const bool to_the_end = serve_to_the_end(*wish, std::move(*channel));
  if (wish->removes) remove_all(*wish);
  ::_exit(to_the_end ? 0 : 1);
}

}  // namespace sluice::users
