// sluice-alias: how often damage passes a checksum, by trying it and by counting. For the lab's `aliasing`.
// SPDX-License-Identifier: Apache-2.0
#include "perf/alias/alias.h"

#include <CLI/CLI.hpp>
#include <string>

#include "dataplane/base/arguments/arguments.h"

namespace {

using sluice::alias::Question;
using sluice::arguments::number;
using sluice::arguments::whole;

constexpr int64_t kMost = INT64_C(1'000'000'000'000);

void add_errors(CLI::App& app, Question& question) {
  app.add_option("--ber", question.bit_error_rate, "Probability that a bit is wrong")
      ->transform(number(1e-12, 0.5));
  app.add_option("--packets", question.packets, "How many")->transform(whole(1, kMost));
  app.add_option("--seed", question.seed, "Of chance")->transform(whole(0, INT64_MAX));
}

}  // namespace

int main(int count, char** words) {
  CLI::App app{"How often damage passes a checksum", "sluice-alias"};
  app.require_subcommand(1);
  Question question;
  std::string generator;

  CLI::App* const crcs = app.add_subcommand("crc", "Packets with errors under several CRCs");
  crcs->add_option("--bits", question.bits, "Of a packet, its CRC included")->transform(whole(65, 1 << 24));
  add_errors(*crcs, question);
  CLI::App* const checksum = app.add_subcommand("checksum", "Damaged packets under the Internet checksum");
  checksum->add_option("--bytes", question.bytes, "Of a packet, a multiple of 8")
      ->transform(whole(8, 1 << 20));
  add_errors(*checksum, question);
  CLI::App* const weights = app.add_subcommand("weights", "The weights of what a CRC's register makes");
  weights->add_option("--bits", question.bits, "How long")->transform(whole(1, 1 << 24));
  weights->add_option("--generator", generator, "The polynomial, hexadecimal, with its highest term")
      ->required();
  CLI::App* const cost = app.add_subcommand("cost", "What a CRC takes");
  cost->add_option("--bytes", question.bytes, "Of a packet")->transform(whole(1, 1 << 20));

  if (const auto parsed = sluice::arguments::parse_main(app, count, words); parsed.ended)
    return parsed.status;
  if (crcs->parsed()) sluice::alias::ask_crcs(question);
  if (checksum->parsed()) sluice::alias::ask_checksum(question);
  if (cost->parsed()) sluice::alias::ask_cost(question);
  if (weights->parsed()) {
    question.generator = std::strtoull(generator.c_str(), nullptr, 16);
    sluice::alias::ask_weights(question);
  }
  return 0;
}
