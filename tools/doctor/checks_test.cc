// Each thing that can be wrong is found, at its level, with a remedy; a node that is well has nothing but
// passes.
// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/checks.h"

#include <gtest/gtest.h>

namespace sluice::doctor {
namespace {

Facts well() {
  Facts facts;
  facts.version = "1";
  facts.directory = "/n";
  facts.node.emplace();
  facts.node->device = "0000:01:00.0";
  facts.node->cores = {2};
  facts.hugepages = {{.numa_node = 0, .page_kib = 2048, .all_mib = 1024, .free_mib = 512}};
  facts.cpus = {{.cpu = 0, .numa_node = 0},
                {.cpu = 2, .numa_node = 0, .isolated = true, .governor = "performance"}};
  facts.device = {.kind = DeviceFacts::Kind::kPci,
                  .name = "0000:01:00.0",
                  .found = true,
                  .driver = "vfio-pci",
                  .iommu_group = true,
                  .numa_node = 0};
  facts.exports = {{.root = {.name = "data", .path = "/srv", .read = true, .write = true},
                    .file_system = "xfs",
                    .size_bytes = 100,
                    .free_bytes = 50,
                    .readable = true,
                    .writable = true,
                    .direct_io = true}};
  facts.kernel = {
      .rmem_max = 8U << 20, .wmem_max = 8U << 20, .clock_synchronized = true, .memory_available_mib = 4096};
  facts.daemon = {.version = "1", .attached = true};
  facts.peers = {{.name = "beta", .address = "beta:7400"}};
  return facts;
}

Facts on_sockets() {
  Facts facts = well();
  facts.node->device = "udp";
  facts.node->cores = {};
  facts.device = {.kind = DeviceFacts::Kind::kSockets,
                  .name = "eth0",
                  .found = true,
                  .up = true,
                  .mtu = 9000,
                  .speed_mbps = 10000};
  return facts;
}

// The worst finding of a check; fails when there is none.
Finding found(const Facts& facts, const std::string& check) {
  std::optional<Finding> worst;
  for (const Finding& finding : doctor::check(facts)) {
    if (finding.check == check && (!worst || finding.level > worst->level)) worst = finding;
  }
  EXPECT_TRUE(worst) << check;
  return worst.value_or(Finding{});
}

void expect(const Facts& facts, const std::string& check, Level level, const std::string& remedy) {
  const Finding finding = found(facts, check);
  EXPECT_EQ(level_name(finding.level), level_name(level)) << check << ": " << finding.text;
  EXPECT_NE(finding.remedy.find(remedy), std::string::npos) << check << ": " << finding.remedy;
}

TEST(Doctor, HasNothingToSayOfANodeThatIsWell) {
  for (const Facts& facts : {well(), on_sockets()}) {
    for (const Finding& finding : check(facts)) {
      EXPECT_EQ(finding.level, Level::kPass) << finding.check << ": " << finding.text;
      EXPECT_TRUE(finding.remedy.empty()) << finding.check;
      EXPECT_FALSE(finding.text.empty()) << finding.check;
    }
    EXPECT_EQ(worst(check(facts)), Level::kPass);
  }
}

TEST(Doctor, WithoutAConfigurationLooksAtTheHostAlone) {
  Facts facts = well();
  facts.node.reset();
  facts.configuration_error = "node.toml:3: unknown key";
  facts.kernel.io_uring_problem = "Operation not permitted";
  facts.kernel.io_uring_remedy = "sysctl -w kernel.io_uring_disabled=0";
  EXPECT_EQ(found(facts, "configuration").text, "node.toml:3: unknown key");
  expect(facts, "configuration", Level::kFail, "correct");
  expect(facts, "io_uring", Level::kFail, "kernel.io_uring_disabled");
  EXPECT_EQ(worst(check(facts)), Level::kFail);
}

TEST(Doctor, FindsAFileAmongTheTrustedThatIsNone) {
  Facts facts = well();
  facts.trust_problems = {"trusted/x.pem: no certificate"};
  expect(facts, "peer", Level::kFail, "remove the file");
}

TEST(Doctor, FindsAnAuditLogThatCannotBeWritten) {
  Facts facts = well();
  facts.audit_problem = "Is a directory";
  expect(facts, "audit_log", Level::kWarn, "move away");
  facts.audit_problem = "Permission denied";
  facts.looker = {.user = "u", .owner = "v", .stranger = true};
  expect(facts, "audit_log", Level::kWarn, "run it as v");
}

TEST(Doctor, FindsAMissingIdentity) {
  Facts facts = well();
  facts.identity_error = "no key";
  expect(facts, "identity", Level::kFail, "backup");
}

TEST(Doctor, FindsTooFewHugepages) {
  Facts facts = well();
  facts.daemon = {.problem = "not running"};
  facts.hugepages[0].free_mib = 100;
  expect(facts, "hugepages", Level::kFail, "echo 128 > /sys/kernel/mm/hugepages");
  facts.device.kind = DeviceFacts::Kind::kOther;
  expect(facts, "hugepages", Level::kWarn, "echo 128 >");
  facts.node->memory = "hugepages";
  expect(facts, "hugepages", Level::kFail, "echo 128 >");
  facts.node->memory = "no-huge";
  expect(facts, "hugepages", Level::kWarn, "memory = \"auto\"");
}

TEST(Doctor, FindsAnotherNodeWithTheSamePorts) {
  Facts facts = on_sockets();
  config::Node other;
  other.name = "u2";
  other.device = "udp";
  facts.other_nodes = {{.directory = "/home/u2/sluice", .user = "u2", .node = other}};
  expect(facts, "udp_ports", Level::kWarn, "udp_port_base = 47256");
  EXPECT_NE(found(facts, "udp_ports").text.find("node u2 in /home/u2/sluice"), std::string::npos);
  facts.other_nodes[0].node->udp_port_base = 47255;
  expect(facts, "udp_ports", Level::kWarn, "udp_port_base");
  facts.other_nodes[0].node->udp_port_base = 47256;
  expect(facts, "udp_ports", Level::kPass, "");
  facts.other_nodes[0].node->udp_port_base = 47000;
  facts.other_nodes[0].node->address4 = "10.0.0.2/24";
  expect(facts, "udp_ports", Level::kWarn, "udp_port_base");
  facts.node->address4 = "10.0.0.1/24";
  expect(facts, "udp_ports", Level::kPass, "");
  facts.node->address4 = "10.0.0.2/16";
  expect(facts, "udp_ports", Level::kWarn, "udp_port_base");
  facts.other_nodes[0].node->device = "0000:01:00.0";
  expect(facts, "udp_ports", Level::kPass, "");
  facts.other_nodes[0].node.reset();
  expect(facts, "udp_ports", Level::kWarn, "udp_port_base");
  EXPECT_NE(found(facts, "udp_ports").text.find("of user u2"), std::string::npos);
  facts.node->udp_port_base = 40000;
  expect(facts, "udp_ports", Level::kPass, "");
}

TEST(Doctor, DoesNotAskForHugepagesThatTheDataplaneHasTaken) {
  Facts facts = well();
  facts.hugepages[0].free_mib = 0;
  facts.daemon.hugepages = true;
  EXPECT_EQ(found(facts, "hugepages").level, Level::kPass);
}

TEST(Doctor, JudgesTheDiskBeneathAnExport) {
  Facts facts = well();
  facts.device.speed_mbps = 100'000;
  facts.exports[0].disk = {.device = "nvme0n1",
                           .numa_node = 1,
                           .block_bytes = 512,
                           .write_bytes_per_s = 20e9,
                           .read_bytes_per_s = 20e9};
  facts.numa_distances = {{10, 21}, {21, 10}};
  EXPECT_EQ(found(facts, "alignment").level, Level::kPass);
  EXPECT_EQ(found(facts, "disk_speed").level, Level::kPass);
  expect(facts, "numa", Level::kWarn, "sluice node topology");
  EXPECT_NE(found(facts, "numa").text.find("(distance 21)"), std::string::npos);
  facts.exports[0].disk.write_bytes_per_s = 1e9;
  expect(facts, "disk_speed", Level::kWarn, "sluice bench");
  facts.device.speed_mbps = -1;
  EXPECT_EQ(found(facts, "disk_speed").level, Level::kPass) << "nothing to hold it against";
  facts.exports[0].disk.block_bytes = 16384;
  expect(facts, "alignment", Level::kFail, "4096");
}

TEST(Doctor, FindsMoreMemoryAskedForThanThereIs) {
  Facts facts = on_sockets();
  facts.kernel.memory_available_mib = 100;
  EXPECT_EQ(found(facts, "memory").level, Level::kPass) << "the dataplane runs and has it";
  facts.daemon = {.problem = "not running"};
  expect(facts, "memory", Level::kFail, "memory_mib");
}

TEST(Doctor, FindsACardThatIsNotBound) {
  Facts facts = well();
  facts.device.driver = "ixgbe";
  expect(facts, "device", Level::kFail, "dpdk-devbind.py --bind=vfio-pci 0000:01:00.0");
  facts.device.driver = "mlx5_core";
  facts.device.iommu_group = false;
  EXPECT_EQ(found(facts, "device").level, Level::kPass) << "its driver stays with the kernel";
  facts.device.driver = "vfio-pci";
  expect(facts, "iommu", Level::kWarn, "iommu=pt");
  facts.device.found = false;
  expect(facts, "device", Level::kFail, "lspci");
}

TEST(Doctor, FindsALinkThatIsDownOrTooNarrow) {
  Facts facts = on_sockets();
  facts.device.mtu = 1500;
  expect(facts, "mtu", Level::kWarn, "ip link set eth0 mtu 9000");
  facts.device.kind = DeviceFacts::Kind::kInterface;
  expect(facts, "mtu", Level::kFail, "[port] mtu = 1500");
  facts.device.up = false;
  expect(facts, "link", Level::kFail, "ip link set eth0 up");
  facts.device.found = false;
  expect(facts, "link", Level::kFail, "ip link");
}

TEST(Doctor, FindsAnAddressThatTheHostLacks) {
  Facts facts = on_sockets();
  facts.device.address = "10.0.0.9/24";
  expect(facts, "address", Level::kFail, "address4");
  EXPECT_NE(found(facts, "address").text.find("10.0.0.9/24"), std::string::npos);
}

TEST(Doctor, FindsSmallBuffersOfSockets) {
  Facts facts = on_sockets();
  facts.kernel.wmem_max = 212992;
  expect(facts, "socket_buffers", Level::kWarn, "net.core.wmem_max=4194304");
}

TEST(Doctor, FindsCoresThatAreFarMissingOrShared) {
  Facts facts = well();
  facts.cpus[1].numa_node = 1;
  expect(facts, "numa", Level::kWarn, "[dataplane] cores");
  facts.node->poll = "busy";
  facts.cpus[1].isolated = false;
  expect(facts, "isolation", Level::kWarn, "isolcpus=2");
  facts.cpus[1].governor = "powersave";
  expect(facts, "governor", Level::kWarn, "cpupower");
  facts.node->cores = {7};
  expect(facts, "cores", Level::kFail, "lscpu");
  facts.node->workers = 2;
  facts.node->cores = {};
  expect(facts, "cores", Level::kWarn, "workers");
}

TEST(Doctor, FindsLimitsAndAClockThatIsNotSet) {
  Facts facts = well();
  facts.kernel.memlock_bytes = 8 << 20;
  facts.kernel.nofile = 1024;
  facts.kernel.clock_synchronized = false;
  expect(facts, "locked_memory", Level::kWarn, "LimitMEMLOCK=infinity");
  expect(facts, "open_files", Level::kWarn, "LimitNOFILE");
  expect(facts, "clock", Level::kWarn, "timedatectl");
  facts.kernel.clock_synchronized.reset();
  EXPECT_EQ(found(facts, "clock").level, Level::kPass);
}

TEST(Doctor, LimitsAreThoseOfTheDaemonsThatRun) {
  Facts facts = well();
  facts.kernel.nofile = 1 << 20;
  facts.control_process = {.program = "sluice-control", .pid = 17, .nofile = 1024};
  const Finding few = found(facts, "open_files");
  EXPECT_EQ(few.level, Level::kWarn);
  for (const char* const word : {"sluice-control", "17", "1024"})
    EXPECT_NE(few.text.find(word), std::string::npos) << few.text;
  facts.control_process->nofile = 1 << 16;
  EXPECT_EQ(found(facts, "open_files").level, Level::kPass);
  facts.dataplane_process = {.program = "sluice-dataplane", .pid = 18, .nofile = 1024, .memlock_bytes = 4096};
  expect(facts, "open_files", Level::kWarn, "LimitNOFILE");
  EXPECT_NE(found(facts, "open_files").text.find("sluice-dataplane"), std::string::npos);
  expect(facts, "locked_memory", Level::kWarn, "LimitMEMLOCK=infinity");
  facts.kernel.nofile = 1024;
  facts.kernel.memlock_bytes = 4096;
  facts.dataplane_process = {.program = "sluice-dataplane", .pid = 18};
  EXPECT_EQ(found(facts, "open_files").level, Level::kPass) << "this command's own limits hold nobody up";
  EXPECT_EQ(found(facts, "locked_memory").level, Level::kPass);
}

TEST(Doctor, WhatAnotherUserMayNotSeeIsNotBroken) {
  Facts facts = well();
  facts.identity_error = "/n/identity/key.pem: Permission denied; check that it exists and can be read";
  facts.daemon = {.problem =
                      "no permission for /n/run/control.sock; run as the user that runs sluice-control"};
  facts.trust_problems = {"/n/trusted: Permission denied; check its permissions"};
  facts.exports[0].writable = false;
  facts.kernel.io_uring_problem = "Operation not permitted";
  expect(facts, "identity", Level::kFail, "backup");
  facts.looker = {.user = "alice", .owner = "sluice", .stranger = true};
  for (const char* const each : {"user", "identity", "control", "peer", "export", "io_uring"}) {
    expect(facts, each, Level::kWarn, "run it as sluice: sudo -u sluice sluice --node /n doctor");
    EXPECT_NE(found(facts, each).text.find("alice"), std::string::npos) << found(facts, each).text;
  }
  EXPECT_EQ(worst(check(facts)), Level::kWarn);
  facts.identity_error = "/n/identity/key.pem: is no key";
  expect(facts, "identity", Level::kFail, "backup");
}

TEST(Doctor, FindsExportsThatCannotBeUsed) {
  Facts facts = well();
  facts.exports[0].free_bytes = 4;
  expect(facts, "space", Level::kWarn, "room");
  facts.exports[0].direct_io = false;
  expect(facts, "direct_io", Level::kWarn, "xfs");
  facts.exports[0].root.direct = false;
  EXPECT_EQ(found(facts, "direct_io").level, Level::kPass);
  facts.exports[0].root.direct = true;
  facts.exports[0].in_memory = true;
  expect(facts, "durability", Level::kWarn, "disk");
  facts.exports[0].writable = false;
  expect(facts, "export", Level::kFail, "mode = \"r\"");
  facts.exports[0].root.write = false;
  facts.exports[0].root.manage = true;
  expect(facts, "export", Level::kFail, "mode = \"r\"");
  facts.exports[0].root.manage = false;
  EXPECT_EQ(found(facts, "export").level, Level::kPass);
  EXPECT_EQ(found(facts, "space").level, Level::kPass) << "nothing is written there";
  facts.exports[0].readable = false;
  expect(facts, "export", Level::kFail, "chmod");
  facts.exports[0].readable = true;
  facts.exports[0].root.peers = std::vector<config::ExportPeer>{{"beta", "r"}};
  EXPECT_EQ(found(facts, "export").level, Level::kPass);
  facts.exports[0].root.peers->push_back({"gamma", ""});
  expect(facts, "export", Level::kWarn, "[[export]] peers");
  facts.exports[0].problem = "No such file or directory";
  expect(facts, "export", Level::kFail, "mkdir -p /srv");
  facts.exports.clear();
  expect(facts, "export", Level::kWarn, "[[export]]");
}

TEST(Doctor, JudgesHowAnExportOnNfsIsMounted) {
  Facts facts = well();
  facts.exports[0].file_system = "nfs";
  facts.exports[0].mounted_with = "rw,vers=4.2,hard,local_lock=none";
  EXPECT_EQ(found(facts, "nfs").level, Level::kPass);
  facts.exports[0].mounted_with = "rw,vers=3,hard,nolock,local_lock=all,addr=192.0.2.1";
  expect(facts, "nfs", Level::kWarn, "vers=4.2");
  facts.exports[0].mounted_with = "rw,vers=3,soft";
  expect(facts, "nfs", Level::kWarn, "hard");
}

TEST(Doctor, FindsDaemonsThatDoNotRunOrAreOfAnotherVersion) {
  Facts facts = well();
  facts.daemon.attached = false;
  expect(facts, "dataplane", Level::kFail, "sluice-dataplane --node /n");
  facts.daemon.attached = true;
  facts.daemon.fallback_for = "0000:01:00.0";
  facts.daemon.fallback_reason = "card 0000:01:00.0 was removed";
  expect(facts, "fallback", Level::kWarn, "The card died");
  facts.daemon.fallback_for.clear();
  facts.node->fallback = "udp";
  EXPECT_EQ(found(facts, "fallback").level, Level::kPass);
  EXPECT_EQ(found(facts, "journal").level, Level::kPass);
  facts.daemon.journal_lost = true;
  expect(facts, "journal", Level::kFail, "put it back");
  facts.daemon.version = "0";
  expect(facts, "version", Level::kWarn, "restart");
  facts.daemon.problem = "sluice-control does not run";
  expect(facts, "control", Level::kWarn, "sluice-control --node /n");
  facts.listen_problem = "Address already in use";
  expect(facts, "control", Level::kFail, "[control] listen");
}

TEST(Doctor, FindsPeersThatDoNotAnswer) {
  Facts facts = well();
  facts.peers.push_back({.name = "gamma"});
  EXPECT_EQ(found(facts, "peer").level, Level::kPass) << "who only calls cannot be called";
  facts.peers[0].problem = "Connection refused";
  expect(facts, "peer", Level::kFail, "start sluice-control there");
  facts.peers.clear();
  expect(facts, "peer", Level::kWarn, "sluice node trust");
  facts.node->ca_file = "/n/authority/ca.pem";
  expect(facts, "peer", Level::kPass, "");
}

TEST(Doctor, FindsCertificatesThatEnd) {
  Facts facts = well();
  const auto ends = [&facts](const std::string& kind, Level level, const std::string& remedy) {
    facts.expiries[0].kind = kind;
    expect(facts, "certificates", level, remedy);
  };
  facts.expiries = {{.kind = "own", .name = "beta", .what = "it", .when = "2030", .left_s = 40 * 86'400}};
  expect(facts, "certificates", Level::kPass, "");
  facts.expiries[0].left_s = 86'400;
  ends("own", Level::kWarn, "sluice node rotate");
  facts.expiries[0].left_s = -1;
  ends("own", Level::kFail, "or set the clock");
  ends("peer", Level::kFail, "sluice node trust beta");
  ends("ca", Level::kFail, "[control] ca_file");
  ends("crl", Level::kFail, "[control] crl_file");
  facts.node->ca_file = "/n/authority/ca.pem";
  ends("own", Level::kFail, "sluice node enrol");
}

}  // namespace
}  // namespace sluice::doctor
