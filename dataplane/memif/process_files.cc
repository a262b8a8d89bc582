// SPDX-License-Identifier: Apache-2.0
#include "dataplane/memif/process_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <charconv>
#include <cstring>
#include <memory>
#include <string_view>

#include "dataplane/base/unique_fd.h"

namespace sluice::memif {
namespace {

using Directory = std::unique_ptr<DIR, int (*)(DIR*)>;

const UniqueFd& maps() {
  static const UniqueFd fd(::open("/proc/self/maps", O_RDONLY | O_CLOEXEC));
  return fd;
}

const Directory& descriptors() {
  static const Directory directory(::opendir("/proc/self/fd"), ::closedir);
  return directory;
}

}  // namespace

void open_process_files() {
  (void)maps();
  (void)descriptors();
}

std::vector<std::string> own_maps() {
  std::vector<std::string> lines;
  std::string text;
  char part[8192];
  if (::lseek(maps().get(), 0, SEEK_SET) != 0) return lines;
  for (ssize_t bytes = 0; (bytes = ::read(maps().get(), part, sizeof part)) > 0;)
    text.append(part, static_cast<size_t>(bytes));
  for (std::string_view rest = text; !rest.empty();) {
    const size_t end = rest.find('\n');
    lines.emplace_back(rest.substr(0, end));
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  }
  return lines;
}

std::vector<int> own_descriptors() {
  std::vector<int> found;
  DIR* const directory = descriptors().get();
  if (directory == nullptr) return found;
  ::rewinddir(directory);
  while (const dirent* const entry = ::readdir(directory)) {
    const char* const name = entry->d_name;
    int fd = -1;
    if (std::from_chars(name, name + std::strlen(name), fd).ec == std::errc() && fd >= 0) found.push_back(fd);
  }
  return found;
}

}  // namespace sluice::memif
