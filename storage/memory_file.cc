// SPDX-License-Identifier: Apache-2.0
#include "storage/memory_file.h"

#include <fcntl.h>
#include <linux/mman.h>  // MADV_COLLAPSE: newer than the C library of Debian 12
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <mutex>

namespace sluice::storage {
namespace {

constexpr uintptr_t kPageBytes = 4096;
constexpr size_t kMappingsMax = 16384;  // open objects of all sessions

// What the signal handler looks through, also while the cold thread fills and empties slots: never freed.
struct Mapped {
  std::atomic<const uint8_t*> begin{nullptr};  // nullptr: free
  std::atomic<const uint8_t*> end{nullptr};
  std::atomic<bool> writable{false};
  std::atomic<bool> damaged{false};
};
std::array<Mapped, kMappingsMax> mappings;
std::atomic<size_t> mappings_end{0};

uintptr_t page_of(const void* address) { return reinterpret_cast<uintptr_t>(address) & ~(kPageBytes - 1); }

// At a multiple of a block, so that the kernel can map a block as one.
uint8_t* map_file(int fd, uint64_t bytes, int protection) {
  constexpr uint64_t kBlock = Mapping::kBlockBytes;
  const uint64_t pages = (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  void* const room =
      mmap(nullptr, pages + kBlock, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) return nullptr;
  auto* const begin = static_cast<uint8_t*>(room);
  const uint64_t before = (kBlock - reinterpret_cast<uintptr_t>(begin) % kBlock) % kBlock;
  if (before > 0) munmap(begin, before);
  munmap(begin + before + pages, kBlock - before);
  if (mmap(begin + before, bytes, protection, MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED) {
    return begin + before;
  }
  munmap(begin + before, pages);
  return nullptr;
}

}  // namespace

// By what only such files can have, seals: fstatfs would ask the file system, and NFS its server, which may
// be away.
bool is_memory_file(int fd) { return fcntl(fd, F_GET_SEALS) >= 0; }

// Only what a handler may do: atomics, mmap, and sigaction to let anybody else's fault end the process.
void Mapping::on_sigbus(int signal, siginfo_t* info, void*) {
  const auto* const at = static_cast<const uint8_t*>(info->si_addr);
  const size_t end = mappings_end.load(std::memory_order_acquire);
  for (size_t i = 0; i < end; ++i) {
    Mapped& m = mappings[i];
    const uint8_t* const begin = m.begin.load(std::memory_order_acquire);
    if (begin == nullptr || at < begin || at >= m.end.load(std::memory_order_acquire)) continue;
    m.damaged.store(true, std::memory_order_release);
    void* const page = reinterpret_cast<void*>(page_of(at));
    const int protection = PROT_READ | (m.writable.load(std::memory_order_acquire) ? PROT_WRITE : 0);
    if (mmap(page, kPageBytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == page) return;
  }
  struct sigaction usual {};
  usual.sa_handler = SIG_DFL;
  sigaction(signal, &usual, nullptr);
}

std::unique_ptr<Mapping> Mapping::of_source(int fd, uint64_t bytes) {
  struct stat info {};
  if (fstat(fd, &info) != 0 || static_cast<uint64_t>(info.st_blocks) * 512 < bytes) return nullptr;
  return of(fd, bytes, false);
}

// Only where a file system that is full is told by an errno: Linux 5.14.
std::unique_ptr<Mapping> Mapping::of_destination(int fd, uint64_t bytes) {
  static const bool told = [] {
    void* const page = mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const bool known = page != MAP_FAILED && madvise(page, kPageBytes, MADV_POPULATE_WRITE) == 0;
    if (page != MAP_FAILED) munmap(page, kPageBytes);
    return known;
  }();
  return told ? of(fd, bytes, true) : nullptr;
}

std::unique_ptr<Mapping> Mapping::of(int fd, uint64_t bytes, bool writable) {
  struct stat info {};
  if (bytes == 0 || fstat(fd, &info) != 0 || static_cast<uint64_t>(info.st_size) < bytes) return nullptr;
  size_t slot = 0;
  while (slot < kMappingsMax && mappings[slot].begin.load(std::memory_order_relaxed) != nullptr) ++slot;
  if (slot == kMappingsMax) return nullptr;
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction action {};
    action.sa_sigaction = on_sigbus;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    sigaction(SIGBUS, &action, nullptr);
  });
  uint8_t* const data = map_file(fd, bytes, PROT_READ | (writable ? PROT_WRITE : 0));
  if (data == nullptr) return nullptr;
  std::unique_ptr<Mapping> mapping(new Mapping(fd, data, bytes, writable, slot));
  Mapped& mapped = mappings[slot];
  mapped.damaged.store(false, std::memory_order_relaxed);
  mapped.writable.store(writable, std::memory_order_relaxed);
  mapped.end.store(data + bytes, std::memory_order_release);
  mapped.begin.store(data, std::memory_order_release);
  if (slot >= mappings_end.load(std::memory_order_relaxed)) {
    mappings_end.store(slot + 1, std::memory_order_release);
  }
  return mapping;
}

Mapping::Mapping(int fd, uint8_t* data, uint64_t bytes, bool writable, size_t slot)
    : fd_(fd), data_(data), bytes_(bytes), writable_(writable), slot_(slot) {
  if (writable) allotted_ = std::make_unique<std::atomic<uint64_t>[]>(bytes / kBlockBytes / 64 + 1);
}

Mapping::~Mapping() {
  mappings[slot_].begin.store(nullptr, std::memory_order_release);
  munmap(data_, bytes_);
}

bool Mapping::damaged() const { return mappings[slot_].damaged.load(std::memory_order_acquire); }

// The kernel makes a huge page of a block whatever the file system's own setting is, but only of one that is
// not quite empty: its first page comes first. What cannot be had so is had page by page.
void Mapping::allot_blocks(uint64_t offset, uint64_t bytes) {
  for (uint64_t block = offset / kBlockBytes; block * kBlockBytes < offset + bytes; ++block) {
    if ((block + 1) * kBlockBytes > bytes_) return;  // the end of the file
    const uint64_t bit = 1ULL << block % 64;
    std::atomic<uint64_t>& word = allotted_[block / 64];
    if ((word.load(std::memory_order_relaxed) & bit) != 0) continue;
    if ((word.fetch_or(bit, std::memory_order_relaxed) & bit) != 0) continue;
    uint8_t* const at = data_ + block * kBlockBytes;
    if (madvise(at, kPageBytes, MADV_POPULATE_WRITE) == 0) madvise(at, kBlockBytes, MADV_COLLAPSE);
  }
}

int Mapping::populate(uint64_t offset, uint64_t bytes) {
  if (writable_) allot_blocks(offset, bytes);
  const uintptr_t begin = page_of(data_ + offset);
  const uintptr_t end = reinterpret_cast<uintptr_t>(data_ + offset + bytes);
  const int advice = writable_ ? MADV_POPULATE_WRITE : MADV_POPULATE_READ;
  if (madvise(reinterpret_cast<void*>(begin), end - begin, advice) == 0) return 0;
  if (errno == EINVAL) return 0;  // a kernel before 5.14 makes pages when they are touched
  const int reason = errno;
  if (reason != EFAULT && reason != ENOMEM) return reason;
  struct stat info {};
  const bool cut = fstat(fd_, &info) != 0 || static_cast<uint64_t>(info.st_size) < offset + bytes;
  if (cut || !writable_) return ENODATA;
  return reason == EFAULT ? ENOSPC : reason;
}

void Mapping::forget(uint64_t offset, uint64_t bytes) {
  const uintptr_t begin = page_of(data_ + offset);
  const uintptr_t end = reinterpret_cast<uintptr_t>(data_ + offset + bytes);
  madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

}  // namespace sluice::storage
