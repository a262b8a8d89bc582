// An allocator to preload (LD_PRELOAD) that ends the process when code in a HotScope (dataplane/core/hot.h)
// allocates or frees: SIGABRT, with a line on standard error. Everything else goes to the C library.
// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>

extern "C" int sluice_in_hot_scope() __attribute__((weak));  // of the program, if it has it

// NOLINTBEGIN(readability-identifier-naming): the C library's own
extern "C" void* __libc_malloc(size_t bytes);
extern "C" void* __libc_calloc(size_t count, size_t bytes);
extern "C" void* __libc_realloc(void* old, size_t bytes);
extern "C" void* __libc_memalign(size_t alignment, size_t bytes);
extern "C" void __libc_free(void* memory);
// NOLINTEND(readability-identifier-naming)

namespace {

void check(const char* what) {
  if (sluice_in_hot_scope == nullptr || sluice_in_hot_scope() == 0) return;
  char text[96] = "hotmalloc: ";
  std::strncat(text, what, 32);
  std::strncat(text, " in a hot scope; see the core or a debugger for where\n", 63);
  (void)!write(STDERR_FILENO, text, std::strlen(text));
  std::abort();
}

}  // namespace

extern "C" void* malloc(size_t bytes) {
  check("malloc");
  return __libc_malloc(bytes);
}
extern "C" void* calloc(size_t count, size_t bytes) {
  check("calloc");
  return __libc_calloc(count, bytes);
}
extern "C" void* realloc(void* old, size_t bytes) {
  check("realloc");
  return __libc_realloc(old, bytes);
}
extern "C" void* memalign(size_t alignment, size_t bytes) {
  check("memalign");
  return __libc_memalign(alignment, bytes);
}
extern "C" void* aligned_alloc(size_t alignment, size_t bytes) {
  check("aligned_alloc");
  return __libc_memalign(alignment, bytes);
}
extern "C" int posix_memalign(void** memory, size_t alignment, size_t bytes) {
  check("posix_memalign");
  *memory = __libc_memalign(alignment, bytes);
  return *memory == nullptr ? ENOMEM : 0;
}
extern "C" void free(void* memory) {
  if (memory != nullptr) check("free");
  __libc_free(memory);
}
