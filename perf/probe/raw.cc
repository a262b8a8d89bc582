// sluice-raw: what the device carries without a protocol: one end sends bursts of the same frame, the other
// counts and frees them. The ceiling that the lab puts beside the product's goodput
// (docs/performance/lab.md).
//
// Work per frame is that of testpmd's txonly and rxonly: a buffer, the headers, no payload.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstdio>
#include <ctime>

#include "dataplane/lane/clock.h"
#include "perf/probe/end.h"
#include "perf/probe/frames.h"

namespace sluice::probe {
namespace {

constexpr uint64_t kSilenceNs = 1'000'000'000;  // after the first frame: the sender has ended
constexpr timespec kBeforeFirst{0, 50'000};

struct Count {
  uint64_t frames = 0;
  uint64_t bytes = 0;
  uint64_t first_ns = 0;
  uint64_t last_ns = 0;

  void add(uint64_t now_ns, uint64_t more_frames, uint64_t more_bytes) {
    if (frames == 0) first_ns = now_ns;
    last_ns = now_ns;
    frames += more_frames;
    bytes += more_bytes;
  }
};

Count send(net::FrameQueue& queue, lane::Clock& clock, const EndOptions& options,
           const std::atomic<bool>& stop) {
  const FrameWriter writer(options.frame_bytes);
  Count sent;
  uint64_t now_ns = clock.now_ns();
  const uint64_t end_ns = now_ns + static_cast<uint64_t>(options.seconds * 1e9);
  while (now_ns < end_ns && !stop.load(std::memory_order_relaxed)) {
    while (queue.tx_pending() < net::kBurst && writer.append(queue)) {
    }
    const uint32_t offered = queue.tx_pending();
    const uint32_t taken = offered - queue.tx_flush();
    now_ns = clock.now_ns();
    if (taken > 0) sent.add(now_ns, taken, uint64_t{taken} * options.frame_bytes);
  }
  return sent;
}

Count receive(net::FrameQueue& queue, lane::Clock& clock, const EndOptions& options,
              const std::atomic<bool>& stop) {
  const auto length_ns = static_cast<uint64_t>(options.seconds * 1e9);
  Count received;
  while (!stop.load(std::memory_order_relaxed)) {
    net::RxFrame frames[net::kBurst];
    net::RxSegmented segmented;
    const uint32_t count = queue.rx(frames, net::kBurst, &segmented);
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < count; ++i) bytes += frames[i].length;
    queue.release(frames, count);
    const uint64_t now_ns = clock.now_ns();
    if (count > 0) received.add(now_ns, count, bytes);
    if (received.frames == 0) {
      nanosleep(&kBeforeFirst, nullptr);
    } else if (now_ns - received.last_ns > kSilenceNs || now_ns - received.first_ns >= length_ns) {
      break;
    }
  }
  return received;
}

struct Options {
  EndOptions end;
  std::string role;
  bool json = false;
};

Status measure(const Options& options) {
  lane::Clock clock(lane::tsc_is_usable(lane::kernel_clock_source()));
  auto end = End::open("sluice-raw", options.end);
  if (!end) return end.error();
  const auto never = [] { return false; };
  if (Status met = end->wait_for_peer(never); !met) return met;
  std::atomic<bool> stop{false};
  Count count;
  const bool sends = options.role == "tx";
  const Status ran = end->run(stop, never, [&] {
    count = sends ? send(end->queue(), clock, options.end, stop)
                  : receive(end->queue(), clock, options.end, stop);
  });
  if (!ran) return ran;
  if (count.frames == 0 && !sends) {
    return Error{
        ErrorCode::kStalled,
        fmt::format("device {}: no frame came: start the other end with --role tx", options.end.device)};
  }
  const double seconds = static_cast<double>(count.last_ns - count.first_ns) / 1e9;
  const double gbps = seconds > 0 ? static_cast<double>(count.bytes) * 8 / seconds / 1e9 : 0;
  if (!options.json) {
    fmt::print("{} {} frames of {} bytes in {:.3f} s: {:.2f} Gbit/s\n", sends ? "sent" : "received",
               count.frames, options.end.frame_bytes, seconds, gbps);
  }
  fmt::print(R"({{"frames": {}, "bytes": {}, "seconds": {:.6f}, "gbps": {:.3f}}})"
             "\n",
             count.frames, count.bytes, seconds, gbps);
  return {};
}

}  // namespace
}  // namespace sluice::probe

int main(int argc, char** argv) {
  CLI::App app{"One end of a bare pair: the device without a protocol. The measurement is the receiver's.",
               "sluice-raw"};
  sluice::probe::Options options;
  app.add_option("--role", options.role, "tx sends, rx counts")
      ->required()
      ->check(CLI::IsMember({"tx", "rx"}));
  app.add_option("--port", options.end.device, "DPDK device, as [port] device of node.toml")->required();
  app.add_option("--core", options.end.core, "CPU of the polling thread")
      ->required()
      ->check(CLI::Range(0, 4095));
  add_end_options(app, &options.end);
  app.add_flag("--json", options.json, "Nothing but the JSON line on standard output");
  return sluice::probe::run_program(app, argc, argv, [&] { return sluice::probe::measure(options); });
}
