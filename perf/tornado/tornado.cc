// sluice-tornado: what RaptorQ costs by how a file is divided, and what mistakes cost a slow link. For the
// lab's `tornado`.
// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <string>

#include "dataplane/base/arguments/arguments.h"
#include "perf/tornado/coded_file.h"
#include "perf/tornado/paced_file.h"

int main(int count, char** words) {
  using sluice::arguments::whole;
  CLI::App app{"What Tornado's authors left open", "sluice-tornado"};
  app.require_subcommand(1);
  uint64_t bytes = 10'000'000;
  sluice::tornado::Division division;
  uint32_t repeats = 3;
  sluice::tornado::Sending sending;
  uint32_t mistakes = 0;
  std::string folder = "/tmp";

  CLI::App* const cost = app.add_subcommand("cost", "CPU seconds of a file, encoded and decoded");
  cost->add_option("--part-bytes", division.part_bytes, "Of each part; 0: one encoder for the whole file")
      ->transform(whole(0, 1 << 26));
  cost->add_option("--repeats", repeats, "How often; medians count")->transform(whole(1, 100));
  CLI::App* const send = app.add_subcommand("send", "A file from socket to socket at the rate of a link");
  send->add_option("--mistakes", mistakes, "How many of them, 0 to 6")->transform(whole(0, 6));
  send->add_option("--rate-bps", sending.rate_bps, "Of the link")
      ->transform(whole(1'000'000, 10'000'000'000));
  send->add_option("--folder", folder, "Where the source and what arrives are");
  for (CLI::App* const each : {cost, send})
    each->add_option("--bytes", bytes, "Of the file")->transform(whole(100'000, 70'000'000));

  if (const auto parsed = sluice::arguments::parse_main(app, count, words); parsed.ended)
    return parsed.status;
  if (!sluice::coding::is_built_in(sluice::coding::Scheme::kRaptorQ)) {
    std::fputs(
        "sluice-tornado: this build does not have RaptorQ (SLUICE_RAPTORQ): run ./dev deps and build again\n",
        stderr);
    return 1;
  }
  if (cost->parsed()) sluice::tornado::ask_cost(bytes, division, repeats);
  if (!send->parsed()) return 0;
  sending.bytes = bytes;
  sending.mistakes = static_cast<sluice::tornado::Mistake>(mistakes);
  sending.folder = folder.c_str();
  return sluice::tornado::ask_time(sending);
}
