// sluice-wire: a path between two devices that loses, delays, reorders, doubles and damages frames as it is
// told (docs/WIRE-EMULATOR.md).
//
// The main thread does what is cold: start, the control socket, keeping the ports alive, the end.
// SPDX-License-Identifier: Apache-2.0
#include <signal.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>

#include "dataplane/base/arguments/arguments.h"
#include "dataplane/base/version.h"
#include "dataplane/dpdk/bare_ports.h"
#include "tools/wire/commands.h"
#include "tools/wire/control_socket.h"
#include "tools/wire/engine.h"

namespace sluice {
namespace {

constexpr int kServeTimeoutMs = 200;

struct Options {
  dpdk::BarePortsOptions ports;
  std::string settings_file;
  std::string control_socket;
  uint64_t seed = 1;
  uint64_t store_mib = 1024;
};

int fail(const Error& error) {
  fprintf(stderr, "sluice-wire: %s\n", error.message.c_str());
  return static_cast<int>(error.code);
}

int signal_fd() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signal(SIGPIPE, SIG_IGN);
  return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

Result<std::array<emulator::Settings, emulator::kDirections>> read_settings(const std::string& path) {
  if (path.empty()) return std::array<emulator::Settings, emulator::kDirections>{};
  std::ifstream file(path);
  if (!file) return Error{ErrorCode::kConfiguration, path + ": cannot be read: check --settings"};
  const emulator::Json json = emulator::Json::parse(file, nullptr, false);
  if (json.is_discarded()) return Error{ErrorCode::kConfiguration, path + ": is no JSON"};
  auto settings = emulator::settings_of(json);
  if (!settings) return Error{ErrorCode::kConfiguration, path + ": " + settings.error().message};
  return settings;
}

int serve(const Options& options) {
  const auto warn = [](const std::string& text) { spdlog::warn("{}", text); };
  const int signals = signal_fd();
  const auto settings = read_settings(options.settings_file);
  if (!settings) return fail(settings.error());
  auto opened = dpdk::BarePorts::open(options.ports, warn);
  if (!opened) return fail(opened.error());
  dpdk::BarePorts& ports = **opened;

  std::array<emulator::Direction::Setup, emulator::kDirections> setups;
  for (size_t i = 0; i < setups.size(); ++i) {
    const size_t to = 1 - i;
    setups[i] = {.from = &ports.queue(i),
                 .to = &ports.queue(to),
                 .frame_bytes_max = ports.frame_bytes_max(to),
                 .store_bytes = options.store_mib << 20,
                 .seed = 2 * options.seed + i};
  }
  emulator::Engine engine(setups, *settings);
  emulator::Commands commands(engine, [&] {
    emulator::Json json;
    for (size_t i = 0; i < 2; ++i) {
      json[i == 0 ? "a" : "b"] = {{"device", ports.name(i)}, {"up", ports.up(i)}};
    }
    return json;
  });
  auto control = emulator::ControlSocket::listen(options.control_socket);
  if (!control) return fail(control.error());
  if (Status status = ports.launch([&] { engine.run(); }); !status) return fail(status.error());
  spdlog::info("joining {} and {}, seed {}, {}", ports.name(0), ports.name(1), options.seed,
               ports.hugepages() ? "hugepages" : "no hugepages");
  const auto answer = [&](std::string_view line) { return commands.answer(line); };
  for (signalfd_siginfo info; read(signals, &info, sizeof info) <= 0;) {
    control->serve(kServeTimeoutMs, signals, answer);
    ports.maintain();
  }
  engine.stop();
  ports.join();
  printf("%s\n", commands.counters().dump().c_str());
  fflush(stdout);
  return 0;
}

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) {
  CLI::App app{"Sluice path emulator: joins two devices by a path with rate, loss, delay and damage.",
               "sluice-wire"};
  sluice::Options options;
  auto& ports = options.ports;
  ports.program = "sluice-wire";
  ports.devices.resize(2);
  app.add_option("--port-a", ports.devices[0], "DPDK device of end a, as [port] device of node.toml")
      ->required();
  app.add_option("--port-b", ports.devices[1], "DPDK device of end b; another name")->required();
  app.add_option("--control", options.control_socket, "Unix socket for commands, one JSON object per line")
      ->required();
  app.add_option("--settings", options.settings_file,
                 "JSON file: {\"both\": ..., \"a_to_b\": ..., \"b_to_a\": ...}");
  app.add_option("--seed", options.seed, "Seed of all chance")->capture_default_str();
  app.add_option("--mtu", ports.mtu, "Largest IP packet")
      ->check(CLI::Range(576, 65000))
      ->capture_default_str();
  app.add_option("--ring", ports.ring, "Frames in a device's ring")
      ->check(CLI::Range(64, 4096))
      ->capture_default_str();
  app.add_option("--memory", ports.memory, "Packet memory: auto, hugepages, no-huge")
      ->check(CLI::IsMember({"auto", "hugepages", "no-huge"}))
      ->capture_default_str();
  app.add_option("--memory-mib", ports.memory_mib, "Packet memory of the devices, MiB")
      ->capture_default_str();
  app.add_option("--store-mib", options.store_mib, "Most memory for frames on their way, MiB per direction")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--core", ports.cores, "CPUs for the polling thread; any if not given")->delimiter(',');
  app.set_version_flag("--version", SLUICE_VERSION);
  if (const auto parsed = sluice::arguments::parse_main(app, argc, argv); parsed.ended) return parsed.status;
  // Standard output is for the final counters.
  spdlog::set_default_logger(spdlog::stderr_color_mt("sluice-wire"));
  return sluice::serve(options);
}
