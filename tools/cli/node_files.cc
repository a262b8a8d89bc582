// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/node_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "control/identity/identity.h"
#include "control/identity/node_files.h"
#include "dataplane/base/arguments/arguments.h"
#include "dataplane/base/check.h"
#include "dataplane/base/config/apart.h"
#include "dataplane/base/config/schema.h"
#include "dataplane/base/unique_fd.h"
#include "tools/cli/format.h"
#include "tools/cli/target.h"

namespace sluice::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kCertificateBegin = "-----BEGIN CERTIFICATE-----";
constexpr std::string_view kCertificateEnd = "-----END CERTIFICATE-----";
constexpr size_t kCertificateBytesMax = 64 << 10;
constexpr size_t kNodeNameBytesMax = 63;
constexpr const char* kParts[] = {"node.toml", "identity", "trusted", "authority", "run"};

Error cannot(const std::string& what, const fs::path& path, int error) {
  return {ErrorCode::kConfiguration, "cannot " + what + " " + path.string() + ": " + std::strerror(error)};
}

// Everything that create_node makes, below a directory that may have been there before.
Status fill(const fs::path& directory, config::TemplateOptions options, const Named& named) {
  std::error_code error;
  fs::create_directory(directory / "run", error);
  if (!error) fs::permissions(directory / "run", fs::perms::owner_all, error);
  if (error) return cannot("create", directory / "run", error.value());
  if (auto made = identity::create(directory, options.name); !made) return made.error();
  if (named) {
    if (auto status = named(options); !status) return status;
  }
  return identity::write_small_file(directory / "node.toml", config::make_template(options), 0644,
                                    identity::Replace::kNo);
}

}  // namespace

Result<config::Export> parse_export(std::string_view text, const fs::path& working_directory,
                                    Missing missing) {
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0) {
    return usage("--export: '" + printable(text) + "' is not NAME=PATH[:r|w|rw|rm|wm|rwm]");
  }
  config::Export item;
  item.name = text.substr(0, equals);
  std::string_view path = text.substr(equals + 1);
  for (const std::string_view mode : {":rwm", ":rm", ":wm", ":rw", ":r", ":w"}) {
    if (!path.ends_with(mode)) continue;
    path.remove_suffix(mode.size());
    item.read = mode.find('r') != std::string_view::npos;
    item.write = mode.find('w') != std::string_view::npos;
    item.manage = mode.find('m') != std::string_view::npos;
    break;
  }
  auto absolute = local_path(path, working_directory);
  const size_t colon = path.rfind(':');
  const bool no_mode = colon != std::string_view::npos && path.find('/', colon) == std::string_view::npos;
  std::error_code not_there;
  if (no_mode && absolute && !fs::is_directory(*absolute, not_there)) {
    return usage("--export: '" + printable(path.substr(colon)) +
                 "' is no mode; write :r, :w, :rw, :rm, :wm or :rwm (r: "
                 "peers may read, w: write, m: remove and rename)");
  }
  if (!absolute) return usage("--export: " + absolute.error().message);
  if (absolute->size() > 1 && absolute->ends_with('/')) absolute->pop_back();
  std::error_code ignored;
  const bool left = missing == Missing::kLeft && !fs::exists(*absolute, ignored);
  if (!left && !fs::is_directory(*absolute, ignored)) {
    return Error{ErrorCode::kConfiguration,
                 "--export: " + printable(*absolute) + " is not a directory; make it first"};
  }
  item.path = *absolute;
  return item;
}

CLI::Validator range_of(std::string_view section, std::string_view key) {
  const config::Key* const found = config::find_key(section, key);
  CHECK(found != nullptr, "an option is named after a key that is there");
  return arguments::whole(static_cast<int64_t>(found->min), static_cast<int64_t>(found->max));
}

CLI::Validator words_of(std::string_view section, std::string_view key) {
  const config::Key* const found = config::find_key(section, key);
  CHECK(found != nullptr, "an option is named after a key that is there");
  return arguments::told(CLI::detail::split(std::string(found->choices), ' '));
}

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "";
  return name.data();
}

std::string default_node_name(std::string_view host_name) {
  std::string name;
  for (const char c : host_name.substr(0, host_name.find('.')).substr(0, kNodeNameBytesMax)) {
    const bool upper = c >= 'A' && c <= 'Z';
    const bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
    name += upper ? static_cast<char>(c + ('a' - 'A')) : plain ? c : '-';
  }
  return config::valid_node_name(name) ? name : "node";
}

// "node.toml:93: [dataplane] memory_mib = ..." without the file, which is not there.
std::string without_place(const std::string& message) {
  const size_t key = message.find("[");
  return message.starts_with("node.toml") && key != std::string::npos ? message.substr(key) : message;
}

Status create_node(const fs::path& directory, const config::TemplateOptions& options, const Named& named) {
  // Says what is wrong with an option before anything is made.
  const auto parsed = config::parse(config::make_template(options), directory, "node.toml");
  if (!parsed) return usage(without_place(parsed.error().message));
  if (Status apart = config::check_apart(*parsed, config::Paths::kFollowed); !apart) return apart;
  std::error_code error;
  for (const char* part : kParts) {
    if (fs::exists(directory / part, error)) {
      return Error{ErrorCode::kConfiguration, directory.string() + " holds " + part +
                                                  " already; choose another directory, nothing was changed"};
    }
  }
  const bool was_there = fs::exists(directory, error);
  fs::create_directories(directory, error);
  if (error) return cannot("create", directory, error.value());
  auto filled = fill(directory, options, named);
  if (!filled) {
    forget_node(directory);
    if (!was_there) fs::remove(directory, error);
  }
  return filled;
}

void forget_node(const fs::path& directory) {
  std::error_code ignored;
  for (const char* part : kParts) fs::remove_all(directory / part, ignored);
}

Result<std::string> read_certificate(const std::string& file) {
  UniqueFd opened;
  if (file != "-") {
    opened.reset(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
    if (!opened) return cannot("open the certificate", file, errno);
  }
  const int fd = opened ? opened.get() : STDIN_FILENO;
  const std::string name = file == "-" ? "the standard input" : file;
  std::string text;
  // Byte by byte: what follows the certificate may be meant for the next program.
  while (text.size() < kCertificateBytesMax) {
    char c = 0;
    const ssize_t got = ::read(fd, &c, 1);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return cannot("read the certificate", name, errno);
    if (got == 0) break;
    text += c;
    if (c == '\n' && text.find(kCertificateEnd) != std::string::npos) break;
  }
  const size_t begin = text.find(kCertificateBegin);
  const size_t end = text.find(kCertificateEnd);
  if (begin == std::string::npos || end == std::string::npos || end < begin) {
    return Error{
        ErrorCode::kConfiguration,
        name + " holds no PEM certificate; get one at the peer with 'sluice node show --certificate'"};
  }
  return text.substr(begin, end + kCertificateEnd.size() - begin) + "\n";
}

}  // namespace sluice::cli
