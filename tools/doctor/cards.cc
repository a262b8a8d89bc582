// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/cards.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <fstream>
#include <memory>
#include <set>
#include <sstream>
#include <system_error>

#include "tools/doctor/gather.h"

namespace sluice::doctor {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> sorted_entries(const fs::path& directory) {
  std::error_code error;
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(directory, error)) found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  return found;
}

int64_t number_or(const fs::path& file, int64_t otherwise) {
  const std::string word = first_word(file);
  int64_t value = 0;
  const auto [end, failure] = std::from_chars(word.data(), word.data() + word.size(), value);
  return failure == std::errc() && end == word.data() + word.size() && !word.empty() ? value : otherwise;
}

// A virtio card has its interface one folder further down.
std::string interface_below(const fs::path& device) {
  for (const fs::path& entry : sorted_entries(device / "net")) return entry.filename();
  for (const fs::path& entry : sorted_entries(device)) {
    if (!entry.filename().string().starts_with("virtio")) continue;
    for (const fs::path& below : sorted_entries(entry / "net")) return below.filename();
  }
  return "";
}

// Interfaces with a route to everywhere.
std::set<std::string> default_interfaces(const fs::path& root) {
  std::set<std::string> found;
  std::ifstream routes(root / "proc/net/route");
  for (std::string line; std::getline(routes, line);) {
    std::istringstream words(line);
    std::string interface, destination, gateway, flags, references, use, metric, mask;
    words >> interface >> destination >> gateway >> flags >> references >> use >> metric >> mask;
    if (destination == "00000000" && mask == "00000000") found.insert(interface);
  }
  std::ifstream routes6(root / "proc/net/ipv6_route");
  for (std::string line; std::getline(routes6, line);) {
    std::istringstream words(line);
    std::vector<std::string> columns;
    for (std::string word; words >> word;) columns.push_back(word);
    const bool everywhere = columns.size() == 10 && columns[1] == "00" && columns[9] != "lo" &&
                            columns[0].find_first_not_of('0') == std::string::npos;
    if (everywhere) found.insert(columns[9]);
  }
  return found;
}

std::string with_length(const ifaddrs& entry) {
  char shown[INET6_ADDRSTRLEN] = {};
  int bits = 0;
  if (entry.ifa_addr->sa_family == AF_INET) {
    ::inet_ntop(AF_INET, &reinterpret_cast<sockaddr_in*>(entry.ifa_addr)->sin_addr, shown, sizeof shown);
    bits = std::popcount(reinterpret_cast<sockaddr_in*>(entry.ifa_netmask)->sin_addr.s_addr);
  } else {
    const in6_addr& address = reinterpret_cast<sockaddr_in6*>(entry.ifa_addr)->sin6_addr;
    if (IN6_IS_ADDR_LINKLOCAL(&address)) return "";
    ::inet_ntop(AF_INET6, &address, shown, sizeof shown);
    for (const uint8_t byte : reinterpret_cast<sockaddr_in6*>(entry.ifa_netmask)->sin6_addr.s6_addr)
      bits += std::popcount(byte);
  }
  return std::string(shown) + "/" + std::to_string(bits);
}

}  // namespace

std::vector<Card> gather_cards(const fs::path& root, const Addresses& addresses) {
  const std::set<std::string> defaults = default_interfaces(root);
  std::vector<Card> cards;
  for (const fs::path& device : sorted_entries(root / "sys/bus/pci/devices")) {
    if (!first_word(device / "class").starts_with("0x02")) continue;
    std::error_code error;
    Card card{.pci = device.filename(), .interface = interface_below(device)};
    card.driver = fs::read_symlink(device / "driver", error).filename();
    card.numa_node = static_cast<int>(number_or(device / "numa_node", -1));
    card.iommu_group = fs::exists(device / "iommu_group", error);
    if (!card.interface.empty()) {
      const fs::path folder = root / "sys/class/net" / card.interface;
      card.speed_mbps = number_or(folder / "speed", -1);
      card.up = first_word(folder / "operstate") == "up";
      card.default_route = defaults.contains(card.interface);
      if (const auto it = addresses.find(card.interface); it != addresses.end()) card.addresses = it->second;
    }
    cards.push_back(std::move(card));
  }
  return cards;
}

Addresses gather_addresses() {
  Addresses found;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return found;
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, &::freeifaddrs);
  for (const ifaddrs* each = list; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr || each->ifa_netmask == nullptr) continue;
    if (each->ifa_addr->sa_family != AF_INET && each->ifa_addr->sa_family != AF_INET6) continue;
    if (const std::string text = with_length(*each); !text.empty()) found[each->ifa_name].push_back(text);
  }
  return found;
}

}  // namespace sluice::doctor
