// The names in a directory, in the order of their bytes, in bounded memory, however many there are.
//
// One pass over the directory keeps the smallest names after the last one that was handed out, as many as
// there is room for; when these are used up, the next pass begins. So a directory of a million names takes
// some passes and some MiB. A name that comes or goes meanwhile may be missed; none comes twice. Cold;
// blocking.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "control/exports/pulse.h"

namespace sluice::exports {

class SortedNames {
 public:
  explicit SortedNames(size_t bytes_max) : bytes_max_(bytes_max) {}

  // The next name into `name`: 1; 0: there is none; -1: errno tells why the directory cannot be read
  // (ECANCELED: it was stopped).
  int next(int directory_fd, Pulse& pulse, std::string* name);
  // Reads the first names, so that an error is known: 0, or an errno.
  int prepare(int directory_fd, Pulse& pulse);

  size_t bytes() const { return arena_.capacity() + refs_.capacity() * sizeof(Ref); }
  uint32_t passes() const { return passes_; }

 private:
  struct Ref {
    uint32_t at = 0;
    uint32_t length = 0;
  };
  std::string_view view(const Ref& ref) const { return {arena_.data() + ref.at, ref.length}; }
  int pass(int directory_fd, Pulse& pulse);
  void offer(std::string_view name);
  void keep_half();

  size_t bytes_max_;
  std::string arena_;
  std::vector<Ref> refs_;  // after a pass: the largest first
  std::string last_;       // handed out
  std::string bound_;      // names from here on are left to a later pass
  bool bounded_ = false;
  bool through_ = false;  // no pass after this one
  uint32_t passes_ = 0;
};

}  // namespace sluice::exports
