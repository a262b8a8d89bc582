// Real processes; the device is the loopback interface, which is always there, or one that never is.
// SPDX-License-Identifier: Apache-2.0
#include "dataplane/keeper/keeper.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace sluice::keeper {
namespace {

namespace fs = std::filesystem;

class Keeping : public testing::Test {
 protected:
  Keeping() {
    std::string name = fs::temp_directory_path() / "sluice-keeper-XXXXXX";
    node_.directory = ::mkdtemp(name.data());
    node_.fallback = "udp";
    node_.fallback_return_s = 1;
    node_.gateway4 = "10.0.0.254";
    node_.workers = 1;
    node_.extents_per_worker = 8;
    with_interface("lo");
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_BLOCK, &none, &mask_);
  }
  ~Keeping() override {
    ::sigprocmask(SIG_SETMASK, &mask_, nullptr);
    fs::remove_all(node_.directory);
  }

  void with_interface(const std::string& name) { node_.device = "net_af_packet0,iface=" + name; }

  // `turn(number)` in each child, from 0 on, which notes what it was to serve.
  int run(const std::function<int(size_t number, daemon::Service& service)>& turn) {
    daemon::Service nobody;
    return keep(node_, nobody, [&](const Turn& given, daemon::Service& service) {
      const size_t number = turns().size();
      board::PortInfo info{};
      given.note(&info);
      std::ofstream(node_.directory / "turns", std::ios::app)
          << given.node.device << ' ' << info.falls << ' ' << info.fallback_for << ' ' << info.fallback_reason
          << '\n';
      return turn(number, service);
    });
  }
  std::vector<std::string> turns() const {
    std::ifstream in(node_.directory / "turns");
    std::vector<std::string> lines;
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
  }
  static void await_end() {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    int number = 0;
    ::sigwait(&set, &number);
  }

  config::Node node_;
  sigset_t mask_{};
};

TEST_F(Keeping, ADeviceThatIsNotThereIsNotTried) {
  with_interface("sluice-none");
  EXPECT_EQ(run([](size_t, daemon::Service&) { return 7; }), 7);
  EXPECT_EQ(turns(), std::vector<std::string>{"udp 1 net_af_packet0 interface sluice-none is not there"});
}

TEST_F(Keeping, ItFallsWhenTheDeviceDoesNotServeAndReturnsOnceItIsThere) {
  const int status = run([](size_t number, daemon::Service& service) {
    if (number == 0) return static_cast<int>(ErrorCode::kDevice);
    service.ready("");
    if (number == 1) await_end();
    return number == 1 ? 0 : 5;
  });
  EXPECT_EQ(status, 5) << "what ends while its device is there decides";
  EXPECT_EQ(turns(), (std::vector<std::string>{
                         "net_af_packet0,iface=lo 0  ",
                         "udp 1 net_af_packet0 it did not start: exit status 13; the log says why",
                         "net_af_packet0,iface=lo 1  "}));
}

TEST_F(Keeping, ACrashWithTheDeviceThereIsNoFall) {
  const int status = run([](size_t, daemon::Service& service) {
    service.ready("");
    ::raise(SIGKILL);
    return 0;
  });
  EXPECT_EQ(status, 128 + SIGKILL);
  EXPECT_EQ(turns().size(), 1U);
}

TEST_F(Keeping, AWrongConfigurationIsNoFall) {
  EXPECT_EQ(run([](size_t, daemon::Service&) { return static_cast<int>(ErrorCode::kConfiguration); }), 3);
  node_.fallback_address4 = "192.0.2.99/24";
  EXPECT_EQ(run([](size_t, daemon::Service&) { return 0; }), 3) << "this host has no such address";
  EXPECT_EQ(turns().size(), 1U);
}

TEST_F(Keeping, ASignalEndsBoth) {
  const int status = run([](size_t, daemon::Service& service) {
    service.ready("");
    ::kill(::getppid(), SIGTERM);
    await_end();
    return 0;
  });
  EXPECT_EQ(status, 0);
}

TEST(Fallback, UsesTheAddressesOfTheHostAndNoneOfTheDevice) {
  config::Node node;
  node.device = "0000:01:00.0";
  node.address4 = "10.77.0.1/24";
  node.address6 = "fd77::1/64";
  node.gateway4 = "10.77.0.254";
  node.neighbours = "10.77.0.2=02:00:5e:10:00:02";
  node.fallback_address4 = "192.0.2.7/24";
  node.udp_port_base = 48000;
  const config::Node sockets = on_sockets(node);
  EXPECT_EQ(sockets.device, "udp");
  EXPECT_EQ(sockets.address4, "192.0.2.7/24");
  EXPECT_EQ(sockets.address6, "");
  EXPECT_EQ(sockets.gateway4 + sockets.neighbours, "");
  EXPECT_EQ(sockets.udp_port_base, 48000);
}

}  // namespace
}  // namespace sluice::keeper
