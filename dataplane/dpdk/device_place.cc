// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dpdk/device_place.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <system_error>

namespace sluice::dpdk {
namespace {

// Drivers of the kernel under which DPDK drives a card: it is handed over to it, or shared with it.
constexpr std::string_view kDrivers[] = {
    "vfio-pci", "uio_pci_generic", "igb_uio", "mlx4_core", "mlx5_core", "mana", "gve", "nfp"};

ifreq request_for(const std::string& interface) {
  ifreq request{};
  interface.copy(request.ifr_name, IFNAMSIZ - 1);
  return request;
}

}  // namespace

DevicePlace::DevicePlace(const Device& device, const std::filesystem::path& root)
    : name_(device.name), interface_(device.interface_name) {
  if (is_interface()) asking_.reset(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (device.kind != DeviceKind::kPci) return;
  const bool has_domain = std::ranges::count(name_, ':') == 2;
  card_ = root / "sys/bus/pci/devices" / (has_domain ? name_ : "0000:" + name_);
}

std::optional<uint64_t> DevicePlace::index(int* error) const {
  ifreq request = request_for(interface_);
  if (::ioctl(asking_.get(), SIOCGIFINDEX, &request) == 0) return static_cast<uint64_t>(request.ifr_ifindex);
  *error = errno;
  return std::nullopt;
}

std::optional<uint64_t> DevicePlace::binding(int* error) const {
  const std::filesystem::path path = card_ / "driver";
  struct stat link {};
  if (::fstatat(AT_FDCWD, path.c_str(), &link, AT_SYMLINK_NOFOLLOW) == 0) return link.st_ino;
  *error = errno;
  return std::nullopt;
}

std::string DevicePlace::driver() const {
  std::error_code none;
  return std::filesystem::read_symlink(card_ / "driver", none).filename();
}

std::string DevicePlace::missing() const {
  int error = 0;
  if (is_interface()) {
    if (!index(&error)) return fmt::format("interface {} is not there", interface_);
    ifreq request = request_for(interface_);
    const bool up = ::ioctl(asking_.get(), SIOCGIFFLAGS, &request) == 0 && (request.ifr_flags & IFF_UP) != 0;
    return up ? "" : fmt::format("interface {} is down", interface_);
  }
  if (card_.empty()) return "";
  const std::string its = driver();
  if (its.empty()) return fmt::format("card {} is not there, or has no driver", name_);
  if (its != opened_driver_ && std::ranges::find(kDrivers, its) == std::end(kDrivers))
    return fmt::format("card {} is bound to {}, not to a driver of DPDK's", name_, its);
  return "";
}

void DevicePlace::opened() {
  int error = 0;
  if (is_interface()) opened_index_ = index(&error).value_or(0);
  if (card_.empty()) return;
  opened_binding_ = binding(&error).value_or(0);
  opened_driver_ = driver();
}

std::string DevicePlace::gone() const {
  int error = 0;
  if (opened_index_ != 0) {
    const auto now = index(&error);
    if (!now && error == ENODEV)
      return fmt::format("interface {} was deleted, renamed or moved away", interface_);
    if (now && *now != opened_index_)
      return fmt::format("interface {} was deleted and made anew", interface_);
  }
  if (opened_binding_ != 0) {
    const auto now = binding(&error);
    if (!now && error == ENOENT)
      return fmt::format("card {} was removed, or unbound from {}", name_, opened_driver_);
    if (now && *now != opened_binding_) return fmt::format("card {} was bound to a driver anew", name_);
  }
  return "";
}

}  // namespace sluice::dpdk
