// A chunk on its way through the seal, both ways: its CRC alone, and AES-GCM with the CRC of what is plain.
// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>

#include <memory>
#include <vector>

#include "dataplane/seal/seal.h"

namespace sluice {
namespace {

constexpr size_t kColdBytes = 256U << 20;  // beyond the last level of cache

struct Ends {
  explicit Ends(wire::Protection protection)
      : from(protection, {}), to(protection, {}), scratch(std::make_unique<seal::Scratch>()) {}
  seal::FlowKeys from;
  seal::FlowKeys to;
  std::unique_ptr<seal::Scratch> scratch;
};

wire::Protection protection_of(benchmark::State& state) {
  const auto protection = static_cast<wire::Protection>(state.range(0));
  state.SetLabel(std::string(wire::protection_name(protection)) + " by " +
                 seal::gcm_engine_name(seal::best_gcm_engine()));
  return protection;
}

void cases(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"protection", "bytes", "cold"});
  for (const int64_t protection : {0, 1, 2}) {
    for (const int64_t bytes : {1400, 8192}) {
      for (const int64_t cold : {0, 1}) benchmark->Args({protection, bytes, cold});
    }
  }
}

void seal_chunk(benchmark::State& state) {
  const wire::Protection protection = protection_of(state);
  Ends ends(protection);
  seal::FlowSeal seal(wire::CrcKind::kCrc64Ecma, protection, ends.from, *ends.scratch);
  const auto bytes = static_cast<size_t>(state.range(1));
  static const std::vector<uint8_t> data(kColdBytes, 0x5A);
  std::vector<uint8_t> out(wire::kHeaderBytes + bytes);
  const std::span<uint8_t, wire::kHeaderBytes> front(out.data(), wire::kHeaderBytes);
  wire::Header header{.length = static_cast<uint32_t>(bytes)};
  size_t at = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        seal.seal(header, {data.data() + at, bytes}, front, out.data() + wire::kHeaderBytes));
    ++header.tx_seq;
    if (state.range(2) != 0) at = at + 2 * bytes > kColdBytes ? 0 : at + bytes;
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * bytes));
}
BENCHMARK(seal_chunk)->Apply(cases);

void open_chunk(benchmark::State& state) {
  const wire::Protection protection = protection_of(state);
  Ends ends(protection);
  seal::FlowSeal from(wire::CrcKind::kCrc64Ecma, protection, ends.from, *ends.scratch);
  seal::FlowSeal to(wire::CrcKind::kCrc64Ecma, protection, ends.to, *ends.scratch);
  const auto bytes = static_cast<size_t>(state.range(1));
  const std::vector<uint8_t> data(bytes, 0x5A);
  std::vector<uint8_t> datagram(wire::kHeaderBytes + bytes);
  static std::vector<uint8_t> places(kColdBytes);
  wire::Header header{.length = static_cast<uint32_t>(bytes)};
  from.seal(header, data, std::span<uint8_t, wire::kHeaderBytes>(datagram.data(), wire::kHeaderBytes),
            datagram.data() + wire::kHeaderBytes);
  size_t at = 0;
  for (auto _ : state) {
    if (wire::decode(datagram, &header) != wire::Reject::kNone ||
        !to.open(header, datagram, places.data() + at).good()) {
      return state.SkipWithError("refused");
    }
    if (state.range(2) != 0) at = at + 2 * bytes > kColdBytes ? 0 : at + bytes;
  }
  seal::FlowSeal::publish();
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * bytes));
}
BENCHMARK(open_chunk)->Apply(cases);

}  // namespace
}  // namespace sluice
