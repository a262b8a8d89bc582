// sluice-pace: how well each policy of the pacing ladder keeps a rate, and what a short queue drained at that
// rate would have taken of its frames at first pass.
//
// Two processes joined by two devices: this one sends, its child receives.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <new>
#include <sstream>

#include "perf/probe/pace_run.h"

namespace sluice::probe {
namespace {

// Seconds that the hypervisor took from these CPUs since boot.
double stolen_seconds(std::array<int, 2> cores) {
  double ticks = 0;
  std::ifstream file("/proc/stat");
  for (std::string line; std::getline(file, line);) {
    for (size_t i = 0; i < cores.size(); ++i) {
      if (i > 0 && cores[i] == cores[0]) continue;
      if (!line.starts_with(fmt::format("cpu{} ", cores[i]))) continue;
      std::istringstream fields(line);
      std::string name;
      std::array<double, 8> values{};  // user nice system idle iowait irq softirq steal
      fields >> name;
      for (double& value : values) fields >> value;
      ticks += values[7];
    }
  }
  return ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
}

// The child, until somebody has waited for it.
class Receiver {
 public:
  explicit Receiver(pid_t pid) : pid_(pid) {}
  ~Receiver() {
    if (ended()) return;
    kill(pid_, SIGTERM);
    waitpid(pid_, nullptr, 0);
  }
  Receiver(const Receiver&) = delete;
  Receiver& operator=(const Receiver&) = delete;

  bool ended() {
    int status = 0;
    if (!ended_ && waitpid(pid_, &status, WNOHANG) == pid_) {
      ended_ = true;
      exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : static_cast<int>(ErrorCode::kInternal);
    }
    return ended_;
  }
  int exit_code() const { return exit_code_; }  // once it has ended

 private:
  const pid_t pid_;
  bool ended_ = false;
  int exit_code_ = 0;
};

void print(const PaceOptions& options, const Sent& sent, const Shared& shared, double stolen_s) {
  const auto frames = static_cast<double>(sent.frames);
  const auto share = [&](uint64_t of) { return sent.frames > 0 ? static_cast<double>(of) / frames : 0; };
  const double wire_bits = 8.0 * options.pace(0).wire_bytes * frames;
  const double achieved_bps =
      sent.duration_ns > 0 ? wire_bits * 1e9 / static_cast<double>(sent.duration_ns) : 0;
  const double rate_error = std::abs(achieved_bps / static_cast<double>(options.rate_bps) - 1);
  const Quantiles& errors_ns = sent.gaps.errors_ns();
  const Quantiles& bursts = sent.gaps.bursts();
  if (!options.json) {
    fmt::print("{}: {:.4f} of {:.4f} Gbit/s, bursts of up to {} frames, {:.4f} % at first pass\n",
               options.policy, achieved_bps / 1e9, static_cast<double>(options.rate_bps) / 1e9, bursts.max(),
               100 * share(sent.queue.accepted()));
  }
  fmt::print(R"({{"policy": "{}", "rate_bps": {}, "achieved_bps": {:.0f}, "rate_error": {:.8f}, )"
             R"("gap_error_p50_ns": {}, "gap_error_p99_ns": {}, "gap_error_p999_ns": {}, )"
             R"("burst_p50": {}, "burst_max": {}, "frames": {}, "first_pass": {:.8f}, )"
             R"("first_pass_arrival": {:.8f}, "received": {}, "steal_s": {:.2f}}})"
             "\n",
             options.policy, options.rate_bps, achieved_bps, rate_error, errors_ns.at(500), errors_ns.at(990),
             errors_ns.at(999), bursts.at(500), bursts.max(), sent.frames, share(sent.queue.accepted()),
             share(shared.accepted.load()), shared.received.load(), stolen_s);
}

Status measure(const PaceOptions& options) {
  if (options.policy == "history" && frames_in(options.pace(0), kSecondNs) > History::kFramesMax) {
    return Error{
        ErrorCode::kUsage,
        fmt::format("--policy history: {} frames a second are more than the {} that it remembers: use "
                    "longer frames or a lower rate",
                    frames_in(options.pace(0), kSecondNs), History::kFramesMax)};
  }
  void* const memory =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return Error{ErrorCode::kInternal, "no memory to share with the receiver"};
  Shared& shared = *new (memory) Shared;
  lane::Clock clock(lane::tsc_is_usable(lane::kernel_clock_source()));
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) return Error{ErrorCode::kInternal, "cannot start the receiver's process: fork failed"};
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) return Error{ErrorCode::kInternal, "the sender's process is gone"};
    return run_receiver(options, clock, shared);
  }
  Receiver receiver(child);
  const std::array<int, 2> cores{options.sender.core, options.receiver.core};
  const double stolen_before_s = stolen_seconds(cores);
  const auto sent = run_sender(options, clock, shared, [&] { return receiver.ended(); });
  // The receiver's own message has been printed, and says more.
  if (receiver.ended() && receiver.exit_code() != 0) {
    return Error{static_cast<ErrorCode>(receiver.exit_code()), "the receiver ended with an error, see above"};
  }
  if (!sent) return sent.error();
  print(options, **sent, shared, stolen_seconds(cores) - stolen_before_s);
  return {};
}

}  // namespace
}  // namespace sluice::probe

int main(int argc, char** argv) {
  using sluice::probe::PaceOptions;
  CLI::App app{"A sender under one pacing policy and a receiver, each a process on one end of a wire.",
               "sluice-pace"};
  PaceOptions options;
  std::vector<int> cores;
  app.add_option("--policy", options.policy, "unpaced, slot-1s, slot-1ms, history, bucket (the product's)")
      ->required()
      ->check(CLI::IsMember({"unpaced", "slot-1s", "slot-1ms", "history", "bucket"}));
  app.add_option("--rate-bps", options.rate_bps, "Rate on the wire: FCS, preamble and gap included")
      ->required()
      ->check(CLI::Range(uint64_t{1'000'000}, uint64_t{400'000'000'000}));
  app.add_option("--queue-frames", options.queue_frames, "Length of the queue that is drained at the rate")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--port-tx", options.sender.device,
                 "DPDK device of the sender, as [port] device of node.toml")
      ->required();
  app.add_option("--port-rx", options.receiver.device, "DPDK device of the receiver")->required();
  app.add_option("--cores", cores, "CPUs of sender and receiver")
      ->required()
      ->delimiter(',')
      ->expected(2)
      ->check(CLI::Range(0, 4095));
  add_end_options(app, &options.sender);
  app.add_flag("--json", options.json, "Nothing but the JSON line on standard output");
  return sluice::probe::run_program(app, argc, argv, [&] {
    const std::string rx_device = options.receiver.device;
    options.receiver = options.sender;
    options.receiver.device = rx_device;
    options.sender.core = cores[0];
    options.receiver.core = cores[1];
    return sluice::probe::measure(options);
  });
}
