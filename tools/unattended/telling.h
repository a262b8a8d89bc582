// What a program is to be told, and what became of it: once each, again after a failure, and not again after
// a restart.
//
// Pure: times are arguments, of a clock that does not go back. Whoever holds it writes take_lines() to a file
// whenever there are some, and gives what stands there to read() at the next start.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <string>
#include <string_view>

#include "tools/unattended/waits.h"

namespace sluice::unattended {

struct Letter {
  std::string key;      // of what it tells: the same key is told once
  std::string text;     // for the program
  bool lasting = true;  // it is remembered; otherwise it goes with this process
  uint32_t tries = 0;
};

class Telling {
 public:
  struct Limits {
    size_t at_once = 4;
    uint32_t tries = 10;
    Waits waits = {};
    size_t waiting = 10'000;
  };

  explicit Telling(Limits limits) : limits_(limits) {}

  enum class Added : uint8_t { kNew, kKnown, kNoRoom };
  Added add(Letter letter, int64_t now_ns);
  // As if it had been told.
  void pass_over(const std::string& key);
  bool knows(const std::string& key) const { return known_.contains(key); }

  // One to be told now, which counts as a try; it runs until ended() or given_back(). Nothing: none is due,
  // or as many run as may.
  const Letter* next(int64_t now_ns);
  enum class Outcome : uint8_t { kTold, kAgain, kGivenUp };
  Outcome ended(const std::string& key, bool well, int64_t now_ns);
  // It was ended for another reason than its own: the try does not count.
  void given_back(const std::string& key);

  // When the next is due; kNever: none waits, or as many run as may.
  int64_t next_ns() const;
  bool idle() const { return letters_.empty(); }

  // What was told is forgotten where `wanted` does not hold.
  void keep(const std::function<bool(const std::string& key)>& wanted);

  // ---- what is remembered ------------------------------------------------------------------------

  // What has changed since the last call; empty: nothing.
  std::string take_lines();
  // Of it there is what must not be lost, or somebody is told twice.
  bool decisive() const { return decisive_; }
  // All of it, in place of the lines before.
  std::string all_lines() const;
  // Lines that are none are left out; what waits is due at once.
  void read(std::string_view text);
  // That it has the form of such a line.
  static bool is_line(std::string_view line);

 private:
  struct Waiting {
    Letter letter;
    int64_t due_ns = 0;
    bool running = false;
  };
  using At = std::list<Waiting>::iterator;
  void read_line(std::string_view line);
  At find(const std::string& key);
  void settle(At at, const char* word);

  const Limits limits_;
  std::list<Waiting> letters_;         // in the order in which they came
  std::map<std::string, bool> known_;  // by key; true: it still waits
  size_t running_ = 0;
  std::string lines_;
  bool decisive_ = false;
};

}  // namespace sluice::unattended
