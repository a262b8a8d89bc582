// Which files of a watched folder are finished: whoever wrote them has closed them, and they have not changed
// for a while; or a marker says so.
//
// Pure: what is seen of a file, and when, is told; the clock does not go back. A file that seems finished is
// looked at once more before it counts (confirm).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tools/unattended/waits.h"

namespace sluice::unattended {

// Which file it is, and in which state. `device` is 0 for that of the folder: numbers of devices change when
// a host is restarted.
struct FileId {
  uint64_t device = 0;
  uint64_t inode = 0;
  uint64_t size = 0;
  int64_t mtime_ns = 0;
  bool operator==(const FileId&) const = default;
};

class Ripeness {
 public:
  struct Rule {
    int64_t quiet_ns = 5 * kOneSecondNs;
    bool marked_only = false;  // nothing but its marker finishes a file
  };
  explicit Ripeness(Rule rule) : rule_(rule) {}

  // A look found it so. What is as it was before goes on getting older.
  void seen(const std::string& name, const FileId& id, int64_t now_ns);
  // Somebody has made it and has it open.
  void opened(const std::string& name, int64_t now_ns);
  // Whoever wrote it has closed it, or moved it here.
  void closed(const std::string& name, const FileId& id, int64_t now_ns);
  void marked(const std::string& name, int64_t now_ns);
  // Not before then, whatever else is so; it need not be known yet.
  void later(const std::string& name, int64_t due_ns);
  void gone(const std::string& name);
  bool is_open(const std::string& name) const;  // as far as was told
  // News was lost: what is open nobody knows any more, so only quiet counts.
  void lost_count();

  // Those that seem finished, the first to have become so first.
  std::vector<std::string> ripe(int64_t now_ns, size_t most) const;
  // Of one of these, as it is now. True: it is finished, and is not known here any more. False: it has
  // changed, and waits anew.
  bool confirm(const std::string& name, const FileId& id, int64_t now_ns);

  int64_t next_ns() const;  // when one seems finished if nothing happens to it; kNever: none
  size_t size() const { return files_.size(); }

 private:
  struct File {
    FileId id;
    bool known = false;  // `id` was seen
    bool open = false;
    bool marked = false;
    int64_t since_ns = 0;
    int64_t not_before_ns = 0;
    int64_t due_ns = 0;
  };
  File& file(const std::string& name, int64_t now_ns);
  void place(const std::string& name, File& file);

  const Rule rule_;
  std::map<std::string, File> files_;
  std::set<std::pair<int64_t, std::string>> order_;  // of those that will be due
};

}  // namespace sluice::unattended
