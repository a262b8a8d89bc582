// sluice-ladder: whole transfers in virtual time under each policy of the pacing ladder, through a finite
// queue.
// SPDX-License-Identifier: Apache-2.0
#include "perf/probe/whole.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <string_view>

#include "dataplane/base/arguments/arguments.h"

namespace {

using namespace sluice::probe;  // NOLINT(google-build-using-namespace): a program of its own

template <typename Policy>
void print(std::string_view name, const WholeOptions& options, bool last) {
  const Whole whole = transfer_whole<Policy>(options);
  const auto frames = static_cast<double>(options.frames);
  fmt::print("\"{}\":{{\"first_pass\":{:.6f},\"sent_for_each\":{:.6f},\"seconds\":{:.6f}}}{}", name,
             static_cast<double>(whole.first_pass) / frames, static_cast<double>(whole.sent) / frames,
             static_cast<double>(whole.duration_ns) / 1e9, last ? "}\n" : ",");
}

}  // namespace

int main(int count, char** words) {
  using sluice::arguments::whole;
  CLI::App app{"Whole transfers under each policy of the pacing ladder, in virtual time", "sluice-ladder"};
  WholeOptions options{.pace = {.rate_bps = 1'000'000'000, .wire_bytes = 1538, .start_ns = 1},
                       .link_bps = 1'000'000'000,
                       .queue_frames = 256,
                       .rtt_ns = 1'000'000,
                       .frame_cpu_ns = 10'000,
                       .frames = 71'429};
  app.add_option("--rate-bps", options.pace.rate_bps, "Of the policies")
      ->transform(whole(1000, INT64_C(1) << 40));
  app.add_option("--link-bps", options.link_bps, "Of the link")->transform(whole(1000, INT64_C(1) << 40));
  app.add_option("--wire-bytes", options.pace.wire_bytes, "Of a frame, with FCS, preamble and gap")
      ->transform(whole(64, 65536));
  app.add_option("--queue-frames", options.queue_frames, "Before the link")->transform(whole(1, 1 << 24));
  app.add_option("--rtt-ns", options.rtt_ns, "Until a loss is known")->transform(whole(0, INT64_C(1) << 40));
  app.add_option("--frame-cpu-ns", options.frame_cpu_ns, "What a frame takes the sender")
      ->transform(whole(1, 1 << 30));
  app.add_option("--frames", options.frames, "Of the transfer")->transform(whole(1, 1 << 26));
  if (const auto parsed = sluice::arguments::parse_main(app, count, words); parsed.ended)
    return parsed.status;
  fmt::print("{{");
  print<Unpaced>("unpaced", options, false);
  print<SlotSecond>("slot-1s", options, false);
  print<SlotMillisecond>("slot-1ms", options, false);
  print<History>("history", options, false);
  print<Bucket>("bucket", options, true);
  return 0;
}
