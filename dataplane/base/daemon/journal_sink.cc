// SPDX-License-Identifier: Apache-2.0
#include "dataplane/base/daemon/journal_sink.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <syslog.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "dataplane/base/text.h"

namespace sluice::daemon {
namespace {

// What a datagram holds everywhere. A longer line is cut.
constexpr size_t kMessageBytesMax = 48 * 1024;

int priority_of(spdlog::level::level_enum level) {
  switch (level) {
    case spdlog::level::trace:
    case spdlog::level::debug:
      return LOG_DEBUG;
    case spdlog::level::warn:
      return LOG_WARNING;
    case spdlog::level::err:
      return LOG_ERR;
    case spdlog::level::critical:
      return LOG_CRIT;
    default:
      return LOG_INFO;
  }
}

bool is_word(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '-';
}

}  // namespace

bool is_journal_stream(std::string_view journal_stream, int fd) {
  struct stat info {};
  if (journal_stream.empty() || ::fstat(fd, &info) != 0) return false;
  return journal_stream == std::to_string(info.st_dev) + ":" + std::to_string(info.st_ino);
}

std::string_view session_of(std::string_view line) {
  constexpr std::string_view kWord = "session ";
  constexpr size_t kDigitsMin = 8;
  for (size_t at = line.find(kWord); at != std::string_view::npos; at = line.find(kWord, at + 1)) {
    if (at > 0 && is_word(line[at - 1])) continue;
    std::string_view id = line.substr(at + kWord.size());
    id = id.substr(0, id.find_first_not_of("0123456789abcdef"));
    const size_t end = at + kWord.size() + id.size();
    if (id.size() >= kDigitsMin && (end == line.size() || !is_word(line[end]))) return id;
  }
  return {};
}

std::string journal_entry(const std::string& program, std::string_view component,
                          spdlog::level::level_enum level, std::string_view message) {
  // What is printable has no line feed, so that no value can become another field.
  std::string entry = "MESSAGE=" + base::printable(message, kMessageBytesMax) +
                      "\nPRIORITY=" + std::to_string(priority_of(level)) + "\nSYSLOG_IDENTIFIER=" + program +
                      "\nSLUICE_COMPONENT=";
  entry += component;
  if (const std::string_view session = session_of(message); !session.empty()) {
    entry += "\nSLUICE_SESSION=";
    entry += session;
  }
  return entry + "\n";
}

JournalSink::JournalSink(std::string program, std::filesystem::path socket)
    : program_(std::move(program)),
      path_(std::move(socket)),
      socket_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {}

void JournalSink::sink_it_(const spdlog::details::log_msg& message) {
  const std::string_view text(message.payload.data(), message.payload.size());
  const std::string_view component(message.logger_name.data(), message.logger_name.size());
  if (lost_ > 0 &&
      send(journal_entry(program_, component, spdlog::level::warn,
                         std::to_string(lost_) + " lines of this log are lost: the journal was too slow")))
    lost_ = 0;
  if (send(journal_entry(program_, component, message.level, text))) return;
  if (errno == EAGAIN || errno == ENOBUFS) {
    ++lost_;
    return;
  }
  std::fprintf(stderr, "%s\n", base::printable(text).c_str());
}

// To its path each time: a journal that is started again is found.
bool JournalSink::send(const std::string& entry) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path_.native().size() >= sizeof address.sun_path) {
    errno = ENAMETOOLONG;
    return false;
  }
  std::memcpy(address.sun_path, path_.c_str(), path_.native().size());
  return ::sendto(socket_.get(), entry.data(), entry.size(), MSG_NOSIGNAL,
                  reinterpret_cast<const sockaddr*>(&address), sizeof address) >= 0;
}

}  // namespace sluice::daemon
