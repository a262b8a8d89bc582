// A process with two ends, each with a node that may be killed at any time.
// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dpdk/bare_ports.h"

#include <gtest/gtest.h>

#include <memory>

#include "dataplane/dpdk/port_fixture_for_test.h"

namespace sluice::dpdk {
namespace {

class BarePortsTest : public PortTest {
 protected:
  static constexpr const char* kSockets[2] = {"a.sock", "b.sock"};

  // servers: which of the two ends.
  BarePortsOptions options(bool a_serves, bool b_serves) const {
    BarePortsOptions options{.program = "relay", .ring = 256, .memory = "no-huge"};
    for (const int end : {0, 1}) {
      options.devices.push_back("net_memif" + std::to_string(end) +
                                ",role=" + ((end == 0 ? a_serves : b_serves) ? "server" : "client") +
                                ",socket-abstract=no,socket=" + socket(kSockets[end]).string());
    }
    return options;
  }
};

uint64_t pass(net::FrameQueue& from, net::FrameQueue& to) {
  net::RxFrame frames[net::kBurst];
  net::RxSegmented segmented;
  const uint32_t count = from.rx(frames, net::kBurst, &segmented);
  for (uint32_t i = 0; i < count; ++i) {
    if (to.tx_begin(0, frames[i].data, frames[i].length, nullptr, false) == nullptr) to.tx_flush();
  }
  from.release(frames, count);
  to.tx_flush();
  return count;
}

int relay(const BarePortsOptions& options, const Wire& wire) {
  auto ports = BarePorts::open(options, [&](const std::string& news) { wire.say(news); });
  if (!ports) {
    wire.say("error " + ports.error().message);
    return 1;
  }
  std::atomic<bool> stop = false;
  const Status launched = (*ports)->launch([&] {
    while (!stop) {
      if (pass((*ports)->queue(0), (*ports)->queue(1)) + pass((*ports)->queue(1), (*ports)->queue(0)) == 0) {
        usleep(50);
      }
    }
  });
  if (!launched) return 2;
  wire.say("ready");
  while (!wire.stop_wanted()) {
    (*ports)->maintain();
    usleep(1000);
  }
  stop = true;
  (*ports)->join();
  return 0;
}

class BarePortsKills : public BarePortsTest, public testing::WithParamInterface<std::pair<bool, bool>> {};

TEST_P(BarePortsKills, PassesFramesAgainAfterEitherNodeWasKilledUnderLoad) {
  const bool a_serves = GetParam().first;
  const bool b_serves = GetParam().second;
  const bool node_serves[2] = {!a_serves, !b_serves};
  Child middle([&](const Wire& wire) { return relay(options(a_serves, b_serves), wire); });
  middle.expect_line_with("ready");
  uint32_t number = 99;
  const auto start = [&](int end) {
    number += 3;
    return std::make_unique<Child>(
        [&, end](const Wire& wire) { return chat(node(node_serves[end], 1, kSockets[end]), number, wire); });
  };
  std::unique_ptr<Child> nodes[2];
  nodes[0] = start(0);
  nodes[1] = start(1);
  nodes[0]->expect_line_with("heard " + std::to_string(number));
  nodes[1]->expect_line_with("heard " + std::to_string(number - 3));
  for (int round = 0; round < 6 && !HasFatalFailure(); ++round) {
    const int killed = round % 2;
    nodes[killed]->kill_hard();
    nodes[killed] = start(killed);
    nodes[1 - killed]->expect_line_with("heard " + std::to_string(number));
    nodes[killed]->expect_line_with("heard ");
  }
  EXPECT_EQ(nodes[0]->exit_status(), 0);
  EXPECT_EQ(nodes[1]->exit_status(), 0);
  EXPECT_EQ(middle.exit_status(), 0);
}

INSTANTIATE_TEST_SUITE_P(AllRoles, BarePortsKills,
                         testing::Values(std::pair{true, true}, std::pair{true, false},
                                         std::pair{false, false}));

TEST_F(BarePortsTest, SurvivesBothNodesBeingGoneAtOnce) {
  Child middle([&](const Wire& wire) { return relay(options(true, true), wire); });
  middle.expect_line_with("ready");
  for (uint32_t round = 1; round <= 3 && !HasFatalFailure(); ++round) {
    Child a([&](const Wire& wire) { return chat(node(false, 1, kSockets[0]), 100 * round, wire); });
    Child b([&](const Wire& wire) { return chat(node(false, 1, kSockets[1]), 100 * round + 3, wire); });
    a.expect_line_with("heard " + std::to_string(100 * round + 3));
    b.expect_line_with("heard " + std::to_string(100 * round));
    a.kill_hard();
    b.kill_hard();
  }
  EXPECT_EQ(middle.exit_status(), 0);
}

TEST_F(BarePortsTest, NamesWhatIsWrong) {
  const auto message = [&](const BarePortsOptions& wrong) {
    Child child([&](const Wire& wire) { return relay(wrong, wire); });
    return child.line();
  };
  BarePortsOptions wrong = options(true, true);
  wrong.devices[1] = wrong.devices[0];
  EXPECT_NE(message(wrong).find("device net_memif0: is there twice"), std::string::npos) << message(wrong);
  wrong = options(true, true);
  wrong.memory_mib = 8;
  EXPECT_NE(message(wrong).find("8 MiB for packet buffers are too few"), std::string::npos) << message(wrong);
  wrong = options(true, true);
  wrong.devices[1] = "eth0";
  EXPECT_NE(message(wrong).find("\"eth0\" is neither"), std::string::npos) << message(wrong);
}

}  // namespace
}  // namespace sluice::dpdk
