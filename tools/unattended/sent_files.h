// What a watched folder has sent, and is sending: each file once, over restarts.
//
// Files are sent in batches, a session each. A batch is written down before its session is asked for, so that
// a restart in between finds out what became of it. Pure; whoever holds it writes take_lines() to a file
// whenever there are some, and gives what stands there to read() at the next start.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/unattended/ripeness.h"

namespace sluice::unattended {

struct Batch {
  int64_t unix_ns = 0;  // when it was written down
  std::string session;  // empty: of a state of before, when the node made its id
  std::vector<std::string> names;
};

class SentFiles {
 public:
  using Files = std::vector<std::pair<std::string, FileId>>;

  enum class Standing : uint8_t {
    kNew,   // nothing is known of it, or only of another file that had this name
    kBusy,  // under this name another state of it is under way
    kUnderWay,
    kArrived,
  };
  Standing standing(const std::string& name, const FileId& id) const;

  // ---- batches -----------------------------------------------------------------------------------

  uint64_t begin(const Files& files, int64_t unix_ns);
  void runs_as(uint64_t batch, const std::string& session);
  // Its session has ended. Those that are missing are free again; the others are given back: they have
  // arrived. Without a receipt they stay where they are.
  std::vector<std::string> arrived(uint64_t batch, const std::set<std::string>& missing, bool receipt);
  // All of it is free again, and given back.
  std::vector<std::string> failed(uint64_t batch);
  const std::map<uint64_t, Batch>& batches() const { return batches_; }

  // ---- files that have arrived -------------------------------------------------------------------

  // The file that arrived under this name, if there is a receipt.
  const FileId* with_receipt(const std::string& name) const;
  std::vector<std::string> all_with_receipt() const;
  void forget(const std::string& name);
  // Those that are not there any more; what is under way stays.
  void forget_unless(const std::function<bool(const std::string& name)>& is_there);

  // ---- the folder --------------------------------------------------------------------------------

  uint64_t folder() const { return folder_; }  // its inode; 0: not known
  void set_folder(uint64_t inode);
  const std::string& to() const { return to_; }  // where its files go; empty: not known
  void set_to(const std::string& destination);

  // ---- what is remembered ------------------------------------------------------------------------

  std::string take_lines();  // what has changed since the last call; empty: nothing
  std::string all_lines() const;
  // Lines that are none are left out, and so is a batch that was not written to its end: it was not begun.
  void read(std::string_view text);
  // That it is the first line of such a state.
  static bool is_first_line(std::string_view line);

 private:
  struct File {
    FileId id;
    uint64_t batch = 0;  // 0: it has arrived
    bool receipt = false;
  };
  void read_line(std::string_view line);
  void read_file(const std::vector<std::string_view>& words);
  static std::string batch_lines(uint64_t number, const Batch& batch,
                                 const std::map<std::string, File>& files);

  std::map<std::string, File> files_;
  std::map<uint64_t, Batch> batches_;
  std::map<uint64_t, size_t> expected_;  // while it reads: names of each batch
  uint64_t last_batch_ = 0;
  uint64_t folder_ = 0;
  std::string to_;
  std::string lines_;
};

}  // namespace sluice::unattended
