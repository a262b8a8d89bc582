// SPDX-License-Identifier: Apache-2.0
#include "dataplane/base/daemon/journal_sink.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <spdlog/logger.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>

#include "dataplane/base/daemon/daemon.h"

namespace sluice::daemon {
namespace {

// The journal: a socket of this test's own.
class Journal {
 public:
  Journal() : socket_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.c_str(), path.native().size());
    EXPECT_EQ(::bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  ~Journal() { std::filesystem::remove(path); }
  std::string taken() const {
    std::string text(1 << 17, '\0');
    const ssize_t bytes = ::recv(socket_.get(), text.data(), text.size(), MSG_DONTWAIT);
    text.resize(bytes < 0 ? 0 : static_cast<size_t>(bytes));
    return text;
  }

  const std::filesystem::path path = "/tmp/sluice-journal-test-" + std::to_string(::getpid());

 private:
  UniqueFd socket_;
};

TEST(JournalSink, FindsTheSessionOfALine) {
  EXPECT_EQ(session_of("session 1f3a08c2: begins"), "1f3a08c2");
  EXPECT_EQ(session_of("beta (10.0.0.1:7400) opens session 0123456789abcdef0123456789abcdef"),
            "0123456789abcdef0123456789abcdef");
  EXPECT_EQ(session_of("session slot 3: session 1f3a08c2, going on"), "1f3a08c2");
  for (const char* line :
       {"", "session", "session ", "session slot 3 is still in use", "session 1f3a08c", "session 1f3a08c2x",
        "session 1f3a08c2-x", "obsession 1f3a08c2", "Session 1F3A08C2"}) {
    EXPECT_EQ(session_of(line), "") << line;
  }
}

TEST(JournalSink, EachLineIsAnEntryWithItsFields) {
  EXPECT_EQ(journal_entry("sluice-control", "peer", spdlog::level::warn, "session 1f3a08c2: waits"),
            "MESSAGE=session 1f3a08c2: waits\nPRIORITY=4\nSYSLOG_IDENTIFIER=sluice-control\n"
            "SLUICE_COMPONENT=peer\nSLUICE_SESSION=1f3a08c2\n");
  EXPECT_EQ(journal_entry("sluice-dataplane", "dataplane", spdlog::level::info, "a name\nPRIORITY=0\x1b[31m"),
            "MESSAGE=a name?PRIORITY=0?[31m\nPRIORITY=6\nSYSLOG_IDENTIFIER=sluice-dataplane\n"
            "SLUICE_COMPONENT=dataplane\n");
  const auto priority = [](spdlog::level::level_enum level) {
    const std::string entry = journal_entry("x", "x", level, "");
    return entry.substr(entry.find("PRIORITY="), 10);
  };
  EXPECT_EQ(priority(spdlog::level::trace), "PRIORITY=7");
  EXPECT_EQ(priority(spdlog::level::debug), "PRIORITY=7");
  EXPECT_EQ(priority(spdlog::level::err), "PRIORITY=3");
  EXPECT_EQ(priority(spdlog::level::critical), "PRIORITY=2");
}

TEST(JournalSink, SendsWhatALoggerWritesAndCutsWhatIsTooLong) {
  const Journal journal;
  spdlog::logger logger("session", std::make_shared<JournalSink>("sluice-control", journal.path));
  logger.error("session {}: {}", "1f3a08c2", "no space");
  EXPECT_EQ(journal.taken(),
            journal_entry("sluice-control", "session", spdlog::level::err, "session 1f3a08c2: no space"));
  logger.info("{}", std::string(1 << 20, 'x'));
  const std::string cut = journal.taken();
  EXPECT_LT(cut.size(), 50'000U);
  EXPECT_GT(cut.size(), 40'000U);
  EXPECT_NE(cut.find("\nPRIORITY=6\n"), std::string::npos);
}

TEST(JournalSink, AJournalThatDoesNotReadHoldsNobodyUpAndHearsHowMuchItMissed) {
  const Journal journal;
  spdlog::logger logger("x", std::make_shared<JournalSink>("x", journal.path));
  constexpr size_t kLines = 10'000;
  for (size_t i = 0; i < kLines; ++i) logger.info("a line");
  size_t taken = 0;
  while (!journal.taken().empty()) ++taken;
  ASSERT_LT(taken, kLines);
  logger.info("again");
  EXPECT_EQ(journal.taken(), journal_entry("x", "x", spdlog::level::warn,
                                           std::to_string(kLines - taken) +
                                               " lines of this log are lost: the journal was too slow"));
  EXPECT_EQ(journal.taken(), journal_entry("x", "x", spdlog::level::info, "again"));
  logger.info("as ever");
  EXPECT_EQ(journal.taken(), journal_entry("x", "x", spdlog::level::info, "as ever"));
}

TEST(JournalSink, WithoutAJournalTheLineIsOnTheStandardError) {
  spdlog::logger logger("x", std::make_shared<JournalSink>("x", "/nowhere/at/all"));
  ::testing::internal::CaptureStderr();
  logger.info("a line\nof two");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "a line?of two\n");
}

TEST(JournalSink, IsUsedOnlyIfTheStandardErrorIsTheJournals) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const UniqueFd read(ends[0]);
  const UniqueFd write(ends[1]);
  struct stat info {};
  ASSERT_EQ(::fstat(write.get(), &info), 0);
  const std::string stream = std::to_string(info.st_dev) + ":" + std::to_string(info.st_ino);
  EXPECT_TRUE(is_journal_stream(stream, write.get()));
  EXPECT_FALSE(is_journal_stream(stream + "0", write.get()));
  EXPECT_FALSE(is_journal_stream("", write.get()));
  EXPECT_FALSE(is_journal_stream(stream, -1));
  const UniqueFd other(::open("/dev/null", 1));
  EXPECT_FALSE(is_journal_stream(stream, other.get()));

  // And the log asks that: with a variable that some service left, it stays where it was.
  ::setenv("JOURNAL_STREAM", stream.c_str(), 1);
  const auto before = spdlog::default_logger();
  ::testing::internal::CaptureStderr();
  start_log("sluice-other", std::array{"other"}, [](const char*) { return "info"; });
  spdlog::info("stays here");
  EXPECT_NE(::testing::internal::GetCapturedStderr().find(" info stays here"), std::string::npos);
  ASSERT_EQ(::fstat(STDERR_FILENO, &info), 0);
  ::setenv("JOURNAL_STREAM", (std::to_string(info.st_dev) + ":" + std::to_string(info.st_ino)).c_str(), 1);
  start_log("sluice-third", std::array{"third", "board"}, [](const char*) { return "info"; });
  EXPECT_NE(dynamic_cast<JournalSink*>(spdlog::default_logger()->sinks().at(0).get()), nullptr);
  ::unsetenv("JOURNAL_STREAM");
  spdlog::set_default_logger(before);
}

}  // namespace
}  // namespace sluice::daemon
