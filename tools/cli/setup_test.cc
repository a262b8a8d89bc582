// `sluice node setup`: what it decides of the cards of a host, whom it asks, and what it makes.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <deque>
#include <fstream>
#include <sstream>

#include "dataplane/base/config/config.h"
#include "tools/cli/app.h"
#include "tools/cli/service_files.h"
#include "tools/cli/setup_plan.h"

namespace sluice::cli {
namespace {

namespace fs = std::filesystem;
using doctor::Card;

constexpr const char* kNetRaw = "CapabilityBoundingSet=CAP_NET_RAW\nAmbientCapabilities=CAP_NET_RAW\n";

const Card kPlain{.pci = "0000:01:00.0",
                  .interface = "eth2",
                  .driver = "ixgbe",
                  .speed_mbps = 10000,
                  .numa_node = 1,
                  .up = true,
                  .iommu_group = true};
const Card kUsed{.pci = "0000:02:00.0",
                 .interface = "eth0",
                 .driver = "ice",
                 .speed_mbps = 100000,
                 .iommu_group = true,
                 .default_route = true,
                 .addresses = {"192.0.2.7/24"}};
const Card kMellanox{.pci = "0000:03:00.0",
                     .interface = "eth4",
                     .driver = "mlx5_core",
                     .speed_mbps = 40000,
                     .addresses = {"192.0.2.9/24"}};
const Card kBound{.pci = "0000:04:00.0", .driver = "vfio-pci", .iommu_group = true};
const Card kNoIommu{.pci = "0000:05:00.0", .interface = "eth5", .driver = "ixgbe", .speed_mbps = 400000};
const std::vector<Card> kAll{kPlain, kUsed, kMellanox, kBound, kNoIommu};

TEST(SetupPlan, TheFastestCardThatNobodyNeedsAndThatCanBeHadIsProposed) {
  ASSERT_NE(free_card(kAll), nullptr);
  EXPECT_EQ(free_card(kAll)->pci, kPlain.pci);
  EXPECT_EQ(free_card({kUsed, kMellanox, kNoIommu}), nullptr);
  EXPECT_EQ(free_card({kBound})->pci, kBound.pci);
}

TEST(SetupPlan, ACardIsNamedByItsInterfaceOrItsAddress) {
  for (const char* name : {"eth2", "0000:01:00.0", "01:00.0"}) {
    const auto carrier = carrier_of(kAll, name, false);
    ASSERT_TRUE(carrier) << name << carrier.error().message;
    EXPECT_EQ(carrier->device, "0000:01:00.0");
    EXPECT_TRUE(carrier->binds());
    EXPECT_EQ(carrier->service_rights(), "");
  }
  EXPECT_FALSE(carrier_of(kAll, "udp", false)->card);
  EXPECT_FALSE(carrier_of(kAll, "04:00.0", false)->binds()) << "vfio-pci has it already";
  const auto shared = carrier_of(kAll, "eth4", false);
  ASSERT_TRUE(shared) << "it stays with the kernel, whatever addresses it has";
  EXPECT_FALSE(shared->binds());
  EXPECT_EQ(shared->service_rights(), kNetRaw);
  EXPECT_EQ(carrier_of({}, "net_af_packet0,iface=eth0", false)->service_rights(), kNetRaw);
  const std::string xdp = carrier_of({}, "net_af_xdp0,iface=eth0", false)->service_rights();
  for (const char* right :
       {"=CAP_NET_RAW CAP_NET_ADMIN CAP_BPF\n", "RestrictAddressFamilies=AF_XDP\n", "SystemCallFilter=bpf\n"})
    EXPECT_NE(xdp.find(right), std::string::npos) << xdp;
}

TEST(SetupPlan, WhatWouldCutTheHostOffIsRefusedUnlessItIsWanted) {
  const auto used = carrier_of(kAll, "eth0", false);
  ASSERT_FALSE(used);
  EXPECT_EQ(used.error().code, ErrorCode::kConfiguration);
  EXPECT_NE(used.error().message.find("192.0.2.7/24 and the default route"), std::string::npos);
  EXPECT_NE(used.error().message.find("--take"), std::string::npos);
  EXPECT_TRUE(carrier_of(kAll, "eth0", true));
  const auto without = carrier_of(kAll, "eth5", true);
  ASSERT_FALSE(without);
  EXPECT_NE(without.error().message.find("intel_iommu=on"), std::string::npos);
  EXPECT_NE(carrier_of(kAll, "eth9", false).error().message.find("eth2, eth0, eth4"), std::string::npos);
  EXPECT_NE(carrier_of({}, "eth9", false).error().message.find("--device udp"), std::string::npos);
}

TEST(SetupPlan, TheAddressDecidesWhereNoDeviceWasNamed) {
  const doctor::Addresses here{{"eth0", {"192.0.2.7/24"}}};
  EXPECT_EQ(*default_device(kAll, here, ""), "udp");
  EXPECT_EQ(*default_device(kAll, here, "192.0.2.7/24"), "udp");
  EXPECT_EQ(*default_device(kAll, here, "10.77.0.1/24"), kPlain.pci);
  EXPECT_NE(default_device({kUsed}, here, "10.77.0.1/24").error().message.find("10.77.0.1/24"),
            std::string::npos);
}

TEST(SetupPlan, TheHostIsGivenWhatTheDeviceNeedsAndNoMore) {
  const std::string sockets = host_file(*carrier_of(kAll, "udp", false), 256);
  EXPECT_NE(sockets.find("\nSOCKET_BUFFER_BYTES=4194304\n"), std::string::npos);
  for (const char* key : {"\nHUGEPAGES_MIB=", "\nHUGEPAGES_NODE=", "\nDEVICE="})
    EXPECT_EQ(sockets.find(key), std::string::npos) << key;
  const std::string card = host_file(*carrier_of(kAll, "eth2", false), 1024);
  for (const char* line : {"\nHUGEPAGES_MIB=1024\n", "\nHUGEPAGES_NODE=1\n", "\nDEVICE=0000:01:00.0\n"})
    EXPECT_NE(card.find(line), std::string::npos) << line;
  const std::string shared = host_file(*carrier_of(kAll, "eth4", false), 1024);
  EXPECT_NE(shared.find("\nHUGEPAGES_MIB=1024\n"), std::string::npos);
  EXPECT_EQ(shared.find("\nDEVICE="), std::string::npos) << "it stays with the kernel";
}

TEST(SetupPlan, WhatACardNeedsIsNamedForANodeOfNoService) {
  EXPECT_TRUE(host_commands(*carrier_of(kAll, "udp", false), 256).empty());
  EXPECT_EQ(host_commands(*carrier_of(kAll, "eth2", false), 1024),
            (std::vector<std::string>{"modprobe vfio-pci",
                                      "HUGEPAGES_MIB=1024 HUGEPAGES_NODE=1 DEVICE=0000:01:00.0 GROUP=$(id "
                                      "-gn) /usr/libexec/sluice/sluice-host"}));
  EXPECT_EQ(host_commands(*carrier_of(kAll, "eth4", false), 512),
            (std::vector<std::string>{"HUGEPAGES_MIB=512 /usr/libexec/sluice/sluice-host"}))
      << "it stays with the kernel";
  EXPECT_EQ(host_commands(*carrier_of(kAll, "04:00.0", false), 512),
            (std::vector<std::string>{
                "HUGEPAGES_MIB=512 DEVICE=0000:04:00.0 GROUP=$(id -gn) /usr/libexec/sluice/sluice-host"}))
      << "vfio-pci has it already; its device may still be root's";
}

class Setup : public ::testing::Test {
 protected:
  void SetUp() override { fs::create_directories(place_); }
  void TearDown() override { fs::remove_all(place_); }

  int setup(const std::vector<std::string>& more, std::optional<std::deque<std::string>> answers = {}) {
    std::vector<std::string> words{"node", "setup", (place_ / "n").string()};
    words.insert(words.end(), more.begin(), more.end());
    out_.str("");
    err_.str("");
    Environment environment{out_, err_};
    environment.working_directory = place_;
    if (answers) {
      environment.answer = [&answers] {
        if (answers->empty()) return std::string();
        const std::string next = answers->front();
        answers->pop_front();
        return next;
      };
    }
    return run(words, environment);
  }

  const fs::path place_ = fs::temp_directory_path() / ("setup-test-" + std::to_string(::getpid()));
  std::ostringstream out_, err_;
};

TEST_F(Setup, WithoutATerminalAndYesNothingIsMade) {
  EXPECT_EQ(setup({}), static_cast<int>(ErrorCode::kUsage));
  EXPECT_NE(err_.str().find("--yes"), std::string::npos);
  EXPECT_FALSE(fs::exists(place_ / "n"));
}

TEST_F(Setup, YesMakesANodeOnSocketsWithADirectoryToShare) {
  ASSERT_EQ(setup({"--yes", "--name", "alpha"}), 0) << err_.str();
  const auto node = config::load(place_ / "n");
  ASSERT_TRUE(node) << node.error().message;
  EXPECT_EQ(node->name, "alpha");
  EXPECT_EQ(node->device, "udp");
  ASSERT_EQ(node->exports.size(), 1U);
  EXPECT_EQ(node->exports[0].mode(), "rw");
  EXPECT_TRUE(fs::is_directory(node->exports[0].path));
  EXPECT_NE(out_.str().find("fingerprint"), std::string::npos);
  // What it says comes next is done to this node.
  const std::string command = "sluice --node " + (place_ / "n").string();
  EXPECT_NE(out_.str().find("  " + command + " node trust PEER"), std::string::npos) << out_.str();
  EXPECT_NE(out_.str().find("  " + command + " doctor\n"), std::string::npos) << out_.str();
  EXPECT_EQ(out_.str().find("sluice-host"), std::string::npos) << "sockets need nothing of the host";
  EXPECT_EQ(setup({"--yes"}), static_cast<int>(ErrorCode::kConfiguration));
  EXPECT_NE(err_.str().find("holds a node already"), std::string::npos);
}

TEST_F(Setup, AsksAndTakesWhatIsAnswered) {
  ASSERT_EQ(setup({}, {{"Not Good", "beta", "none", "udp", (place_ / "shared").string(), "yes"}}), 0)
      << err_.str();
  const auto node = config::load(place_ / "n");
  ASSERT_TRUE(node) << node.error().message;
  EXPECT_EQ(node->name, "beta") << "asked again after one that cannot be";
  EXPECT_EQ(node->listen, "none");
  EXPECT_EQ(node->exports[0].path, place_ / "shared");
  EXPECT_TRUE(fs::is_directory(place_ / "shared"));
}

TEST_F(Setup, NoMakesNothing) {
  EXPECT_EQ(setup({"--device", "udp"}, {{"", "", "", "no"}}), static_cast<int>(ErrorCode::kCancelled));
  EXPECT_FALSE(fs::exists(place_ / "n"));
}

TEST_F(Setup, AnAnswerThatCannotBeIsNotAskedForForEver) {
  EXPECT_EQ(setup({}, {{"A", "B", "C", "D", "E", "F"}}), static_cast<int>(ErrorCode::kUsage));
  EXPECT_FALSE(fs::exists(place_ / "n"));
}

TEST_F(Setup, ADeviceOfDpdkNeedsAnAddress) {
  EXPECT_EQ(setup({"--yes", "--device", "net_null0"}), static_cast<int>(ErrorCode::kUsage));
  EXPECT_NE(err_.str().find("--address"), std::string::npos);
  ASSERT_EQ(setup({"--yes", "--device", "net_null0", "--address", "10.77.0.1/24"}), 0) << err_.str();
  EXPECT_EQ(config::load(place_ / "n")->address4, "10.77.0.1/24");
}

TEST_F(Setup, ANodeOfTheServicesBelongsToTheirUsers) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to give files away";
  const fs::path root = place_ / "root";
  fs::create_directories(root / "etc");
  EXPECT_FALSE(service_users(root));
  std::ofstream(root / "etc/passwd") << "root:x:0:0:root:/root:/bin/sh\nsluice-control:x:951:952::/:/x\n";
  std::ofstream(root / "etc/group") << "sluice:x:953:\nsluice-dataplane:x:954:sluice-control\n";
  const auto users = service_users(root);
  ASSERT_TRUE(users);
  ASSERT_EQ(setup({"--yes"}), 0) << err_.str();
  const Status handed = hand_over(place_ / "n", *users, root);
  ASSERT_TRUE(handed) << handed.error().message;
  const auto expect = [](const fs::path& path, uid_t user, gid_t group, mode_t mode) {
    struct stat info {};
    ASSERT_EQ(::lstat(path.c_str(), &info), 0) << path;
    EXPECT_EQ(info.st_uid, user) << path;
    EXPECT_EQ(info.st_gid, group) << path;
    EXPECT_EQ(info.st_mode & 07777, mode) << path;
  };
  expect(place_ / "n", 0, 0, 0755);
  expect(place_ / "n/identity", 951, 952, 0700);
  expect(place_ / "n/identity/key.pem", 951, 952, 0600);
  expect(place_ / "n/trusted", 0, 0, 0755);
  expect(root / "var/lib/sluice", 951, 952, 0700);
  expect(root / "run/sluice", 951, 954, 01771);
  EXPECT_EQ(fs::read_symlink(place_ / "n/run"), kServiceRun);
  ASSERT_TRUE(make_shared(root / "srv/sluice", users));
  expect(root / "srv/sluice", 951, 953, 02770);
}

TEST_F(Setup, OnlyADeviceThatNeedsThemGetsRights) {
  const fs::path file = place_ / "etc/systemd/system/sluice-dataplane.service.d/net-raw.conf";
  ASSERT_TRUE(grant(kNetRaw, place_));
  std::ifstream in(file);
  std::stringstream text;
  text << in.rdbuf();
  EXPECT_NE(text.str().find("\n[Service]\n" + std::string(kNetRaw)), std::string::npos) << text.str();
  ASSERT_TRUE(grant("", place_));
  EXPECT_FALSE(fs::exists(file));
}

}  // namespace
}  // namespace sluice::cli
