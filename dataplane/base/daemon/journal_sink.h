// A log in the native protocol of systemd's journal: each line is an entry with fields that can be asked for,
// as in `journalctl SLUICE_SESSION=1f3a08c2`.
//
// Used where the standard error is the journal's own stream, which knows neither levels nor sessions. Any
// thread, as spdlog's sinks. Never waits: what the journal does not take at once is counted, and told with
// the next line that it takes; where there is no journal the line goes to the standard error.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <spdlog/sinks/base_sink.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "dataplane/base/unique_fd.h"

namespace sluice::daemon {

inline constexpr const char* kJournalSocket = "/run/systemd/journal/socket";

// Is `fd` what $JOURNAL_STREAM says ("DEVICE:INODE")? A process that is started by a service inherits the
// variable, but may have another standard error.
bool is_journal_stream(std::string_view journal_stream, int fd);

// The session that a line of the log is about: the hexadecimal digits, 8 or more, behind the word "session".
// Empty: none.
std::string_view session_of(std::string_view line);

// The datagram of one line: MESSAGE, PRIORITY, SYSLOG_IDENTIFIER, SLUICE_COMPONENT and, of a session's,
// SLUICE_SESSION.
std::string journal_entry(const std::string& program, std::string_view component,
                          spdlog::level::level_enum level, std::string_view message);

class JournalSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit JournalSink(std::string program, std::filesystem::path socket = kJournalSocket);

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override;
  void flush_() override {}

 private:
  bool send(const std::string& entry);

  const std::string program_;
  const std::filesystem::path path_;
  UniqueFd socket_;
  uint64_t lost_ = 0;  // lines, not told yet
};

}  // namespace sluice::daemon
