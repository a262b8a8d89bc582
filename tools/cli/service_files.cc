// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/service_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <sstream>

#include "control/identity/node_files.h"

namespace sluice::cli {
namespace {

namespace fs = std::filesystem;

Error cannot(const std::string& what, const fs::path& path, int error) {
  return {ErrorCode::kConfiguration, "cannot " + what + " " + path.string() + ": " + std::strerror(error)};
}

// The number in this column of the line that begins with the name, in a file of columns.
std::optional<uint32_t> number_of(const fs::path& file, const std::string& name, size_t column) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string word;
    std::getline(words, word, ':');
    if (word != name) continue;
    for (size_t at = 0; at < column; ++at) std::getline(words, word, ':');
    uint32_t value = 0;
    const auto [end, failure] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (failure == std::errc() && end == word.data() + word.size()) return value;
  }
  return std::nullopt;
}

Status own(const fs::path& path, uid_t user, gid_t group, mode_t mode) {
  if (::lchown(path.c_str(), user, group) != 0) return cannot("give away", path, errno);
  if (::chmod(path.c_str(), mode) != 0) return cannot("set the mode of", path, errno);
  return {};
}

Status make_owned(const fs::path& path, uid_t user, gid_t group, mode_t mode) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) return cannot("create", path, error.value());
  return own(path, user, group, mode);
}

fs::path below(const fs::path& root, std::string_view path) { return root / path.substr(1); }

}  // namespace

std::optional<ServiceUsers> service_users(const fs::path& root) {
  const auto control = number_of(root / "etc/passwd", "sluice-control", 2);
  const auto control_group = number_of(root / "etc/passwd", "sluice-control", 3);
  const auto dataplane = number_of(root / "etc/group", "sluice-dataplane", 2);
  const auto operators = number_of(root / "etc/group", "sluice", 2);
  if (!control || !control_group || !dataplane || !operators) return std::nullopt;
  return ServiceUsers{
      .control = *control, .control_group = *control_group, .dataplane = *dataplane, .operators = *operators};
}

void use_service(config::TemplateOptions& options) {
  options.state_dir = kServiceState;
  options.control_group = "sluice";
  options.dataplane_group = "sluice-dataplane";
}

Status hand_over(const fs::path& directory, const ServiceUsers& users, const fs::path& root) {
  const fs::path identity = directory / "identity";
  if (auto s = own(directory, 0, 0, 0755); !s) return s;
  if (auto s = own(identity, users.control, users.control_group, 0700); !s) return s;
  if (auto s = own(identity / "key.pem", users.control, users.control_group, 0600); !s) return s;
  if (auto s = own(identity / "cert.pem", users.control, users.control_group, 0644); !s) return s;
  // Whom this node trusts is root's to say, and the daemon's to read.
  if (auto s = make_owned(directory / "trusted", 0, 0, 0755); !s) return s;
  if (auto s = make_owned(below(root, kServiceState), users.control, users.control_group, 0700); !s) return s;
  // Both daemons make sockets there, and neither may remove the other's.
  if (auto s = make_owned(below(root, kServiceRun), users.control, users.dataplane, 01771); !s) return s;
  std::error_code error;
  fs::remove(directory / "run", error);
  if (!error) fs::create_directory_symlink(kServiceRun, directory / "run", error);
  if (error) return cannot("link", directory / "run", error.value());
  return {};
}

Status make_shared(const fs::path& directory, const std::optional<ServiceUsers>& users) {
  std::error_code error;
  if (fs::exists(directory, error)) return {};
  fs::create_directories(directory, error);
  if (error) return cannot("create", directory, error.value());
  return users ? own(directory, users->control, users->operators, 02770) : Status();
}

Status grant(const std::string& rights, const fs::path& root) {
  const fs::path file = root / "etc/systemd/system/sluice-dataplane.service.d/net-raw.conf";
  std::error_code error;
  if (rights.empty()) {
    fs::remove(file, error);
    return {};
  }
  fs::create_directories(file.parent_path(), error);
  if (error) return cannot("create", file.parent_path(), error.value());
  return identity::write_small_file(
      file, "# Made by `sluice node setup`: the device sees whole frames.\n[Service]\n" + rights, 0644,
      identity::Replace::kYes);
}

}  // namespace sluice::cli
