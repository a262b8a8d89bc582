// SPDX-License-Identifier: Apache-2.0
#include "dataplane/udp/memory.h"

#include <sys/mman.h>

#include <cstring>

namespace sluice::udp {

Memory::~Memory() {
  if (begin_ != nullptr) ::munmap(begin_, bytes_);
}

Memory Memory::reserve(size_t bytes) {
  Memory memory;
  void* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) return memory;
  memory.begin_ = static_cast<uint8_t*>(at);
  memory.bytes_ = bytes;
  return memory;
}

Memory Memory::map(size_t bytes) {
  Memory memory = reserve(bytes);
  if (!memory) return memory;
  (void)::madvise(memory.begin_, bytes, MADV_HUGEPAGE);  // where the host allows it
  if (::madvise(memory.begin_, bytes, MADV_POPULATE_WRITE) != 0) std::memset(memory.begin_, 0, bytes);
  return memory;
}

}  // namespace sluice::udp
