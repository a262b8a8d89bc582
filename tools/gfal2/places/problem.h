// Why something cannot be done, as gfal2 is told it: an errno, and a sentence for people.
//
// Thrown within the plug-in, and caught where gfal2 calls it (plugin.cc): nothing is thrown through gfal2.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace sluice::gfal {

class Problem : public std::runtime_error {
 public:
  Problem(int reason, const std::string& message) : std::runtime_error(message), reason_(reason) {}
  int reason() const { return reason_; }

 private:
  int reason_;
};

// Which errno an error of a node is. One code of Sluice stands for several of them: then its text decides, of
// which only what comes last counts, for names of files stand before it.
int errno_of(int code, std::string_view message);

}  // namespace sluice::gfal
