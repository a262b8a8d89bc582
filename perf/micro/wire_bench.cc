// Headers and statuses, and the Ethernet, IP and UDP headers around them.
// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>

#include <array>
#include <vector>

#include "dataplane/core/status.h"
#include "dataplane/core/wire.h"
#include "dataplane/net/frame.h"

namespace sluice {
namespace {

constexpr uint32_t kChunkBytes = 8192;
constexpr uint32_t kDatagramBytes = wire::kHeaderBytes + kChunkBytes;

wire::Header header_of(uint64_t tx_seq) {
  return {.flow_id = 0x1122334455667788,
          .tx_seq = tx_seq,
          .send_time_ns = 123'456'789 * tx_seq,
          .offset = tx_seq * kChunkBytes,
          .object = 7,
          .length = kChunkBytes,
          .done_seen = 99};
}

void wire_encode_header(benchmark::State& state) {
  std::array<uint8_t, wire::kHeaderBytes> out{};
  uint64_t tx_seq = 0;
  for (auto _ : state) {
    wire::encode(header_of(tx_seq++), out);
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations()));
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * out.size()));
}
BENCHMARK(wire_encode_header);

void wire_decode_header(benchmark::State& state) {
  std::vector<uint8_t> datagram(kDatagramBytes);
  wire::encode(header_of(5), std::span<uint8_t, wire::kHeaderBytes>(datagram.data(), wire::kHeaderBytes));
  wire::Header header;
  for (auto _ : state) {
    benchmark::DoNotOptimize(datagram.data());
    if (wire::decode(datagram, &header) != wire::Reject::kNone) return state.SkipWithError("refused");
    benchmark::DoNotOptimize(header);
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations()));
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * wire::kHeaderBytes));
}
BENCHMARK(wire_decode_header);

wire::Status status_of(uint32_t done, uint32_t gaps) {
  wire::Status status{.echo_send_time_ns = 1'000'000'007,
                      .echo_hold_ns = 30'000,
                      .received_end = 4'000'000,
                      .credit_extents = 900,
                      .bytes_received = uint64_t{30} << 30,
                      .delay_min_ns = -5'000,
                      .delay_max_ns = 90'000,
                      .done_end = 400 + done,
                      .done_back = done,
                      .run_count = done,
                      .gap_count = gaps};
  for (uint32_t i = 0; i < done; ++i) status.runs[i] = {.object = 3, .count = 1, .first = 1000 + 2 * i};
  for (uint32_t i = 0; i < gaps; ++i) status.gaps[i] = {.first = 3'900'000 + 100 * i, .count = 1 + i % 3};
  return status;
}

void status_sizes(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"done", "gaps"})->Args({2, 0})->Args({16, 16})->Args({64, 64});
}

void wire_encode_status(benchmark::State& state) {
  const wire::Status status =
      status_of(static_cast<uint32_t>(state.range(0)), static_cast<uint32_t>(state.range(1)));
  std::array<uint8_t, wire::kStatusBytesMax> out{};
  size_t bytes = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(bytes = wire::encode_status(status, out).bytes);
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations()));
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * bytes));
}
BENCHMARK(wire_encode_status)->Apply(status_sizes);

void wire_decode_status(benchmark::State& state) {
  std::array<uint8_t, wire::kStatusBytesMax> out{};
  const wire::Status said =
      status_of(static_cast<uint32_t>(state.range(0)), static_cast<uint32_t>(state.range(1)));
  const size_t bytes = wire::encode_status(said, out).bytes;
  wire::Status status;
  for (auto _ : state) {
    benchmark::DoNotOptimize(out.data());
    if (!wire::decode_status({out.data(), bytes}, &status)) return state.SkipWithError("refused");
    benchmark::DoNotOptimize(status);
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations()));
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * bytes));
}
BENCHMARK(wire_decode_status)->Apply(status_sizes);

net::Address address(uint8_t last, bool ip4) {
  net::Address address{{0xFD, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 10, 0, 0, last}};
  if (ip4) address = {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 10, 0, 0, last}};
  return address;
}

void net_write_headers(benchmark::State& state) {
  const net::FrameTemplate headers(address(1, state.range(0) == 4), 47000, address(2, state.range(0) == 4),
                                   47001);
  std::array<uint8_t, net::kFrameHeaderBytesMax> out{};
  uint32_t bytes = kDatagramBytes;
  for (auto _ : state) {
    benchmark::DoNotOptimize(bytes);
    headers.write(out.data(), bytes);
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations()));
}
BENCHMARK(net_write_headers)->ArgName("ip")->Arg(4)->Arg(6);

void net_parse_frame(benchmark::State& state) {
  const net::FrameTemplate headers(address(1, state.range(0) == 4), 47000, address(2, state.range(0) == 4),
                                   47001);
  std::vector<uint8_t> frame(headers.bytes() + kDatagramBytes);
  headers.write(frame.data(), kDatagramBytes);
  net::UdpFrame udp;
  for (auto _ : state) {
    benchmark::DoNotOptimize(frame.data());
    if (net::parse_udp(frame, &udp) != net::Parse::kUdp) return state.SkipWithError("refused");
    benchmark::DoNotOptimize(udp);
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations()));
}
BENCHMARK(net_parse_frame)->ArgName("ip")->Arg(4)->Arg(6);

}  // namespace
}  // namespace sluice
