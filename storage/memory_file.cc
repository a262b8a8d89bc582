// SPDX-License-Identifier: Apache-2.0
#include "storage/memory_file.h"

#include <linux/magic.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>

namespace sluice::storage {
namespace {

constexpr uintptr_t kPageBytes = 4096;
constexpr size_t kMappingsMax = 16384;  // open objects of all sessions

// What the signal handler looks through. Slots are filled and emptied by the cold thread.
std::array<std::atomic<Mapping*>, kMappingsMax> mappings;
std::atomic<size_t> mappings_end{0};

uintptr_t page_of(const void* address) { return reinterpret_cast<uintptr_t>(address) & ~(kPageBytes - 1); }

}  // namespace

bool is_memory_file(int fd) {
  struct statfs info {};
  return fstatfs(fd, &info) == 0 && (info.f_type == TMPFS_MAGIC || info.f_type == RAMFS_MAGIC);
}

// Only what a handler may do: atomics, mmap, and sigaction to let anybody else's fault end the process.
void Mapping::on_sigbus(int signal, siginfo_t* info, void*) {
  const auto* const at = static_cast<const uint8_t*>(info->si_addr);
  const size_t end = mappings_end.load(std::memory_order_acquire);
  for (size_t i = 0; i < end; ++i) {
    Mapping* const m = mappings[i].load(std::memory_order_acquire);
    if (m == nullptr || at < m->data_ || at >= m->data_ + m->bytes_) continue;
    m->damaged_.store(true, std::memory_order_release);
    void* const page = reinterpret_cast<void*>(page_of(at));
    if (mmap(page, kPageBytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == page) return;
  }
  struct sigaction usual {};
  usual.sa_handler = SIG_DFL;
  sigaction(signal, &usual, nullptr);
}

std::unique_ptr<Mapping> Mapping::of(int fd, uint64_t bytes) {
  struct stat info {};
  if (bytes == 0 || fstat(fd, &info) != 0 || static_cast<uint64_t>(info.st_size) < bytes ||
      static_cast<uint64_t>(info.st_blocks) * 512 < bytes) {
    return nullptr;
  }
  size_t slot = 0;
  while (slot < kMappingsMax && mappings[slot].load(std::memory_order_relaxed) != nullptr) ++slot;
  if (slot == kMappingsMax) return nullptr;
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction action {};
    action.sa_sigaction = on_sigbus;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    sigaction(SIGBUS, &action, nullptr);
  });
  void* const data = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd, 0);
  if (data == MAP_FAILED) return nullptr;
  std::unique_ptr<Mapping> mapping(new Mapping(static_cast<uint8_t*>(data), bytes));
  mappings[slot].store(mapping.get(), std::memory_order_release);
  if (slot >= mappings_end.load(std::memory_order_relaxed)) {
    mappings_end.store(slot + 1, std::memory_order_release);
  }
  return mapping;
}

Mapping::~Mapping() {
  for (auto& slot : mappings) {
    if (slot.load(std::memory_order_relaxed) != this) continue;
    slot.store(nullptr, std::memory_order_release);
    break;
  }
  munmap(data_, bytes_);
}

int Mapping::populate(uint64_t offset, uint64_t bytes) {
  const uintptr_t begin = page_of(data_ + offset);
  const uintptr_t end = reinterpret_cast<uintptr_t>(data_ + offset + bytes);
  if (madvise(reinterpret_cast<void*>(begin), end - begin, MADV_POPULATE_READ) == 0) return 0;
  if (errno == EINVAL) return 0;  // a kernel before 5.14: page by page, then
  return errno == EFAULT || errno == ENOMEM ? ENODATA : errno;
}

void Mapping::forget(uint64_t offset, uint64_t bytes) {
  const uintptr_t begin = page_of(data_ + offset);
  const uintptr_t end = reinterpret_cast<uintptr_t>(data_ + offset + bytes);
  madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

bool GatheredWrites::add(int fd, uint64_t offset, const uint8_t* data, uint32_t bytes) {
  if (parts_ == 0) {
    fd_ = fd;
    offset_ = offset;
    bytes_ = 0;
  } else if (parts_ == kPartsMax || fd != fd_ || offset != offset_ + bytes_) {
    return false;
  }
  vectors_[parts_++] = {const_cast<uint8_t*>(data), bytes};
  bytes_ += bytes;
  return true;
}

int GatheredWrites::flush() {
  iovec* next = vectors_.data();
  uint32_t left = parts_;
  parts_ = 0;
  uint64_t at = offset_;
  while (left > 0) {
    const ssize_t written = pwritev(fd_, next, static_cast<int>(left), static_cast<off_t>(at));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return written < 0 ? errno : EIO;
    at += static_cast<uint64_t>(written);
    auto done = static_cast<size_t>(written);
    while (left > 0 && done >= next->iov_len) {
      done -= next->iov_len;
      ++next;
      --left;
    }
    if (left > 0) *next = {static_cast<uint8_t*>(next->iov_base) + done, next->iov_len - done};
  }
  return 0;
}

}  // namespace sluice::storage
