// One object in memory of its own that is not swapped out, not in a core dump, not in a child, and wiped
// at its end.
//
// Cold. What holds keys lies in such a box. A system that does not let this process lock memory
// (RLIMIT_MEMLOCK) is no reason to do without: locked() tells.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>

#include <cstring>
#include <memory>
#include <new>
#include <utility>

namespace sluice::seal {

template <typename T>
class SecretBox {
 public:
  SecretBox() = default;
  // Empty if there is no memory.
  template <typename... Args>
  static SecretBox make(Args&&... args) {
    SecretBox box;
    void* const at = mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) return box;
    box.locked_ = mlock(at, sizeof(T)) == 0;
    madvise(at, sizeof(T), MADV_DONTDUMP);
    madvise(at, sizeof(T), MADV_DONTFORK);
    box.one_ = ::new (at) T(std::forward<Args>(args)...);
    return box;
  }
  ~SecretBox() { reset(); }
  SecretBox(SecretBox&& other) noexcept
      : one_(std::exchange(other.one_, nullptr)), locked_(std::exchange(other.locked_, false)) {}
  SecretBox& operator=(SecretBox&& other) noexcept {
    if (this == &other) return *this;
    reset();
    one_ = std::exchange(other.one_, nullptr);
    locked_ = std::exchange(other.locked_, false);
    return *this;
  }

  explicit operator bool() const { return one_ != nullptr; }
  bool locked() const { return locked_; }
  T* get() const { return one_; }
  T& operator*() const { return *one_; }
  T* operator->() const { return one_; }

 private:
  void reset() {
    if (one_ == nullptr) return;
    std::destroy_at(one_);
    explicit_bzero(static_cast<void*>(one_), sizeof(T));
    munmap(one_, sizeof(T));
    one_ = nullptr;
  }

  T* one_ = nullptr;
  bool locked_ = false;
};

}  // namespace sluice::seal
