// CHECK and DCHECK: what must never be, because our own code makes it so.
//
// CHECK holds in every build and is for conditions that cost nothing beside what they guard. DCHECK is for
// those that are too dear, or stand in a hot loop: it looks only where set_dchecks(true) was called (the
// simulator, the fuzzers) and in debug builds. A failure says where and what, and ends the process: a program
// whose own state is wrong must not go on writing other people's data.
//
// What comes from a peer, a disk or an operator is never checked so: it is refused, counted or reported.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace sluice::base {

// Prints "FILE:LINE: CHECK failed: CONDITION (WHY)" to standard error and aborts. Allocates nothing.
[[noreturn]] void check_failed(const char* file, int line, const char* condition, const char* why);

#ifdef NDEBUG
inline bool dchecks_enabled = false;  // written once, before any other thread begins
#else
inline bool dchecks_enabled = true;
#endif

inline void set_dchecks(bool on) { dchecks_enabled = on; }

}  // namespace sluice::base

// `why` is a literal: the invariant in words, for whoever reads the crash.
#define CHECK(condition, why)                                            \
  do {                                                                   \
    if (!(condition)) [[unlikely]]                                       \
      ::sluice::base::check_failed(__FILE__, __LINE__, #condition, why); \
  } while (false)

#define DCHECK(condition, why)                                           \
  do {                                                                   \
    if (::sluice::base::dchecks_enabled && !(condition)) [[unlikely]]    \
      ::sluice::base::check_failed(__FILE__, __LINE__, #condition, why); \
  } while (false)
