// SPDX-License-Identifier: Apache-2.0
#include "control/exports/sorted_names.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "control/exports/beneath.h"
#include "dataplane/base/check.h"

namespace sluice::exports {
namespace {

// What the kernel hands out (getdents64(2)).
constexpr size_t kLengthAt = 16;
constexpr size_t kNameAt = 19;
constexpr size_t kListingBytes = 64U << 10;

}  // namespace

// Of what has been kept, the smaller half stays.
void SortedNames::keep_half() {
  DCHECK(refs_.size() > 1, "there is a half to let go of");
  const auto middle = refs_.begin() + static_cast<std::ptrdiff_t>(refs_.size() / 2);
  std::nth_element(refs_.begin(), middle, refs_.end(),
                   [this](const Ref& a, const Ref& b) { return view(a) < view(b); });
  bound_ = view(*middle);
  bounded_ = true;
  refs_.erase(middle, refs_.end());
  std::string kept;
  kept.reserve(arena_.capacity());
  for (Ref& ref : refs_) {
    const auto at = static_cast<uint32_t>(kept.size());
    kept += view(ref);
    ref.at = at;
  }
  arena_ = std::move(kept);
}

void SortedNames::offer(std::string_view name) {
  if (!valid_file_name(name) || (passes_ > 1 && name <= last_) || (bounded_ && name >= bound_)) return;
  DCHECK(arena_.size() + name.size() <= UINT32_MAX, "names are kept within a bound");
  refs_.push_back({.at = static_cast<uint32_t>(arena_.size()), .length = static_cast<uint32_t>(name.size())});
  arena_ += name;
  if (refs_.size() > 1 && arena_.size() + refs_.size() * sizeof(Ref) > bytes_max_) keep_half();
}

int SortedNames::pass(int directory_fd, Pulse& pulse) {
  // Its own place in the directory: whoever else has the descriptor keeps his.
  const UniqueFd fd(::openat(directory_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return errno;
  ++passes_;
  bounded_ = false;
  alignas(8) std::array<char, kListingBytes> buffer;
  for (;;) {
    const long bytes = ::syscall(SYS_getdents64, fd.get(), buffer.data(), buffer.size());
    if (bytes < 0) return errno;
    if (bytes == 0) break;
    for (size_t at = 0; at < static_cast<size_t>(bytes);) {
      uint16_t length = 0;
      std::memcpy(&length, buffer.data() + at + kLengthAt, sizeof length);
      offer(buffer.data() + at + kNameAt);
      at += length;
      if (!pulse.step()) return ECANCELED;
    }
  }
  // Some file systems tell a name twice while the directory changes.
  std::ranges::sort(refs_, [this](const Ref& a, const Ref& b) { return view(a) > view(b); });
  const auto same = [this](const Ref& a, const Ref& b) { return view(a) == view(b); };
  refs_.erase(std::unique(refs_.begin(), refs_.end(), same), refs_.end());
  through_ = !bounded_;
  return 0;
}

int SortedNames::prepare(int directory_fd, Pulse& pulse) {
  return passes_ == 0 ? pass(directory_fd, pulse) : 0;
}

int SortedNames::next(int directory_fd, Pulse& pulse, std::string* name) {
  while (refs_.empty()) {
    if (through_) return 0;
    arena_.clear();
    if (const int problem = pass(directory_fd, pulse); problem != 0) {
      errno = problem;
      return -1;
    }
  }
  DCHECK(last_.empty() || view(refs_.back()) > last_, "names come in order, none twice");
  last_ = view(refs_.back());
  refs_.pop_back();
  *name = last_;
  return 1;
}

}  // namespace sluice::exports
