// What is read from the files of a kernel, made up in a folder; and what this very host says.
// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/gather.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>

#include "dataplane/base/unique_fd.h"

namespace sluice::doctor {
namespace {

namespace fs = std::filesystem;

class Gather : public ::testing::Test {
 protected:
  void SetUp() override { fs::create_directories(root_); }
  void TearDown() override { fs::remove_all(root_); }
  void put(const std::string& file, const std::string& text) {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text << "\n";
  }
  config::Node node(const std::string& device) {
    config::Node node;
    node.device = device;
    return node;
  }

  const fs::path root_ = fs::temp_directory_path() / ("doctor-test-" + std::to_string(::getpid()));
};

TEST_F(Gather, CountsHugepagesOfEachNumaNode) {
  for (const std::string node : {"node0", "node1"}) {
    put("sys/devices/system/node/" + node + "/hugepages/hugepages-2048kB/nr_hugepages", "8");
    put("sys/devices/system/node/" + node + "/hugepages/hugepages-2048kB/free_hugepages",
        node == "node0" ? "8" : "3");
  }
  put("sys/devices/system/node/online", "0-1");
  const auto pools = gather_hugepages(root_);
  ASSERT_EQ(pools.size(), 2U);
  EXPECT_EQ(pools[0].free_mib, 16U);
  EXPECT_EQ(pools[1].numa_node, 1);
  EXPECT_EQ(pools[1].all_mib, 16U);
  EXPECT_EQ(pools[1].free_mib, 6U);
}

TEST_F(Gather, CountsHugepagesOfAKernelWithoutNuma) {
  put("sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages", "2");
  put("sys/kernel/mm/hugepages/hugepages-1048576kB/free_hugepages", "1");
  const auto pools = gather_hugepages(root_);
  ASSERT_EQ(pools.size(), 1U);
  EXPECT_EQ(pools[0].free_mib, 1024U);
  EXPECT_TRUE(gather_hugepages(root_ / "nothing").empty());
}

TEST_F(Gather, FindsHowTheFileSystemOfADirectoryIsMounted) {
  struct stat info {};
  ASSERT_EQ(::stat(root_.c_str(), &info), 0);
  put("proc/self/mountinfo",
      "22 1 0:0 / / rw - ext4 /dev/vda rw,errors=continue\n" +
          fmt::format("31 22 {}:{} / /srv rw,noatime shared:1 master:2 - nfs4 server:/srv rw,vers=4.2,soft\n",
                      major(info.st_dev), minor(info.st_dev)));
  EXPECT_EQ(gather_mount_options(root_, root_), "rw,vers=4.2,soft");
  put("proc/self/mountinfo", "22 1 0:0 / / rw - ext4 /dev/vda rw\n");
  EXPECT_EQ(gather_mount_options(root_, root_), "");
}

TEST_F(Gather, FindsTheDiskBeneathADirectoryAndItsNumaNode) {
  struct stat info {};
  ASSERT_EQ(::stat(root_.c_str(), &info), 0);
  const std::string number = std::to_string(major(info.st_dev)) + ":" + std::to_string(minor(info.st_dev));
  put("sys/devices/pci0/0000:01:00.0/numa_node", "1");
  put("sys/devices/pci0/0000:01:00.0/nvme/nvme0n1/queue/logical_block_size", "4096");
  put("sys/devices/pci0/0000:01:00.0/nvme/nvme0n1/nvme0n1p2/partition", "2");
  fs::create_directories(root_ / "sys/dev/block");
  EXPECT_TRUE(gather_disk(root_, root_).device.empty()) << "none that the kernel names";
  fs::create_symlink(root_ / "sys/devices/pci0/0000:01:00.0/nvme/nvme0n1/nvme0n1p2",
                     root_ / "sys/dev/block" / number);
  const DiskFacts disk = gather_disk(root_, root_);
  EXPECT_EQ(disk.device, "nvme0n1");
  EXPECT_EQ(disk.numa_node, 1);
  EXPECT_EQ(disk.block_bytes, 4096U);
  put("sys/devices/system/node/node0/distance", "10 21");
  put("sys/devices/system/node/node1/distance", "21 10");
  EXPECT_EQ(gather_numa_distances(root_), (std::vector<std::vector<int>>{{10, 21}, {21, 10}}));
}

TEST_F(Gather, ATryOfTheDiskLeavesNothingBehind) {
  DiskFacts disk;
  try_speed(root_, &disk);
  EXPECT_EQ(disk.write_bytes_per_s.has_value(), disk.read_bytes_per_s.has_value());
  EXPECT_GT(disk.write_bytes_per_s.value_or(1), 0);
  EXPECT_TRUE(fs::is_empty(root_));
  try_speed("/proc/self", &disk);  // where no file can be made
}

TEST_F(Gather, KnowsWhereCpusAreAndWhatGovernsThem) {
  put("sys/devices/system/cpu/isolated", "2-3,7");
  put("sys/devices/system/cpu/cpu2/cpufreq/scaling_governor", "powersave");
  put("sys/devices/system/cpu/cpu2/node1/x", "");
  const auto cpus = gather_cpus(root_, {0, 2});
  ASSERT_EQ(cpus.size(), 2U);
  EXPECT_FALSE(cpus[0].isolated);
  EXPECT_EQ(cpus[0].numa_node, -1);
  EXPECT_TRUE(cpus[1].isolated);
  EXPECT_EQ(cpus[1].numa_node, 1);
  EXPECT_EQ(cpus[1].governor, "powersave");
}

TEST_F(Gather, ReadsListsOfCpus) {
  EXPECT_EQ(parse_cpu_list("0,2-4"), (std::vector<int>{0, 2, 3, 4}));
  EXPECT_TRUE(parse_cpu_list("").empty());
  for (const char* wrong : {"x", "1,,2", "3-1", "1-", "-2", "0-99999999", "1;2", "2-3x"})
    EXPECT_TRUE(parse_cpu_list(wrong).empty()) << wrong;
}

TEST_F(Gather, LooksAtAPciDevice) {
  const std::string folder = "sys/bus/pci/devices/0000:01:00.0/";
  put(folder + "numa_node", "1");
  put("sys/bus/pci/drivers/vfio-pci/bind", "");
  fs::create_directory_symlink(root_ / "sys/bus/pci/drivers/vfio-pci", root_ / folder / "driver");
  put(folder + "iommu_group/type", "DMA");
  const DeviceFacts device = gather_device(node("0000:01:00.0,rx_vec_en=1"), root_);
  EXPECT_EQ(device.kind, DeviceFacts::Kind::kPci);
  EXPECT_TRUE(device.found);
  EXPECT_EQ(device.driver, "vfio-pci");
  EXPECT_TRUE(device.iommu_group);
  EXPECT_EQ(device.numa_node, 1);
  const DeviceFacts missing = gather_device(node("0000:02:00.0"), root_);
  EXPECT_FALSE(missing.found);
  EXPECT_TRUE(missing.driver.empty());
}

TEST_F(Gather, LooksAtAnInterface) {
  put("sys/class/net/eth7/operstate", "down");
  put("sys/class/net/eth7/mtu", "1500");
  put("sys/class/net/eth7/speed", "25000");
  const DeviceFacts device = gather_device(node("net_af_packet0,iface=eth7,qpairs=1"), root_);
  EXPECT_EQ(device.kind, DeviceFacts::Kind::kInterface);
  EXPECT_TRUE(device.found);
  EXPECT_FALSE(device.up);
  EXPECT_EQ(device.mtu, 1500U);
  EXPECT_EQ(device.speed_mbps, 25000);
  EXPECT_FALSE(gather_device(node("net_af_packet0,iface=eth8"), root_).found);
  EXPECT_EQ(gather_device(node("net_memif0,role=server"), root_).kind, DeviceFacts::Kind::kOther);
}

TEST_F(Gather, FindsTheInterfaceOfASocketsAddress) {
  config::Node sockets = node("udp");
  sockets.address4 = "127.0.0.1/8";
  DeviceFacts device = gather_device(sockets, "/");
  EXPECT_EQ(device.name, "lo");
  EXPECT_TRUE(device.found && device.up);
  EXPECT_GT(device.mtu, 1280U);
  EXPECT_TRUE(device.address.empty());
  sockets.address4 = "192.0.2.77/24";
  device = gather_device(sockets, "/");
  EXPECT_EQ(device.address, "192.0.2.77/24");
}

TEST_F(Gather, TriesADirectoryAndLeavesNothingThere) {
  const ExportFacts facts = gather_export({.name = "data", .path = root_});
  EXPECT_TRUE(facts.problem.empty());
  EXPECT_TRUE(facts.readable && facts.writable);
  EXPECT_GT(facts.size_bytes, facts.free_bytes);
  EXPECT_TRUE(fs::is_empty(root_));
  EXPECT_EQ(gather_export({.name = "gone", .path = root_ / "gone"}).problem, "No such file or directory");
  put("file", "");
  EXPECT_EQ(gather_export({.name = "file", .path = root_ / "file"}).problem, "Not a directory");
}

TEST_F(Gather, SeesWhetherAPeerListens) {
  UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{.sin_family = AF_INET};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  const identity::Peer peer{.name = "beta",
                            .address = "127.0.0.1:" + std::to_string(ntohs(address.sin_port))};
  EXPECT_EQ(gather_peer(peer).problem, "Connection refused");
  ASSERT_EQ(::listen(listener.get(), 1), 0);
  EXPECT_EQ(gather_peer(peer).problem, "");
  EXPECT_EQ(gather_peer({.name = "calls"}).problem, "");
  EXPECT_NE(gather_peer({.name = "wrong", .address = "nobody.invalid:1"}).problem, "");
}

TEST_F(Gather, SeesWhetherALineCanBeAddedToTheAuditLog) {
  config::Node node;
  node.directory = root_;
  const fs::path file = node.audit_log();
  EXPECT_EQ(gather_audit_problem(node), "");
  EXPECT_FALSE(fs::exists(file));
  put("audit.ndjson", "a line");
  EXPECT_EQ(gather_audit_problem(node), "");
  fs::remove(file);
  fs::create_directory(file);
  EXPECT_EQ(gather_audit_problem(node), "Is a directory");
  fs::remove(file);
  ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
  EXPECT_NE(gather_audit_problem(node), "");
  const UniqueFd reader(::open(file.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  EXPECT_EQ(gather_audit_problem(node), "it is no file");
}

TEST_F(Gather, SeesWhetherThePortOfControlIsFree) {
  UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{.sin_family = AF_INET};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  ASSERT_EQ(::listen(listener.get(), 1), 0);
  config::Node node;
  node.listen = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  EXPECT_EQ(gather_listen_problem(node), "Address already in use");
  node.listen = "127.0.0.1:0";
  EXPECT_EQ(gather_listen_problem(node), "");
  node.listen = "none";
  EXPECT_EQ(gather_listen_problem(node), "");
}

// Each process by its arguments, its environment, its user and its network.
TEST_F(Gather, FindsOtherNodesOfThisHost) {
  using namespace std::string_literals;
  const auto process = [&](int pid, const std::string& arguments, const std::string& environment,
                           const std::string& net) {
    const std::string folder = "proc/" + std::to_string(pid);
    fs::create_directories(root_ / folder / "ns");
    std::ofstream(root_ / folder / "cmdline") << arguments;
    std::ofstream(root_ / folder / "environ") << environment;
    std::ofstream(root_ / folder / "status") << "Name:\tsluice-dataplan\nUid:\t0\t0\t0\t0\n";
    fs::create_symlink("net:[" + net + "]", root_ / folder / "ns/net");
  };
  fs::create_directories(root_ / "proc/self/ns");
  fs::create_symlink("net:[1]", root_ / "proc/self/ns/net");
  const std::string own = (root_ / "own").string();
  const std::string other = (root_ / "other").string();
  fs::create_directories(own);
  process(1, "init\0"s, "A=b\0"s, "1");
  process(2, "sluice-dataplane\0--node\0"s + own + "\0"s, "A=b\0"s, "1");
  process(3, "/usr/bin/sluice-dataplane\0"s, "A=b\0SLUICE_NODE="s + other + "\0"s, "1");
  process(4, "sluice-dataplane\0--node="s + other + "/in-another-network\0"s, "A=b\0"s, "2");
  process(5, "sluice-control\0--node\0"s + other + "\0"s, "A=b\0"s, "1");
  process(6, "sluice-dataplane\0"s, "A=b\0"s, "1");
  fs::create_directories(root_ /
                         "proc/7/cmdline");  // opens and cannot be read, as one that has ended meanwhile
  const auto found = gather_other_nodes(own, root_);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].user, "root");
  std::vector<std::string> directories = {found[0].directory, found[1].directory};
  std::sort(directories.begin(), directories.end());
  EXPECT_EQ(directories, (std::vector<std::string>{"/etc/sluice", fs::canonical(root_).string() + "/other"}));
}

TEST_F(Gather, TheLimitsOfADaemonAreThoseInForceInItsOwnProcess) {
  fs::create_directories(root_ / "proc/17");
  std::ofstream(root_ / "proc/17/limits")
      << "Limit                     Soft Limit           Hard Limit           Units     \n"
         "Max open files            1024                 524288               files     \n"
         "Max locked memory         unlimited            unlimited            bytes     \n";
  const std::optional<ProcessFacts> found = gather_process("sluice-control", 17, root_);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->nofile, 1024U);
  EXPECT_EQ(found->memlock_bytes, UINT64_MAX);
  EXPECT_FALSE(gather_process("sluice-control", 18, root_));
  EXPECT_FALSE(gather_process("sluice-control", 0, root_));
}

// The listener of its socket is the daemon: here this process, whose limit is another than its hard one.
TEST_F(Gather, ADaemonIsFoundByItsSocket) {
  config::Node node;
  node.directory = root_;
  fs::create_directories(node.control_socket().parent_path());
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  ASSERT_LT(node.control_socket().native().size(), sizeof address.sun_path);
  std::strcpy(address.sun_path, node.control_socket().c_str());
  const UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  Facts facts;
  gather_processes(node, &facts);
  EXPECT_FALSE(facts.control_process) << "nobody listens yet";
  ASSERT_EQ(::listen(listener.get(), 4), 0);
  gather_processes(node, &facts);
  ASSERT_TRUE(facts.control_process);
  EXPECT_EQ(facts.control_process->pid, ::getpid());
  EXPECT_FALSE(facts.dataplane_process) << "without a control it is left alone";
}

TEST_F(Gather, TheOwnerOfANodeIsWhoHasItsKey) {
  fs::create_directories(root_ / "identity");
  const LookerFacts own = gather_looker(root_);
  EXPECT_FALSE(own.stranger);
  EXPECT_EQ(own.user, own.owner);
  if (::geteuid() != 0) return;  // nobody else can be the owner
  ASSERT_EQ(::chown((root_ / "identity").c_str(), 65534, 65534), 0);
  EXPECT_EQ(gather_looker(root_).owner, "nobody");
  EXPECT_FALSE(gather_looker(root_).stranger) << "root may see all";
}

TEST_F(Gather, OfThisHostFindsWhatThereMustBe) {
  const KernelFacts kernel = gather_kernel();
  EXPECT_GT(kernel.memory_available_mib, 0U);
  EXPECT_GT(kernel.rmem_max, 0U);
  EXPECT_GT(kernel.nofile, 0U);
  const Facts facts = gather(root_);  // no node at all
  EXPECT_FALSE(facts.node);
  EXPECT_NE(facts.configuration_error.find("node.toml"), std::string::npos);
}

}  // namespace
}  // namespace sluice::doctor
