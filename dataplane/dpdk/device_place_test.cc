// Cards as folders like those in /sys; interfaces as they are: each host has `lo`.
// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dpdk/device_place.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <string>

namespace sluice::dpdk {
namespace {

namespace fs = std::filesystem;

Device card(const std::string& name) {
  Device device;
  device.kind = DeviceKind::kPci;
  device.name = name;
  return device;
}

Device interface(const std::string& name) {
  Device device;
  device.kind = DeviceKind::kAfPacket;
  device.name = "net_af_packet0";
  device.interface_name = name;
  return device;
}

class Cards : public testing::Test {
 protected:
  Cards() {
    std::string name = fs::temp_directory_path() / "sluice-place-XXXXXX";
    root_ = ::mkdtemp(name.data());
  }
  ~Cards() override { fs::remove_all(root_); }

  void bind(const std::string& driver) {
    unbind();
    fs::create_directories(folder_());
    fs::create_directory_symlink("../../drivers/" + driver, folder_() / "driver");
  }
  void unbind() { fs::remove(folder_() / "driver"); }
  void remove() { fs::remove_all(folder_()); }

  fs::path folder_() const { return root_ / "sys/bus/pci/devices/0000:01:00.0"; }
  fs::path root_;
};

TEST_F(Cards, ACardIsThereWhileADriverOfDpdkHasIt) {
  const DevicePlace place(card("0000:01:00.0"), root_);
  EXPECT_NE(place.missing().find("is not there"), std::string::npos);
  bind("ixgbe");
  EXPECT_NE(place.missing().find("bound to ixgbe"), std::string::npos);
  bind("vfio-pci");
  EXPECT_EQ(place.missing(), "");
  unbind();
  EXPECT_NE(place.missing(), "");
}

TEST_F(Cards, ACardThatServedIsGoneWithItsDriver) {
  bind("vfio-pci");
  DevicePlace place(card("01:00.0"), root_);
  unbind();
  EXPECT_EQ(place.gone(), "") << "it was never opened";
  bind("vfio-pci");
  place.opened();
  EXPECT_EQ(place.gone(), "");
  unbind();
  EXPECT_NE(place.gone().find("unbound from vfio-pci"), std::string::npos);
  remove();
  EXPECT_NE(place.gone().find("removed"), std::string::npos);
}

TEST_F(Cards, ADriverThatServedOnceMayServeAgain) {
  bind("some_new_driver");
  DevicePlace place(card("0000:01:00.0"), root_);
  EXPECT_NE(place.missing(), "");
  place.opened();
  EXPECT_EQ(place.missing(), "");
}

TEST(Interfaces, OneThatIsThereIsNotGone) {
  DevicePlace place(interface("lo"));
  place.opened();
  EXPECT_EQ(place.gone(), "");
}

TEST(Interfaces, OneThatIsNotThereIsMissingAndWasNeverOpened) {
  DevicePlace place(interface("sluice-none"));
  EXPECT_NE(place.missing().find("sluice-none is not there"), std::string::npos);
  place.opened();
  EXPECT_EQ(place.gone(), "");
}

TEST(Devices, OthersAreAlwaysThere) {
  Device memif;
  memif.kind = DeviceKind::kMemif;
  memif.name = "net_memif0";
  DevicePlace place(memif);
  EXPECT_EQ(place.missing(), "");
  place.opened();
  EXPECT_EQ(place.gone(), "");
}

}  // namespace
}  // namespace sluice::dpdk
