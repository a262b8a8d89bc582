// What it costs control to trust many: trust read from its files, the look that sees that none has changed,
// and whether a connection by an authority is still good, for the first time and again.
// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>
#include <stdlib.h>

#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>

#include "control/identity/standing_files.h"
#include "control/site/issue.h"

namespace sluice::identity {
namespace {

namespace fs = std::filesystem;
constexpr int64_t kYearS = 365 * 86'400;

void write(const fs::path& file, const std::string& text) { std::ofstream(file) << text; }

// A node that trusts so many by pins, and an authority besides.
class TrustingNode {
 public:
  explicit TrustingNode(int64_t pins) {
    char name[] = "/tmp/sluice-bench-XXXXXX";
    root_ = ::mkdtemp(name);
    node.directory = root_ / "hub";
    node.name = "hub";
    node.ca_file = root_ / "ca.pem";
    (void)create(node.directory, "hub");
    fs::create_directory(node.directory / "trusted");
    for (int64_t i = 0; i < pins; ++i) {
      const std::string peer = "site-" + std::to_string(i);
      write(node.directory / "trusted" / (peer + ".pem"), make_key_pair({.name = peer})->certificate_pem);
      write(node.directory / "trusted" / (peer + ".toml"), "address = \"192.0.2.1:7400\"\n");
    }
    write(node.ca_file, authority_.certificate_pem);
  }
  ~TrustingNode() { fs::remove_all(root_); }
  TrustingNode(const TrustingNode&) = delete;
  TrustingNode& operator=(const TrustingNode&) = delete;

  // As a connection has it.
  Peer by_authority(const Trust& trust) const {
    const auto ca = parse_certificate(authority_.certificate_pem);
    const auto ca_key = parse_key(authority_.key_pem);
    const auto key = parse_key(make_key_pair({.name = "beta"})->key_pem);
    const site::Issuer issuer{.certificate = ca->get(), .key = ca_key->get()};
    const auto pem =
        site::issue(issuer, {.key = key->get(), .name = "beta", .dns_name = "beta", .lifetime_s = kYearS});
    const auto certificate = parse_certificate(*pem);
    return *trust.judge({.certificate = certificate->get()}, std::time(nullptr));
  }

  config::Node node;

 private:
  fs::path root_;
  const KeyPair authority_ = *site::make_authority("bench", kYearS);
};

void trust_read(benchmark::State& state) {
  const TrustingNode trusting(state.range(0));
  (void)load_standing(trusting.node);  // what a certificate says is remembered from then on
  for (auto _ : state) benchmark::DoNotOptimize(load_standing(trusting.node));
}
BENCHMARK(trust_read)->ArgName("pins")->Arg(10)->Arg(1000)->Unit(benchmark::kMicrosecond);

void trust_unchanged(benchmark::State& state) {
  const TrustingNode trusting(state.range(0));
  StandingFiles files(trusting.node, -std::chrono::hours(1));
  (void)files.now(std::chrono::steady_clock::now());
  for (auto _ : state) benchmark::DoNotOptimize(files.now(std::chrono::steady_clock::now()));
}
BENCHMARK(trust_unchanged)->ArgName("pins")->Arg(10)->Arg(1000)->Unit(benchmark::kMicrosecond);

void connection_first(benchmark::State& state) {
  const TrustingNode trusting(10);
  const Peer peer = trusting.by_authority(*load_standing(trusting.node)->trust);
  for (auto _ : state) {
    state.PauseTiming();
    const Standing anew = *load_standing(trusting.node);
    state.ResumeTiming();
    if (!anew.trust->check_still(peer)) state.SkipWithError("it is not good");
  }
}
BENCHMARK(connection_first)->Unit(benchmark::kMicrosecond);

void connection_again(benchmark::State& state) {
  const TrustingNode trusting(10);
  const Standing standing = *load_standing(trusting.node);
  const Peer peer = trusting.by_authority(*standing.trust);
  for (auto _ : state) {
    if (!standing.trust->check_still(peer)) state.SkipWithError("it is not good");
  }
}
BENCHMARK(connection_again)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace sluice::identity
