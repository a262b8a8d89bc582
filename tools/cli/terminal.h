// A whole terminal to draw pages on, as ncurses has it: given back as it was found, also when a signal ends
// us.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "dataplane/base/error.h"

namespace sluice::cli {

// Whether a terminal of this kind, as TERM names it, takes sequences that move the cursor. Nothing is known
// of one that has no name.
bool knows_escapes(const char* kind);

class Terminal {
 public:
  enum class Key { kNone, kQuit, kOther, kResized };

  // kUsage where the terminal's kind is not known.
  static Result<std::unique_ptr<Terminal>> open();
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  size_t columns() const;
  size_t rows() const;
  // Printable lines; what does not fit is left out.
  void draw(const std::vector<std::string>& lines);
  // Waits for a key, for so long at most.
  Key key(int milliseconds);
  // SIGINT, SIGTERM or SIGHUP has come: which one; else 0.
  static int signal();

 private:
  Terminal() = default;
  void* screen_ = nullptr;
  bool utf8_ = false;
};

}  // namespace sluice::cli
