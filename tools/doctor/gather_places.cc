// The data port's device, the exports, the peers.
// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <linux/magic.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <future>
#include <memory>
#include <string>
#include <system_error>
#include <thread>

#include "dataplane/base/unique_fd.h"
#include "tools/doctor/gather.h"

namespace sluice::doctor {
namespace {

namespace fs = std::filesystem;

constexpr int kConnectTimeoutMs = 3000;
constexpr size_t kBlockBytes = 4096;
constexpr uint64_t kFreeForTry = 1U << 30;  // where less is free, nothing is tried
constexpr long kXfsMagic = 0x58465342;

int64_t first_number(const fs::path& file, int64_t otherwise) {
  std::ifstream in(file);
  int64_t value = 0;
  return in >> value ? value : otherwise;
}

// ---- the device --------------------------------------------------------------------------------

// Which interface has it; empty: none.
std::string interface_of(const std::string& address) {
  const std::string text = address.substr(0, address.find('/'));
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return "";
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, &::freeifaddrs);
  for (const ifaddrs* each = list; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr) continue;
    char shown[INET6_ADDRSTRLEN] = {};
    const int family = each->ifa_addr->sa_family;
    if (family == AF_INET)
      ::inet_ntop(family, &reinterpret_cast<sockaddr_in*>(each->ifa_addr)->sin_addr, shown, sizeof shown);
    if (family == AF_INET6)
      ::inet_ntop(family, &reinterpret_cast<sockaddr_in6*>(each->ifa_addr)->sin6_addr, shown, sizeof shown);
    if (text == shown) return each->ifa_name;
  }
  return "";
}

std::string option_of(const std::string& device, const std::string& name) {
  const size_t at = device.find("," + name + "=");
  if (at == std::string::npos) return "";
  const size_t begin = at + name.size() + 2;
  return device.substr(begin, device.find(',', begin) - begin);
}

void look_at_interface(DeviceFacts* device, const fs::path& root) {
  const fs::path folder = root / "sys/class/net" / device->name;
  std::error_code error;
  device->found = fs::exists(folder, error);
  if (!device->found) return;
  const std::string state = first_word(folder / "operstate");
  device->up = state != "down" && state != "lowerlayerdown" && state != "notpresent";
  device->mtu = static_cast<uint32_t>(first_number(folder / "mtu", 0));
  device->speed_mbps = first_number(folder / "speed", -1);
  device->numa_node = static_cast<int>(first_number(folder / "device/numa_node", -1));
}

void look_at_pci(DeviceFacts* device, const fs::path& root) {
  const fs::path folder = root / "sys/bus/pci/devices" / device->name;
  std::error_code error;
  device->found = fs::exists(folder, error);
  if (!device->found) return;
  device->driver = fs::read_symlink(folder / "driver", error).filename();
  device->iommu_group = fs::exists(folder / "iommu_group", error);
  device->numa_node = static_cast<int>(first_number(folder / "numa_node", -1));
}

// ---- file systems ------------------------------------------------------------------------------

std::string file_system_name(long type) {
  switch (type) {
    case EXT4_SUPER_MAGIC:
      return "ext4";
    case kXfsMagic:
      return "xfs";
    case BTRFS_SUPER_MAGIC:
      return "btrfs";
    case TMPFS_MAGIC:
      return "tmpfs";
    case NFS_SUPER_MAGIC:
      return "nfs";
    case OVERLAYFS_SUPER_MAGIC:
      return "overlay";
    default:
      return "";
  }
}

// With a file that has no name and is gone when it is closed; nothing where there is none to be had.
std::optional<bool> takes_direct_io(const fs::path& directory) {
  const UniqueFd file(::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!file) return std::nullopt;
  const UniqueFd direct(::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC | O_DIRECT, 0600));
  if (!direct) return false;
  const std::unique_ptr<void, decltype(&std::free)> block(std::aligned_alloc(kBlockBytes, kBlockBytes),
                                                          &std::free);
  if (!block) return std::nullopt;
  std::memset(block.get(), 0, kBlockBytes);
  return ::pwrite(direct.get(), block.get(), kBlockBytes, 0) == static_cast<ssize_t>(kBlockBytes);
}

// ---- peers -------------------------------------------------------------------------------------

// Empty: it listens there.
std::string connect_problem(const addrinfo& to) {
  const UniqueFd socket(::socket(to.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return std::strerror(errno);
  if (::connect(socket.get(), to.ai_addr, to.ai_addrlen) == 0) return "";
  if (errno != EINPROGRESS) return std::strerror(errno);
  pollfd wait{.fd = socket.get(), .events = POLLOUT, .revents = 0};
  if (::poll(&wait, 1, kConnectTimeoutMs) <= 0) return "no answer within 3 s";
  int failed = 0;
  socklen_t bytes = sizeof failed;
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &failed, &bytes) != 0) failed = errno;
  return failed == 0 ? "" : std::strerror(failed);
}

}  // namespace

DeviceFacts gather_device(const config::Node& node, const fs::path& root) {
  DeviceFacts device;
  if (node.device == config::kSocketDevice) {
    for (const std::string& address : {node.address4, node.address6}) {
      if (address.empty()) continue;
      const std::string interface = interface_of(address);
      if (interface.empty()) {
        device.address = address;
      } else {
        device.name = interface;
      }
    }
    if (!device.name.empty()) look_at_interface(&device, root);
    return device;
  }
  const std::string name = node.device.substr(0, node.device.find(','));
  if (!name.starts_with("net_")) {
    device.kind = DeviceFacts::Kind::kPci;
    device.name = name;
    look_at_pci(&device, root);
    return device;
  }
  device.kind = DeviceFacts::Kind::kOther;
  device.name = option_of(node.device, "iface");
  if (device.name.empty() || name.starts_with("net_tap")) {  // a tap is made when the dataplane starts
    device.name.clear();
    return device;
  }
  device.kind = DeviceFacts::Kind::kInterface;
  look_at_interface(&device, root);
  return device;
}

namespace {

constexpr std::chrono::seconds kExportPatience{15};

ExportFacts look_at_export(const config::Export& root) {
  ExportFacts facts{.root = root};
  const UniqueFd directory(::open(root.path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!directory) {
    facts.problem = std::strerror(errno);
    return facts;
  }
  facts.readable = ::access(root.path.c_str(), R_OK | X_OK) == 0;
  facts.writable = ::access(root.path.c_str(), W_OK | X_OK) == 0;
  struct statfs info {};
  if (::fstatfs(directory.get(), &info) == 0) {
    facts.file_system = file_system_name(info.f_type);
    facts.in_memory = info.f_type == TMPFS_MAGIC;
    facts.size_bytes = static_cast<uint64_t>(info.f_blocks) * static_cast<uint64_t>(info.f_bsize);
    facts.free_bytes = static_cast<uint64_t>(info.f_bavail) * static_cast<uint64_t>(info.f_bsize);
  }
  if (facts.writable && !facts.in_memory) facts.direct_io = takes_direct_io(root.path);
  facts.disk = gather_disk(root.path, "/");
  facts.mounted_with = gather_mount_options(root.path, "/");
  if (facts.direct_io.value_or(false) && facts.free_bytes > kFreeForTry) try_speed(root.path, &facts.disk);
  return facts;
}

}  // namespace

// A file system that hangs takes its thread with it, and nothing else.
ExportFacts gather_export(const config::Export& root) {
  const auto found = std::make_shared<std::promise<ExportFacts>>();
  std::future<ExportFacts> facts = found->get_future();
  std::thread([found, root] { found->set_value(look_at_export(root)); }).detach();
  if (facts.wait_for(kExportPatience) == std::future_status::ready) return facts.get();
  return {.root = root,
          .problem = "its file system does not answer within " + std::to_string(kExportPatience.count()) +
                     " s; check what it is mounted from"};
}

std::string gather_audit_problem(const config::Node& node) {
  const fs::path file = node.audit_log();
  const int flags = O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  const UniqueFd opened(::open(file.c_str(), flags));
  if (!opened && errno == ENOENT && ::access(file.parent_path().c_str(), W_OK | X_OK) == 0) return "";
  struct stat info {};
  if (!opened || ::fstat(opened.get(), &info) != 0) return std::strerror(errno);
  return S_ISREG(info.st_mode) ? "" : "it is no file";
}

PeerFacts gather_peer(const identity::Peer& peer) {
  PeerFacts facts{.name = peer.name, .address = peer.address, .problem = {}};
  if (peer.address.empty()) return facts;
  const auto where = config::parse_host_port(peer.address);
  if (!where) {
    facts.problem = where.error().message;
    return facts;
  }
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int failed =
          ::getaddrinfo(where->host.c_str(), std::to_string(where->port).c_str(), &hints, &found);
      failed != 0) {
    facts.problem = ::gai_strerror(failed);
    return facts;
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    facts.problem = connect_problem(*each);
    if (facts.problem.empty()) break;
  }
  return facts;
}

}  // namespace sluice::doctor
