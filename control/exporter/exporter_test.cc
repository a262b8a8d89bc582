// SPDX-License-Identifier: Apache-2.0
#include "control/exporter/exporter.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <asio/executor_work_guard.hpp>
#include <cstring>
#include <filesystem>
#include <thread>

#include "control/exporter/host_figures.h"
#include "control/exporter/http_server.h"
#include "dataplane/base/unique_fd.h"

namespace sluice::exporter {
namespace {

struct Bound {
  UniqueFd socket;
  uint16_t port = 0;
};

// A port that nobody else gets while the socket lives. One that does not listen leaves the port to those who
// may reuse it (SO_REUSEADDR), as the exporter does.
Bound bind_any(bool listens) {
  Bound bound{.socket = UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0))};
  sockaddr_in address{.sin_family = AF_INET};
  address.sin_addr.s_addr = htonl(listens ? INADDR_LOOPBACK : INADDR_ANY);
  socklen_t size = sizeof address;
  const int yes = 1;
  EXPECT_EQ(::setsockopt(bound.socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes), 0);
  EXPECT_EQ(::bind(bound.socket.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_TRUE(!listens || ::listen(bound.socket.get(), 1) == 0);
  EXPECT_EQ(::getsockname(bound.socket.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  bound.port = ntohs(address.sin_port);
  return bound;
}

std::string at(const std::string& host, uint16_t port) { return host + ":" + std::to_string(port); }

// The whole answer to one request.
std::string ask(uint16_t port, const std::string& request) {
  const UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{.sin_family = AF_INET, .sin_port = htons(port)};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return "";
  EXPECT_EQ(::write(socket.get(), request.data(), request.size()), static_cast<ssize_t>(request.size()));
  std::string answer;
  char part[4096];
  for (ssize_t got = 0; (got = ::read(socket.get(), part, sizeof part)) > 0;)
    answer.append(part, static_cast<size_t>(got));
  return answer;
}

std::string get(const std::string& path) {
  return "GET " + path + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
}

TEST(FindAddress, KnowsWhatOnlyThisHostReaches) {
  const Bound kept = bind_any(false);
  const auto look = [&](const char* host) {
    auto found = find_address(at(host, kept.port));
    EXPECT_TRUE(found) << found.error().message;
    return found ? std::move(*found) : ListenAddress{};
  };
  EXPECT_TRUE(look("127.0.0.1").loopback);
  EXPECT_TRUE(look("localhost").loopback);
  EXPECT_FALSE(look("0.0.0.0").loopback);
  EXPECT_EQ(look("127.0.0.2").text, at("127.0.0.2", kept.port));
}

TEST(FindAddress, OfATakenPortSaysSoAndWhatToDo) {
  const Bound taken = bind_any(true);
  const auto found = find_address(at("127.0.0.1", taken.port));
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, ErrorCode::kConfiguration);
  EXPECT_NE(found.error().message.find(at("127.0.0.1", taken.port) + ": Address already in use"),
            std::string::npos)
      << found.error().message;
  EXPECT_NE(found.error().message.find("[control] metrics_listen"), std::string::npos);
}

TEST(FindAddress, RefusesWhatIsNoAddressOfThisHost) {
  const auto far = find_address("192.0.2.1:7410");
  ASSERT_FALSE(far);
  EXPECT_EQ(far.error().code, ErrorCode::kConfiguration);
  EXPECT_FALSE(find_address("no-such-host.invalid:7410"));
  EXPECT_FALSE(find_address("127.0.0.1"));
}

TEST(Exporter, AnswersScrapesAndNothingElse) {
  asio::io_context io(1);
  auto work = asio::make_work_guard(io);
  std::thread loop([&] { io.run(); });
  const Bound kept = bind_any(false);
  const uint16_t port = kept.port;
  config::Node node;
  node.metrics_listen = at("127.0.0.1", port);
  node.exports = {{.name = "data", .path = std::filesystem::temp_directory_path()}};
  auto exporter =
      start(io, node, [] { return metrics::NodeFigures{.name = "alpha", .version = "9", .turns = 3}; });
  ASSERT_TRUE(exporter) << exporter.error().message;
  EXPECT_EQ((*exporter)->address(), node.metrics_listen);
  const std::string answer = ask(port, get("/metrics"));
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200")) << answer;
  EXPECT_NE(answer.find("\n# TYPE sluice_control_turns_total counter"), std::string::npos) << answer;
  EXPECT_NE(answer.find("\nsluice_control_turns_total 3"), std::string::npos);
  EXPECT_NE(answer.find("\nsluice_node_info{node=\"alpha\",version=\"9\"} 1"), std::string::npos);
  EXPECT_NE(answer.find("\nprocess_open_fds "), std::string::npos);
  for (const char* other : {"/", "/../../etc/passwd", "/etc/passwd", "/%2e%2e/etc/passwd"})
    EXPECT_FALSE(ask(port, get(other)).starts_with("HTTP/1.1 200")) << other;
  EXPECT_FALSE(ask(port, "PUT /x HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nConnection: close\r\n\r\nx")
                   .starts_with("HTTP/1.1 20"));
  exporter->reset();
  EXPECT_EQ(ask(port, get("/metrics")), "") << "it listens no more";
  work.reset();
  loop.join();
}

// A scraper finds an answer however many connect before it and say nothing, or say it slowly, or take
// nothing.
TEST(HttpServer, WhoDoesNotFinishItsRequestHoldsUpNobody) {
  const Bound kept = bind_any(false);
  Bound listening{.socket = UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), .port = kept.port};
  sockaddr_in address{.sin_family = AF_INET, .sin_port = htons(kept.port)};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int yes = 1;
  ASSERT_EQ(::setsockopt(listening.socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes), 0);
  ASSERT_EQ(::bind(listening.socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(listening.socket.get(), 128), 0);
  const std::string all(1 << 20, 'm');
  auto server = HttpServer::start(std::move(listening.socket), [&all] { return all; },
                                  {.callers = 8, .of_address = 4, .patience = std::chrono::minutes(10)});
  ASSERT_TRUE(server);
  std::vector<UniqueFd> others;
  for (int i = 0; i < 60; ++i) {
    UniqueFd& one = others.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in from{.sin_family = AF_INET};
    from.sin_addr.s_addr = htonl(0x7f000002 + i % 20);
    ASSERT_EQ(::bind(one.get(), reinterpret_cast<sockaddr*>(&from), sizeof from), 0);
    ASSERT_EQ(::connect(one.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    const std::string part = i % 2 == 0 ? "" : "GET /met";
    ASSERT_EQ(::write(one.get(), part.data(), part.size()), static_cast<ssize_t>(part.size()));
    if (i % 15 != 0) continue;
    const std::string answer = ask(kept.port, get("/metrics"));
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 OK")) << answer.substr(0, 100);
    EXPECT_TRUE(answer.ends_with(all)) << answer.size();
  }
  EXPECT_TRUE(ask(kept.port, std::string(10'000, 'x')).empty()) << "a request has an end";
  EXPECT_TRUE(ask(kept.port, "rubbish\r\n\r\n").starts_with("HTTP/1.1 400"));
}

TEST(HttpServer, WhoHasHadItsTimeIsLetGo) {
  Bound listening = bind_any(true);
  const auto server =
      HttpServer::start(std::move(listening.socket), [] { return std::string("m"); },
                        {.callers = 8, .of_address = 4, .patience = std::chrono::milliseconds(20)});
  ASSERT_TRUE(server);
  EXPECT_EQ(ask(listening.port, "GET /met"), "") << "it was hung up on";
}

TEST(HostFigures, TellOfThisProcess) {
  const metrics::ProcessFigures figures = process_figures();
  EXPECT_GT(figures.resident_bytes, 1'000'000U);
  EXPECT_GT(figures.start_time_s, 1e9);
  EXPECT_GE(figures.open_fds, 3U);
  EXPECT_GE(figures.max_fds, figures.open_fds);
}

TEST(HostFigures, TellHowFullExportsAreAndLeaveOutWhatIsNotThere) {
  ExportSpaces spaces({{.name = "data", .path = std::filesystem::temp_directory_path()},
                       {.name = "gone", .path = "/no/such/directory"}});
  spaces.wait();
  const auto newest = spaces.newest();
  ASSERT_EQ(newest.size(), 1U);
  EXPECT_EQ(newest[0].name, "data");
  EXPECT_GT(newest[0].size_bytes, newest[0].free_bytes);
  EXPECT_GT(newest[0].free_bytes, 0U);
}

}  // namespace
}  // namespace sluice::exporter
