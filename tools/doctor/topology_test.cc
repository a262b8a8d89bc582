// The plan of a machine that is made of files, and how it is drawn.
// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/topology.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

namespace sluice::doctor {
namespace {

namespace fs = std::filesystem;

class TopologyTest : public testing::Test {
 protected:
  TopologyTest() {
    std::string pattern = "/tmp/sluice-topology-XXXXXX";
    root_ = ::mkdtemp(pattern.data());
  }
  ~TopologyTest() override { fs::remove_all(root_); }

  void put(const std::string& file, const std::string& text) const {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text << "\n";
  }
  // Two packages of two cores with two threads each, a NUMA node each; a card and a disk on the second.
  void make_machine() const {
    for (int node = 0; node < 2; ++node) {
      const std::string folder = "sys/devices/system/node/node" + std::to_string(node);
      put(folder + "/meminfo", "Node 0 MemTotal:  2097152 kB");
      put(folder + "/distance", node == 0 ? "10 21" : "21 10");
    }
    put("sys/devices/system/cpu/online", "0-7");
    put("sys/devices/system/cpu/isolated", "3");
    for (int cpu = 0; cpu < 8; ++cpu) {
      const std::string folder = "sys/devices/system/cpu/cpu" + std::to_string(cpu);
      put(folder + "/topology/physical_package_id", std::to_string(cpu % 4 / 2));
      put(folder + "/topology/core_id", std::to_string(cpu % 2));
      put(folder + "/node" + std::to_string(cpu % 4 / 2) + "/x", "");
    }
    put("sys/devices/pci0/0000:81:00.0/vendor", "0x15b3");
    put("sys/devices/pci0/0000:81:00.0/numa_node", "1");
    fs::create_directories(root_ / "sys/bus/pci/drivers/mlx5_core");
    fs::create_symlink(root_ / "sys/bus/pci/drivers/mlx5_core",
                       root_ / "sys/devices/pci0/0000:81:00.0/driver");
    put("sys/class/net/ens1/speed", "100000");
    fs::create_symlink(root_ / "sys/devices/pci0/0000:81:00.0", root_ / "sys/class/net/ens1/device");
    put("sys/class/net/lo/speed", "");
    put("sys/devices/pci0/0000:82:00.0/numa_node", "1");
    put("sys/devices/pci0/0000:82:00.0/nvme/nvme0n1/size", "2000000000");
    put("sys/devices/pci0/0000:82:00.0/nvme/nvme0n1/device/x", "");
    fs::create_directories(root_ / "sys/block");
    fs::create_symlink(root_ / "sys/devices/pci0/0000:82:00.0/nvme/nvme0n1", root_ / "sys/block/nvme0n1");
    put("sys/block/loop0/size", "8");
  }
  static config::Node node() {
    config::Node node;
    node.device = "0000:81:00.0";
    node.workers = 2;
    node.cores = {2, 3};
    return node;
  }

  fs::path root_;
};

TEST_F(TopologyTest, EverythingIsDrawnWhereItLies) {
  make_machine();
  EXPECT_EQ(draw(gather_plan(node(), root_), 80),
            (std::vector<std::string>{
                "NUMA node 0: 2048 MiB, distances 10 21",
                "  socket 0 0+4 1+5",
                "NUMA node 1: 2048 MiB, distances 21 10",
                "  socket 1 [2+6=w0] [3+7*=w1]",
                "  port     ens1 0000:81:00.0 mlx5_core 100000 Mbit/s  <- the data port",
                "  disk     nvme0n1 1024 GB",
                "4 cores, 8 CPUs; [CPU=wN]: worker N of 2",
                "*: the kernel runs nothing else there (isolcpus)",
            }));
}

TEST_F(TopologyTest, AMachineOfWhichTheKernelSaysLittle) {
  put("sys/devices/system/cpu/online", "0");
  config::Node little;
  little.device = "net_memif0,role=server,socket=/run/a/very/long/path/that/nobody/wants/to/read";
  const std::vector<std::string> lines = draw(gather_plan(little, root_), 80);
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_EQ(lines[0], "NUMA node 0: 0 MiB");
  EXPECT_EQ(lines[2], "  port     net_memif0  <- the data port");
  EXPECT_EQ(lines[3], "1 core, 1 CPU; 1 worker, on cores that sluice-dataplane chooses near the port");
}

TEST(TopologyDrawing, NoLineIsLongerThanTheTerminal) {
  Plan plan;
  PlanNode& one = plan.nodes.emplace_back(PlanNode{.number = 0});
  for (int cpu = 0; cpu < 128; ++cpu) one.cores.push_back({.cpus = {cpu, cpu + 128}, .workers = {cpu}});
  one.disks.push_back({.name = "sda", .exports = {std::string(100, 'x')}});
  for (const size_t columns : {40U, 80U}) {
    for (const std::string& line : draw(plan, columns)) EXPECT_LE(line.size(), columns) << line;
  }
}

}  // namespace
}  // namespace sluice::doctor
