// One end of a probe: a device opened exactly as the product opens its own, without the protocol above it.
//
// Cold but for the queue inside; main thread. A polling thread runs what the probe measures.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "dataplane/dpdk/bare_ports.h"

namespace sluice::probe {

struct EndOptions {
  std::string device;
  int core = -1;
  uint32_t frame_bytes = 0;  // without FCS
  double seconds = 0;
  uint32_t mtu = 0;  // 0: as long as the frames need, at least 9000
  uint32_t ring = 0;
  std::string memory = "auto";
  uint32_t memory_mib = 0;
  double wait_seconds = 10;
};

// The options that both programs have.
void add_end_options(CLI::App& app, EndOptions* options);
// Parses and runs; returns the exit status. `body` returns the error, if any.
int run_program(CLI::App& app, int argc, char** argv, const std::function<Status()>& body);

// Set by SIGTERM and SIGINT: end early, say what was measured.
bool stop_wanted();

class End {
 public:
  static Result<End> open(const std::string& program, const EndOptions& options);

  net::FrameQueue& queue() { return ports_->queue(0); }
  bool up() const { return ports_->up(0); }
  // Waits until the device has its peer. `gone` is asked meanwhile: true ends the wait without error.
  Status wait_for_peer(const std::function<bool()>& gone);
  // Runs `body` on the polling thread until it returns. `body` looks at `stop`, which is set at a signal,
  // when the peer has gone, or when `gone` says so.
  Status run(std::atomic<bool>& stop, const std::function<bool()>& gone, const std::function<void()>& body);

 private:
  End(EndOptions options, std::unique_ptr<dpdk::BarePorts> ports)
      : options_(std::move(options)), ports_(std::move(ports)) {}

  EndOptions options_;
  std::unique_ptr<dpdk::BarePorts> ports_;
};

}  // namespace sluice::probe
