// What a daemon gives up once it has what it needs, so that whoever takes it over from then on has little:
// capabilities, system calls (seccomp), files and TCP ports (Landlock).
//
// Cold; the main thread, once. It holds for every thread of the process, those that are there and those that
// come, and nothing takes it back. It needs no right: a daemon of any user can do it. What the kernel lacks
// is left out and told (State); only what should work and fails is an error.
//
// A call that is not allowed does nothing and fails with EPERM: a library that only tries something goes on,
// and so does the daemon. Each is counted and told (take_news). What no library tries and whoever took a
// daemon over would (execve, ptrace, mount, ...) ends the process at once. Signals: a thread that may make a
// call which is not allowed must not block SIGSYS, or it ends the process.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "dataplane/base/error.h"

namespace sluice::sandbox {

// (argument & mask) == value
struct Argument {
  unsigned index = 0;
  uint64_t mask = ~0ULL;
  uint64_t value = 0;
};

struct CallRule {
  const char* call = nullptr;
  std::vector<Argument> arguments;  // all of them; a call may have several rules
};

enum class Access : uint8_t {
  kRemove,  // nothing but to remove names
  kRead,    // files and directories
  kUse,     // files that are there: read and write, neither make nor remove
  kChange,  // and make, move and remove them
  kServe,   // and make sockets
};

struct PathRule {
  std::filesystem::path path;  // and all beneath; what is not there is left out
  Access access = Access::kRead;
};

// Plain data: what a daemon needs after its start.
struct Profile {
  std::string key;                 // "[dataplane] sandbox": what the log names
  uint64_t capabilities = 0;       // bits of those that it keeps, if it has them
  std::vector<const char*> calls;  // with any argument; names that this machine does not know are left out
  std::vector<CallRule> rules;     // with these
  std::vector<const char*>
      calls_on_paths;               // which only `paths` bound: not allowed where there is no Landlock
  std::vector<PathRule> paths;      // nothing else can be opened, as far as the calls allow to open anything
  bool tcp_connect = false;         // may call
  std::vector<uint16_t> tcp_ports;  // may listen there; 0: where the kernel chooses
  bool abstract_sockets = false;    // may connect to those that others have
};

enum class Off : uint8_t {
  kNot,
  kAsked,      // by the key
  kSanitizer,  // the build has one, which opens files and runs programs of its own
};

// What holds.
struct State {
  Off off = Off::kNot;
  bool calls = false;    // the filter of system calls
  uint8_t landlock = 0;  // the version of Landlock that limits files; 0: none, and from 4 on TCP as well
  bool rings = false;    // of the dataplane: its io_urings read and write, and do nothing else

  bool operator==(const State&) const = default;
  // As one number, for shared memory; any number is some State.
  uint64_t bits() const;
  static State of_bits(uint64_t bits);
  // "system calls, files, TCP", or what is missing and why.
  std::string text() const;
};

// `wanted`: else only capabilities and new privileges go. kDevice: a thread cannot be made to give them up.
Result<State> apply(const Profile& profile, bool wanted);

// The version of Landlock that this kernel has; 0: it has none, or did not start it.
int landlock_version();

// Calls that were not allowed, of this process, since its start.
uint64_t refused_calls();
// Sentences for the log: which, and how often, since the last call, for each when it is the first, the
// second, the fourth and so on. One thread.
std::vector<std::string> take_news();

}  // namespace sluice::sandbox
