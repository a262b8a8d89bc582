// `sluice send - NODE:PATH`: standard input as a source. A session has files, whose size is known before they
// are sent; so what comes is first written to a file, to its end.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "tools/cli/app.h"

namespace sluice::cli {

class Canceller;

// A directory with one file in it, which goes with this object unless it was let go of.
class Spool {
 public:
  Spool() = default;
  Spool(Spool&& other) noexcept;
  Spool& operator=(Spool&&) = delete;
  ~Spool();

  // All that comes, under the name that it is to have at the destination, "NODE:PATH": in $TMPDIR, or
  // /var/tmp. kUsage: PATH names no file. kNoSpace, kStorage. kCancelled: it was interrupted.
  static Result<Spool> take(const Environment& environment, const std::string& destination,
                            const Canceller& canceller);
  const std::filesystem::path& file() const { return file_; }
  void let_go() { file_.clear(); }

 private:
  std::filesystem::path file_;
};

}  // namespace sluice::cli
