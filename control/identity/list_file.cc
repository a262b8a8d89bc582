// SPDX-License-Identifier: Apache-2.0
#include "control/identity/list_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "dataplane/base/text.h"
#include "dataplane/base/unique_fd.h"

namespace sluice::identity {
namespace {

constexpr std::string_view kBlanks = " \t\r\v\f";
constexpr size_t kShownBytesMax = 80;

Error cannot_read(const std::filesystem::path& file, const ListFile& about, int error) {
  if (is_shortage(error)) return shortage(file, error);
  return configuration(file.string() + ": " + std::strerror(error) + "; [control] " + about.key +
                       " must name a file that sluice-control may read");
}

Result<std::string> read_all(int fd, const std::filesystem::path& file, const ListFile& about) {
  std::string text;
  char part[16 << 10];
  while (text.size() <= about.bytes_max) {
    const ssize_t got = ::read(fd, part, sizeof part);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return cannot_read(file, about, errno);
    if (got == 0) return text;
    text.append(part, static_cast<size_t>(got));
  }
  return configuration(file.string() + ": is longer than " + std::to_string(about.bytes_max >> 20) +
                       " MiB; only " + about.content + " belong here");
}

}  // namespace

Result<std::optional<ListText>> read_list_file(const std::filesystem::path& file, const ListFile& about,
                                               const std::optional<Stamp>& known) {
  if (const Status status = check_guarded(file, about.guard); !status) return status.error();
  const UniqueFd opened(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (!opened || ::fstat(opened.get(), &status) != 0) return cannot_read(file, about, errno);
  if (!S_ISREG(status.st_mode)) return configuration(file.string() + ": is no file; name one");
  const Stamp stamp = stamp_of(status);
  if (stamp == known) return std::optional<ListText>();
  Result<std::string> text = read_all(opened.get(), file, about);
  if (!text) return text.error();
  return std::optional(ListText{.text = std::move(*text), .stamp = stamp});
}

std::string_view next_word(std::string_view* line) {
  line->remove_prefix(std::min(line->find_first_not_of(kBlanks), line->size()));
  const std::string_view word = line->substr(0, line->find_first_of(kBlanks));
  line->remove_prefix(word.size());
  return word;
}

std::string_view next_line(std::string_view* text) {
  const std::string_view line = text->substr(0, text->find('\n'));
  text->remove_prefix(std::min(line.size() + 1, text->size()));
  return line;
}

std::string shown_word(std::string_view word) { return base::printable(word.substr(0, kShownBytesMax)); }

}  // namespace sluice::identity
