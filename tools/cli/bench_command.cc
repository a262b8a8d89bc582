// sluice bench: how fast bytes go between two nodes, from and to memory, or from or to a disk.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <ostream>
#include <thread>

#include "control/identity/hex.h"
#include "control/proto/session_state.h"
#include "dataplane/base/arguments/arguments.h"
#include "dataplane/base/config/config.h"
#include "dataplane/base/counted.h"
#include "dataplane/base/version.h"
#include "tools/cli/app.h"
#include "tools/cli/bench.h"
#include "tools/cli/bench_pace.h"
#include "tools/cli/canceller.h"
#include "tools/cli/connect.h"
#include "tools/cli/follow.h"
#include "tools/cli/format.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/progress.h"
#include "tools/cli/target.h"
#include "tools/cli/transfer_flags.h"

namespace sluice::cli {
namespace {

constexpr double kFastestBps = 800e9;                     // nothing ends before its time below this rate
constexpr uint64_t kSessionBytesMax = uint64_t{1} << 48;  // of extents of 1 MiB, 625 Gbit/s for an hour
constexpr uint64_t kDiskBytes = uint64_t{4} << 30;        // of a scratch file, where nobody says
constexpr double kEndTimeoutS = 30;
constexpr double kAbandonedS = 300;  // behind its time: nobody looks at this measurement any more

struct BenchFlags {
  std::string peer;
  bool reverse = false;
  bool both = false;
  BenchTimes times = {.omit_s = 0, .counted_s = 0, .interval_s = 1};
  std::optional<double> seconds;
  std::string bytes;
  std::string from;
  std::string to;
  TransferFlags transfer;
};

// One way of the data.
struct Way {
  Direction direction = Direction::kSend;
  api::TransferRequest request;
  std::string scratch;  // a file that it may leave; empty: none
  uint64_t stop_bytes = 0;

  bool sends() const { return direction == Direction::kSend; }
  const char* arrow() const { return sends() ? "->" : "<-"; }
};

struct Measured {
  BenchInterval total;
  std::optional<BenchPace> pace;  // of a rate that was asked for, at the node that sends
  std::vector<BenchInterval> intervals;
  api::Session session;  // how it ended
  bool over = false;     // this command ended it, since all was measured
};

std::string scratch_name() { return "sluice-bench-" + identity::random_hex(8); }

std::string directory_of(const std::string& text) { return text.ends_with('/') ? text : text + "/"; }

Result<uint64_t> size_of(const BenchFlags& flags) {
  if (flags.bytes.empty()) return 0;
  const auto bytes = config::parse_size(flags.bytes);
  if (!bytes) return Error{ErrorCode::kUsage, "--bytes: " + bytes.error().message};
  if (*bytes == 0) return Error{ErrorCode::kUsage, "--bytes: 0 measure nothing; give 1 or more"};
  return *bytes;
}

// How many bytes are made in memory. A scratch file has more than is measured, so that it is ended before it
// gets its name, and nothing of it stays.
uint64_t generated(const BenchFlags& flags, uint64_t bytes) {
  if (!flags.to.empty()) return bytes + bytes / 4 + (uint64_t{64} << 20);
  if (bytes > 0) return bytes;
  const double until_the_end = (flags.times.omit_s + flags.times.counted_s) * kFastestBps / 8;
  return std::min(static_cast<uint64_t>(until_the_end), kSessionBytesMax);
}

// The node ends the session after so long if this command was killed, which would have ended it.
void end_by_itself(Way& way, double seconds) {
  const std::chrono::nanoseconds now = std::chrono::system_clock::now().time_since_epoch();
  std::visit(
      [&](auto& request) {
        request.mutable_options()->set_deadline_unix_ns(now.count() + static_cast<int64_t>(seconds * 1e9));
        request.mutable_options()->set_deadline_policy("end");
      },
      way.request);
}

Result<Way> way_of(const BenchFlags& flags, Direction direction, const Environment& environment) {
  auto bytes = size_of(flags);
  if (!bytes) return bytes.error();
  if (*bytes == 0 && !flags.to.empty() && flags.from.empty()) *bytes = kDiskBytes;
  Way way{.direction = direction, .request = {}, .scratch = {}, .stop_bytes = flags.to.empty() ? 0 : *bytes};
  // Only the session finds out whether a path at the other node is a directory.
  std::error_code unknown;
  if (way.sends() && !flags.from.empty() &&
      std::filesystem::is_directory(environment.working_directory / flags.from, unknown))
    return Error{ErrorCode::kUsage, printable(flags.from) + ": is a directory; --from takes one file"};
  const std::string remote = flags.peer + ":";
  const std::string source =
      flags.from.empty() ? fmt::format("memory:{}", generated(flags, *bytes)) : flags.from;
  const std::string target = flags.to.empty() ? "null:" : directory_of(flags.to) + scratch_name();
  TransferFlags transfer = flags.transfer;
  transfer.literal = true;
  transfer.paths = way.sends() ? std::vector{source, remote + target} : std::vector{remote + source, target};
  auto request = transfer_request(direction, transfer, environment.working_directory, nullptr);
  if (!request) return request.error();
  way.request = std::move(*request);
  if (flags.times.counted_s > 0) end_by_itself(way, flags.times.omit_s + flags.times.counted_s + kAbandonedS);
  if (!flags.to.empty()) way.scratch = std::visit([](const auto& r) { return r.destination(); }, way.request);
  return way;
}

Status check(BenchFlags& flags) {
  const auto wrong = [](const std::string& what) { return Error{ErrorCode::kUsage, what}; };
  if (flags.peer.find(':') != std::string::npos)
    return wrong(printable(flags.peer) + ": give a node alone; --from and --to name a file and a directory");
  if (flags.both && (!flags.from.empty() || !flags.to.empty()))
    return wrong("--bidir: from memory to memory only; measure each way of a disk by itself");
  if (!flags.from.empty() && !flags.bytes.empty())
    return wrong("--bytes: a file is as long as it is; leave it out with --from");
  if (!flags.from.empty() && !flags.to.empty())
    return wrong("--from and --to together are a transfer: use 'sluice send', which tells as much");
  const bool sized = !flags.bytes.empty() || !flags.from.empty() || !flags.to.empty();
  flags.times.counted_s = flags.seconds.value_or(sized ? 0 : 10);
  return {};
}

// Both ways may run at once: each on a thread of its own, and one prints at a time.
class Bench {
 public:
  Bench(const Context& context, std::shared_ptr<api::Client> client, Canceller& canceller,
        const BenchFlags& flags)
      : context_(context),
        client_(std::move(client)),
        canceller_(canceller),
        times_(flags.times),
        ipv6_(flags.transfer.ipv6) {}

  Result<Measured> measure(const Way& way) {
    const Result<std::string> id = client_->begin(way.request);
    if (!id) return id.error();
    canceller_.started(client_, *id);
    BenchMeter meter(times_, way.stop_bytes);
    Measured measured;
    const auto keep = [&](const std::vector<BenchInterval>& intervals) {
      for (const BenchInterval& interval : intervals) {
        show(way, interval);
        measured.intervals.push_back(interval);
      }
    };
    auto session = client_->watch(*id, std::nullopt, [&](const api::Session& now) {
      keep(meter.see(now));
      return !meter.over();
    });
    if (!session) return session.error();
    keep(meter.see(*session));
    keep(meter.finish());
    measured.total = meter.total();
    if (way.sends()) {
      const auto& options = std::get<api::SendRequest>(way.request).options();
      measured.pace = bench_pace(meter.moving(), options.rate_bps(), ipv6_);
    }
    measured.over = meter.over();
    measured.session = std::move(*session);
    if (const Status ended = end(way, *id, measured.session); !ended) return ended.error();
    canceller_.ended(*id);
    return measured;
  }

 private:
  void show(const Way& way, const BenchInterval& interval) {
    if (context_.json) return;
    const std::lock_guard lock(mutex_);
    context_.environment.out << bench_line(way.arrow(), interval) << std::flush;
  }

  Status end(const Way& way, const std::string& id, api::Session& session) {
    if (!api::stands_still(session)) {
      if (const auto cancelled = client_->cancel(id); !cancelled) return cancelled.error();
      auto last = client_->watch(id, kEndTimeoutS, [](const api::Session&) { return true; });
      if (!last) return last.error();
      if (!api::stands_still(*last))
        return Error{ErrorCode::kStalled, fmt::format("session {} has not ended within {:.0f} s after it was "
                                                      "cancelled; see 'sluice session show {}'",
                                                      id, kEndTimeoutS, id)};
      session = std::move(*last);
    }
    if (way.scratch.empty() || session.state() != api::Session::SUCCEEDED) return {};
    return remove(way);
  }

  // It had its name before it could be ended.
  Status remove(const Way& way) {
    api::RemoveNameRequest request;
    if (way.sends()) request.set_peer(std::get<api::SendRequest>(way.request).peer());
    request.set_path(way.scratch);
    const auto reply = client_->remove_name(request);
    if (reply) return {};
    return Error{reply.error().code, fmt::format("{}: the scratch file stays, remove it: {}",
                                                 printable(way.scratch), reply.error().message)};
  }

  const Context& context_;
  const std::shared_ptr<api::Client> client_;
  Canceller& canceller_;
  const BenchTimes times_;
  const bool ipv6_;  // IPv4 is what is meant otherwise
  std::mutex mutex_;
};

// ---- what is told ------------------------------------------------------------------------------

std::string head_text(const BenchFlags& flags, const std::vector<Way>& ways) {
  const std::string here = "here";
  std::string text;
  for (const Way& way : ways) {
    const std::string source = flags.from.empty() ? "memory" : printable(flags.from);
    const std::string target = flags.to.empty() ? "memory" : "a file in " + printable(flags.to);
    text +=
        fmt::format("{:>3} from {} {} to {} {}\n", way.arrow(), way.sends() ? here : printable(flags.peer),
                    source, way.sends() ? printable(flags.peer) : here, target);
  }
  return text + fmt::format("{:>3} {:>17}  {:>9}  {:>14}\n", "", "seconds", "arrived", "rate");
}

std::string total_text(const Way& way, const Measured& measured) {
  const api::Session& session = measured.session;
  std::string text = bench_line(way.arrow(), measured.total);
  text += fmt::format("    {}, chunks of {} bytes, {}, {}, {}; session {}\n",
                      base::counted(session.lanes(), "lane"), session.chunk_bytes(), session.crc(),
                      session.protection(), session.rate_mode(),
                      printable(session.id().substr(0, kShortIdBytes)));
  if (measured.pace) text += pace_line(*measured.pace);
  const std::string cause = bottleneck_text(session.bottleneck());
  text += "    limited by: " + (cause.empty() ? "nothing that can be named" : cause);
  for (const std::string& line : session.bottleneck().evidence()) text += "; " + printable(line);
  return text + "\n";
}

api::Json start_json(const BenchFlags& flags, const std::vector<Measured>& measured) {
  const api::Session& session = measured.front().session;
  return {{"version", "sluice " SLUICE_VERSION},
          {"connecting_to", {{"host", flags.peer}}},
          {"test_start",
           {{"protocol", "UDP"},
            {"num_streams", session.lanes()},
            {"blksize", session.chunk_bytes()},
            {"omit", flags.times.omit_s},
            {"duration", flags.times.counted_s},
            {"reverse", flags.reverse ? 1 : 0},
            {"bidir", flags.both ? 1 : 0},
            {"from", flags.from},
            {"to", flags.to},
            {"rate_limit_bps", session.rate_limit_bps()},
            {"rate_mode", session.rate_mode()},
            {"crc", session.crc()},
            {"protection", session.protection()}}}};
}

// As iperf3 has it: the second way of two is "..._bidir_reverse".
api::Json result_json(const BenchFlags& flags, const std::vector<Way>& ways,
                      const std::vector<Measured>& measured) {
  api::Json intervals = api::Json::array();
  api::Json end = api::Json::object();
  for (size_t i = 0; i < ways.size(); ++i) {
    const std::string suffix = i == 0 ? "" : "_bidir_reverse";
    const bool sender = ways[i].sends();
    for (const BenchInterval& interval : measured[i].intervals) {
      intervals.push_back(
          {{"streams", bench_streams(interval, sender)}, {"sum" + suffix, bench_sum(interval, sender)}});
    }
    const api::Session& session = measured[i].session;
    end["sum_received" + suffix] = bench_sum(measured[i].total, sender);
    end["limited_by" + suffix] = api::bottleneck_json(session.bottleneck());
    end["session" + suffix] = session.id();
    if (measured[i].pace) end["pacing" + suffix] = pace_json(*measured[i].pace);
  }
  return {{"schema", "sluice.bench.v1"},
          {"start", start_json(flags, measured)},
          {"intervals", std::move(intervals)},
          {"end", std::move(end)}};
}

// What was measured counts, however the session was ended for that; an end that nobody asked for does not.
int outcome_of(Environment& environment, const std::vector<Measured>& measured) {
  for (const Measured& one : measured) {
    if (one.over || one.session.state() == api::Session::SUCCEEDED) continue;
    tell_failure(environment, one.session);
    return exit_code_of(one.session);
  }
  return 0;
}

Result<int> bench(const Context& context, BenchFlags flags) {
  if (const Status right = check(flags); !right) return right.error();
  std::vector<Way> ways;
  for (const Direction direction : {Direction::kSend, Direction::kGet}) {
    if (!flags.both && (direction == Direction::kGet) != flags.reverse) continue;
    auto way = way_of(flags, direction, context.environment);
    if (!way) return way.error();
    ways.push_back(std::move(*way));
  }
  Canceller canceller(context.environment);
  const Interrupt interrupt([&canceller] { canceller.on_interrupt(); },
                            static_cast<int>(ErrorCode::kCancelled), Interrupt::HangUp::kInterrupts);
  auto connected = connect_to_node(context.node_directory());
  if (!connected) return connected.error();
  if (!context.json) context.environment.out << head_text(flags, ways) << std::flush;
  Bench bench(context, std::move(*connected), canceller, flags);
  std::vector<std::optional<Result<Measured>>> results(ways.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < ways.size(); ++i)
    threads.emplace_back([&, i] { results[i].emplace(bench.measure(ways[i])); });
  for (std::thread& thread : threads) thread.join();
  std::vector<Measured> measured;
  for (auto& result : results) {
    if (!*result) return result->error();
    measured.push_back(std::move(**result));
  }
  std::string text = "  - - - - -\n";
  for (size_t i = 0; i < ways.size(); ++i) text += total_text(ways[i], measured[i]);
  context.print(result_json(flags, ways, measured), text);
  return outcome_of(context.environment, measured);
}

// The letters are iperf3's.
void add_bench_flags(CLI::App& command, BenchFlags& flags) {
  command.add_option("node", flags.peer, "The other node: the name of a peer")->required()->type_name("NODE");
  auto* reverse = command.add_flag("-R,--reverse", flags.reverse, "The other node sends");
  command.add_flag("--bidir", flags.both, "Both ways at once")->excludes(reverse);
  command
      .add_option("-t,--time", flags.seconds, "Seconds to measure (default: 10, or until all has arrived)")
      ->type_name("S")
      ->transform(arguments::number(0.1, 86400));
  command
      .add_option("-n,--bytes", flags.bytes, "So much instead, such as 10G; with --to up to so much (4 GiB)")
      ->type_name("SIZE");
  command.add_option("-O,--omit", flags.times.omit_s, "Seconds at the beginning that do not count")
      ->type_name("S")
      ->transform(arguments::number(0, 3600));
  command.add_option("-i,--interval", flags.times.interval_s, "Seconds between reports (1)")
      ->type_name("S")
      ->transform(arguments::number(0.1, 3600));
  command.add_option("--from", flags.from, "A file at the sending node, instead of its memory")
      ->type_name("FILE");
  command
      .add_option("--to", flags.to,
                  "A directory at the receiving node: into a file there, of which nothing stays")
      ->type_name("DIR");
  TransferFlags& transfer = flags.transfer;
  add_option(command, transfer, "lanes", "-P,--parallel,--lanes");
  add_option(command, transfer, "rate_bps", "-b,--bitrate,--rate", "Limit in bit/s, such as 10G");
  add_option(command, transfer, "chunk_bytes", "-l,--length,--chunk-bytes", "Payload of one datagram");
  for (const char* const name : {"mode", "crc", "protection", "ipv4", "ipv6"})
    add_option(command, transfer, name);
}

}  // namespace

void add_bench_command(CLI::App& app, Context& context) {
  auto flags = std::make_shared<BenchFlags>();
  CLI::App* const command =
      app.add_subcommand("bench", "Measure how fast bytes go to another node and what limits them");
  add_bench_flags(*command, *flags);
  command->callback(
      [&context, flags] { context.action = [&context, flags] { return bench(context, *flags); }; });
}

}  // namespace sluice::cli
