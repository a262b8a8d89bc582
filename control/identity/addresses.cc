// SPDX-License-Identifier: Apache-2.0
#include "control/identity/addresses.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <mutex>

#include "control/identity/node_files.h"
#include "control/identity/stamp.h"
#include "dataplane/base/config/config.h"
#include "dataplane/base/text.h"
#include "dataplane/base/unique_fd.h"

namespace sluice::identity {
namespace {

constexpr std::string_view kBlanks = " \t\r\v\f";
constexpr size_t kShownBytesMax = 80;

// The next word, which is cut off; empty: there is none.
std::string_view next_word(std::string_view* line) {
  line->remove_prefix(std::min(line->find_first_not_of(kBlanks), line->size()));
  const std::string_view word = line->substr(0, line->find_first_of(kBlanks));
  line->remove_prefix(word.size());
  return word;
}

// With the usual port where there is none.
Result<std::string> with_port(std::string_view address) {
  const bool bracketed = address.starts_with('[');
  const bool has_port = bracketed ? !address.ends_with(']') : address.find(':') != std::string_view::npos;
  const std::string whole =
      std::string(address) + (has_port ? "" : ":" + std::to_string(config::kControlPort));
  const auto split = config::parse_host_port(whole);
  if (!split) return split.error();
  if (split->port == 0) return configuration("port 0 cannot be called; name the peer's real port");
  return whole;
}

std::string shown(std::string_view word) { return base::printable(word.substr(0, kShownBytesMax)); }

Error cannot_read(const std::filesystem::path& file, int error) {
  if (is_shortage(error)) return shortage(file, error);
  return configuration(file.string() + ": " + std::strerror(error) +
                       "; [control] addresses_file must name a file that sluice-control may read");
}

Result<std::string> read_all(int fd, const std::filesystem::path& file) {
  std::string text;
  char part[16 << 10];
  while (text.size() <= Addresses::kBytesMax) {
    const ssize_t got = ::read(fd, part, sizeof part);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return cannot_read(file, errno);
    if (got == 0) return text;
    text.append(part, static_cast<size_t>(got));
  }
  return configuration(file.string() + ": is longer than 8 MiB; only names and addresses belong here");
}

}  // namespace

Addresses Addresses::parse(std::string_view text, const std::string& origin) {
  Addresses found;
  std::map<std::string, size_t> lines;
  for (size_t number = 1; !text.empty(); ++number) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    line = line.substr(0, line.find('#'));
    const std::string_view name = next_word(&line);
    const std::string_view address = next_word(&line);
    if (name.empty()) continue;
    const auto wrong = [&](const std::string& why) {
      if (found.problems_.size() < kProblemsMax)
        found.problems_.push_back(configuration(origin + ":" + std::to_string(number) + ": " + why));
    };
    if (!config::valid_node_name(name)) {
      wrong("'" + shown(name) + "' is no node name; use a-z, 0-9, _ and -");
    } else if (address.empty() || !next_word(&line).empty()) {
      wrong("a line has a name and an address, such as: beta beta.example.org:7400");
    } else if (const auto known = lines.find(std::string(name)); known != lines.end()) {
      wrong(std::string(name) + " stands in line " + std::to_string(known->second) +
            " already, which counts; remove one of them");
    } else if (const Result<std::string> whole = with_port(address); !whole) {
      wrong(whole.error().message);
    } else {
      lines[std::string(name)] = number;
      found.all_[std::string(name)] = *whole;
    }
  }
  return found;
}

Result<std::shared_ptr<const Addresses>> Addresses::load(const std::filesystem::path& file) {
  if (const Status status = check_guarded(file, Guard::kOthers); !status) return status.error();
  const UniqueFd opened(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (!opened || ::fstat(opened.get(), &status) != 0) return cannot_read(file, errno);
  if (!S_ISREG(status.st_mode)) return configuration(file.string() + ": is no file; name one");
  const Stamp stamp = stamp_of(status);
  // Each call of a peer asks for it.
  static struct {
    std::mutex mutex;
    std::filesystem::path file;
    Stamp stamp;
    std::shared_ptr<const Addresses> addresses;
  } last;
  const std::scoped_lock lock(last.mutex);
  if (last.addresses && last.file == file && last.stamp == stamp) return last.addresses;
  const Result<std::string> text = read_all(opened.get(), file);
  if (!text) return text.error();
  last.addresses = std::make_shared<const Addresses>(parse(*text, file.string()));
  last.file = file;
  last.stamp = stamp;
  return last.addresses;
}

std::string Addresses::find(const std::string& name) const {
  const auto at = all_.find(name);
  return at == all_.end() ? "" : at->second;
}

}  // namespace sluice::identity
