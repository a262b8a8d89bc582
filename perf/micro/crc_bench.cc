// Digests: of chunks in cache, of chunks that come from memory one after the other, and their folding; and
// each way to sum and copy that this CPU can run.
// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>

#include <vector>

#include "dataplane/crc/crc.h"
#include "dataplane/crc/variants.h"
#include "storage/digest.h"

namespace sluice {
namespace {

using crc::CrcKind;

// Beyond the last level of cache of any machine this is likely to run on.
constexpr size_t kColdBytes = 256U << 20;
constexpr uint32_t kExtentBytes = 1U << 20;

CrcKind kind_of(const benchmark::State& state) { return static_cast<CrcKind>(state.range(0)); }

void chunk_sizes(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"kind", "bytes"});
  for (const CrcKind kind : {CrcKind::kCrc32c, CrcKind::kCrc64Ecma}) {
    for (const int64_t bytes : {256, 512, 900, 1400, 2400, 4000, 8192, 65536}) {
      benchmark->Args({static_cast<int64_t>(kind), bytes});
    }
  }
}

void crc_warm(benchmark::State& state) {
  const auto bytes = static_cast<size_t>(state.range(1));
  const std::vector<uint8_t> data(bytes, 0x5A);
  state.SetLabel(std::string(wire::crc_kind_name(kind_of(state))));
  for (auto _ : state) benchmark::DoNotOptimize(crc::compute(kind_of(state), 0, data.data(), bytes));
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * bytes));
}
BENCHMARK(crc_warm)->Apply(chunk_sizes);

void crc_cold(benchmark::State& state) {
  static const std::vector<uint8_t> data(kColdBytes, 0x5A);
  const auto bytes = static_cast<size_t>(state.range(1));
  state.SetLabel(std::string(wire::crc_kind_name(kind_of(state))));
  size_t at = 0;
  for (auto _ : state) {
    if (at + bytes > kColdBytes) at = 0;
    benchmark::DoNotOptimize(crc::compute(kind_of(state), 0, data.data() + at, bytes));
    at += bytes;
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * bytes));
}
BENCHMARK(crc_cold)->Apply(chunk_sizes);

// Summed and copied in one pass, into what stays in cache: a sender's way into a ring.
void crc_copy(benchmark::State& state) {
  const auto bytes = static_cast<size_t>(state.range(1));
  const std::vector<uint8_t> data(bytes, 0x5A);
  std::vector<uint8_t> copy(bytes);
  state.SetLabel(std::string(wire::crc_kind_name(kind_of(state))));
  for (auto _ : state) {
    benchmark::DoNotOptimize(crc::copy(kind_of(state), 0, data.data(), copy.data(), bytes));
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * bytes));
}
BENCHMARK(crc_copy)->Apply(chunk_sizes);

// The same into memory that no cache has: a receiver's way into an extent.
void crc_copy_past_caches(benchmark::State& state) {
  static std::vector<uint8_t> cold(kColdBytes);
  const auto bytes = static_cast<size_t>(state.range(1));
  const std::vector<uint8_t> data(bytes, 0x5A);
  state.SetLabel(std::string(wire::crc_kind_name(kind_of(state))));
  size_t at = 0;
  for (auto _ : state) {
    if (at + bytes > kColdBytes) at = 0;
    benchmark::DoNotOptimize(crc::copy_past_caches(kind_of(state), 0, data.data(), cold.data() + at, bytes));
    at += (bytes + 63) / 64 * 64;
  }
  crc::publish_copies();
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * bytes));
}
BENCHMARK(crc_copy_past_caches)->Apply(chunk_sizes);

// Of a datagram's header, its payload's digest being the seed: what waits for it, as in a worker.
void crc_header(benchmark::State& state) {
  const std::vector<uint8_t> header(wire::kHeaderBytes, 0x5A);
  const std::span<const uint8_t, wire::kHeaderCoveredBytes> covered(header.data(), wire::kHeaderCoveredBytes);
  state.SetLabel(std::string(wire::crc_kind_name(kind_of(state))));
  uint64_t crc = 0;
  for (auto _ : state) benchmark::DoNotOptimize(crc = crc::compute_header(kind_of(state), crc, covered));
}
BENCHMARK(crc_header)
    ->ArgName("kind")
    ->Arg(static_cast<int64_t>(CrcKind::kCrc32c))
    ->Arg(static_cast<int64_t>(CrcKind::kCrc64Ecma));

// ---- each variant ------------------------------------------------------------------------------

void variant_sum(benchmark::State& state, const crc::Variant& variant, CrcKind kind, size_t bytes) {
  const std::vector<uint8_t> data(bytes, 0x5A);
  for (auto _ : state) benchmark::DoNotOptimize(variant.compute(kind, 0, data.data(), bytes));
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * bytes));
}

// To where a payload lies in a frame, behind 106 bytes of headers.
void variant_copy(benchmark::State& state, const crc::Variant& variant, CrcKind kind, size_t bytes) {
  const std::vector<uint8_t> data(bytes, 0x5A);
  std::vector<uint8_t> frame(bytes + 106);
  for (auto _ : state) {
    benchmark::DoNotOptimize(variant.copy(kind, 0, data.data(), frame.data() + 106, bytes));
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * bytes));
}

// Chunk by chunk through cold extents: what of them does not begin with a line, the next one's size decides.
void variant_stream(benchmark::State& state, const crc::Variant& variant, CrcKind kind, size_t bytes) {
  static std::vector<uint8_t> cold(kColdBytes);
  const std::vector<uint8_t> data(bytes, 0x5A);
  size_t at = 0;
  for (auto _ : state) {
    if (at + bytes > kColdBytes) at = 0;
    benchmark::DoNotOptimize(variant.copy_past_caches(kind, 0, data.data(), cold.data() + at, bytes));
    at += bytes;
  }
  crc::publish_copies();
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * bytes));
}

void variant_header(benchmark::State& state, const crc::Variant& variant, CrcKind kind) {
  const std::vector<uint8_t> header(wire::kHeaderBytes, 0x5A);
  uint64_t crc = 0;
  for (auto _ : state) benchmark::DoNotOptimize(crc = variant.compute_header(kind, crc, header.data()));
}

// By names such as crc_variant_copy/avx2/crc64/8192.
int register_variants() {
  for (const crc::Variant& variant : crc::kVariants) {
    if (!variant.runs_on(crc::flags_of_this_cpu())) continue;
    for (const CrcKind kind : {CrcKind::kCrc32c, CrcKind::kCrc64Ecma}) {
      const std::string name = std::string(variant.name) + "/" + std::string(wire::crc_kind_name(kind));
      benchmark::RegisterBenchmark(("crc_variant_header/" + name).c_str(), variant_header, variant, kind);
      for (const size_t bytes : {size_t{900}, size_t{1384}, size_t{2400}, size_t{8192}}) {
        const std::string of = name + "/" + std::to_string(bytes);
        benchmark::RegisterBenchmark(("crc_variant_sum/" + of).c_str(), variant_sum, variant, kind, bytes);
        benchmark::RegisterBenchmark(("crc_variant_copy/" + of).c_str(), variant_copy, variant, kind, bytes);
        benchmark::RegisterBenchmark(("crc_variant_stream/" + of).c_str(), variant_stream, variant, kind,
                                     bytes);
      }
    }
  }
  return 0;
}
[[maybe_unused]] const int kRegistered = register_variants();

// ---- folding -----------------------------------------------------------------------------------

// One chunk's CRC into its extent's: bytes/s of payload folded.
void crc_fold_chunk(benchmark::State& state) {
  const storage::ExtentDigest digest(CrcKind::kCrc64Ecma, 8192);
  uint64_t crc = 1;
  for (auto _ : state) benchmark::DoNotOptimize(crc = digest.append(crc, 0x0123456789ABCDEF, 8192));
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * 8192));
}
BENCHMARK(crc_fold_chunk);

// All chunks of an extent, as its receiver does.
void crc_fold_extent(benchmark::State& state) {
  const auto chunk_bytes = static_cast<uint32_t>(state.range(0));
  const storage::ExtentDigest digest(CrcKind::kCrc64Ecma, chunk_bytes);
  const std::vector<uint64_t> crcs((kExtentBytes + chunk_bytes - 1) / chunk_bytes, 0x0123456789ABCDEF);
  for (auto _ : state) benchmark::DoNotOptimize(digest.fold(crcs.data(), kExtentBytes));
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * kExtentBytes));
}
BENCHMARK(crc_fold_extent)->ArgName("chunk")->Arg(896)->Arg(2400)->Arg(8192);

// Over any length: once for the short last chunk of an extent, and for each extent of a file.
void crc_shift(benchmark::State& state) {
  uint64_t crc = 1;
  for (auto _ : state) {
    benchmark::DoNotOptimize(crc = crc::shift(kind_of(state), crc, static_cast<uint64_t>(state.range(1))));
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations()));
}
BENCHMARK(crc_shift)
    ->ArgNames({"kind", "bytes"})
    ->Args({static_cast<int64_t>(CrcKind::kCrc64Ecma), 1 << 20})
    ->Args({static_cast<int64_t>(CrcKind::kCrc64Ecma), (int64_t{64} << 30) - 8})
    ->Args({static_cast<int64_t>(CrcKind::kCrc32c), 1 << 20});

// Made once for a flow.
void crc_shift_table(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(crc::ShiftTable(CrcKind::kCrc64Ecma, 8192));
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations()));
}
BENCHMARK(crc_shift_table);

}  // namespace
}  // namespace sluice
