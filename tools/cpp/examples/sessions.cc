// sessions NODE: lists them. sessions NODE ID WORD: show, pause, continue, cancel, withdraw; limit BPS;
// wait SECONDS; export NAME, which prints what sessions NODE import reads.
//
// It exits as `sluice` does (docs/RUNBOOK.md), and with 124 where a wait was too short.
// SPDX-License-Identifier: Apache-2.0
#include <sluice/client.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <optional>
#include <string>

namespace {

using sluice::client::Node;
using sluice::client::Session;
using sluice::client::Status;

constexpr int kUsage = 2;
constexpr int kTooShort = 124;  // as timeout(1)

int print(const Status& now) {
  std::printf("%s %s %s %s %.0f%s%s\n", now.id.c_str(), now.direction.c_str(), now.peer.c_str(),
              name_of(now.state), static_cast<double>(now.rate_limit_bps), now.waiting_for.empty() ? "" : " ",
              now.waiting_for.c_str());
  return 0;
}

int obey(const Session& session, const std::string& word, const char* argument) {
  if (word == "show") return print(session.show());
  if (word == "pause") return print(session.pause());
  if (word == "continue") return print(session.go_on());
  if (word == "cancel") return print(session.cancel());
  if (word == "withdraw") return print(session.withdraw());
  if (argument == nullptr) return kUsage;
  if (word == "limit") return print(session.limit(std::strtoull(argument, nullptr, 10)));
  if (word == "export") {
    std::cout << session.export_to(argument) << std::flush;
    return 0;
  }
  if (word != "wait") return kUsage;
  const std::chrono::duration<double> time(std::strtod(argument, nullptr));
  const std::optional<Status> end =
      session.wait_for(std::chrono::duration_cast<std::chrono::nanoseconds>(time));
  return end ? print(*end) : kTooShort;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 5 || (argc == 3 && argv[2] != std::string("import"))) {
    std::fprintf(stderr,
                 "usage: sessions NODE [import | ID show|pause|continue|cancel|withdraw|limit BPS|wait "
                 "SECONDS|export NAME]\n");
    return kUsage;
  }
  try {
    const Node node(argv[1]);
    if (argc == 3) return print(node.import_session({std::istreambuf_iterator<char>(std::cin), {}}).show());
    if (argc > 3) return obey(node.session(argv[2]), argv[3], argc == 5 ? argv[4] : nullptr);
    for (const Status& each : node.sessions()) print(each);
  } catch (const sluice::client::Error& error) {
    std::fprintf(stderr, "sessions: %s (%s)\n", error.what(), error.name().c_str());
    return error.code();
  }
  return 0;
}
